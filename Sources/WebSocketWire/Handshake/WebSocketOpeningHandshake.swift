package import HTTPWire
package import WireCore

/// The opening handshake of one side (RFC 6455, 4).
///
/// | state | event → next state | event: step |
/// | --- | --- | --- |
/// | connecting (client) | another status than 101 → refused | 101: opened; fault: ended |
/// | refused (client) | none | the body's end, or enough of it: ended |
/// | waiting (server) | any request → asked | a request: requested; anything else: invalid |
/// | asked (server) | none | none |
package struct WebSocketOpeningHandshake: Sendable {
    /// The result of received bytes.
    package enum Step: Hashable, Sendable {
        case opened(WebSocketOpening)
        case requested(HTTPRequestHead)
        /// A request that must get this response.
        case invalid(HTTPResponseHead)
        case ended(WebSocketEnding)
    }

    private enum State: Sendable {
        case connecting(WebSocketClientHandshake)
        case refused(Refusal)
        case waiting
        case asked(HTTPRequestHead)
    }

    /// A response other than 101, with the body received so far.
    private struct Refusal: Sendable {
        let head: HTTPResponseHead
        var decoder: HTTPBodyDecoder
        var body: HTTPBodyCollector
    }

    private var state: State
    private var heads: HTTPHeadDecoder
    private let maximumRefusalBody: Int
    private var timeLimit: WireInstant

    /// Makes the handshake of a client, or of a server without a client's handshake.
    package init(
        _ client: WebSocketClientHandshake?,
        _ configuration: WebSocketConfiguration,
        at now: WireInstant
    ) {
        state = client.map(State.connecting) ?? .waiting
        heads = HTTPHeadDecoder(limits: configuration.headLimits)
        maximumRefusalBody = configuration.maximumRefusalBody
        timeLimit = now.advanced(by: configuration.handshakeTimeout)
    }

    /// The request that waits for a response; nil if there is none.
    package var request: HTTPRequestHead? {
        if case .asked(let request) = state { request } else { nil }
    }

    /// The time limit for the peer.
    package var deadline: WireInstant? { request == nil ? timeLimit : nil }

    /// The ending of a handshake that is not completed: the server's refusal, or else the given one.
    package func ending(_ ending: WebSocketEnding) -> WebSocketEnding {
        guard case .refused(let refusal) = state else { return ending }
        return .refused(refusal.head, body: refusal.body.bytes)
    }

    /// Handles received bytes; those after the handshake stay in the buffer.
    ///
    /// - Returns: The step, or nil when more bytes are needed.
    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) -> Step? {
        switch state {
        case .connecting(let handshake): receiveResponse(handshake, &buffer, at: now)
        case .refused: receiveRefusal(&buffer)
        case .waiting: receiveRequest(&buffer)
        // Data that a client sends before the response waits in the buffer.
        case .asked: nil
        }
    }

    private mutating func receiveResponse(
        _ handshake: WebSocketClientHandshake,
        _ buffer: inout ReceiveBuffer,
        at now: WireInstant
    ) -> Step? {
        do throws(HTTPViolation) {
            while let head = try heads.nextResponse(&buffer) {
                if head.isInterim { continue }
                guard head.status == 101 else {
                    let decoder = HTTPBodyDecoder(try HTTPBodyFraming(head))
                    let body = HTTPBodyCollector(limit: maximumRefusalBody)
                    state = .refused(Refusal(head: head, decoder: decoder, body: body))
                    let end = now.advanced(by: HTTPClientConnection.refusalTime)
                    timeLimit = min(timeLimit, end)
                    return receiveRefusal(&buffer)
                }
                do throws(WebSocketHandshakeFault) {
                    return .opened(try handshake.opening(from: head))
                } catch {
                    return .ended(.handshakeFailed(error))
                }
            }
            return nil
        } catch {
            return .ended(.handshakeFailed(.http(error)))
        }
    }

    /// Gathers the body of a refusal, up to the limit.
    private mutating func receiveRefusal(_ buffer: inout ReceiveBuffer) -> Step? {
        guard case .refused(var refusal) = state else { return nil }
        var isComplete = false
        do throws(HTTPViolation) {
            while !isComplete, let part = try refusal.decoder.next(&buffer) {
                switch part {
                case .bytes(let slice): isComplete = !refusal.body.append(slice)
                case .end: isComplete = true
                }
            }
        } catch {
            // The received part of the body is kept, although the rest is invalid.
            isComplete = true
        }
        state = .refused(refusal)
        return isComplete ? .ended(.refused(refusal.head, body: refusal.body.bytes)) : nil
    }

    private mutating func receiveRequest(_ buffer: inout ReceiveBuffer) -> Step? {
        do throws(HTTPViolation) {
            guard let request = try heads.nextRequest(&buffer) else { return nil }
            state = .asked(request)
            if let refusal = WebSocketServerHandshake.refusal(of: request) {
                return .invalid(refusal)
            }
            return .requested(request)
        } catch {
            state = .asked(HTTPRequestHead(method: "GET", target: "/"))
            return .invalid(HTTPResponseHead(status: 400, reason: "Bad Request"))
        }
    }
}
