package import HTTPWire
package import WireCore

// The opening handshake (RFC 6455, 4).
extension WebSocketConnection {
    /// Makes the client side, which sends its request at once.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - configuration: The settings of the connection.
    ///   - now: The current time; the response must arrive within the handshake's timeout.
    /// - Throws: `RequestError` for a request that cannot be sent.
    package init(
        connecting request: WebSocketClientHandshake.Request,
        configuration: WebSocketConfiguration,
        at now: WireInstant
    ) throws(WebSocketClientHandshake.RequestError) {
        var configuration = configuration
        if !Compression.isAvailable { configuration.deflate = nil }
        let handshake = WebSocketClientHandshake(
            request,
            deflate: configuration.deflate,
            nonce: configuration.randomWords(2)
        )
        let head = try handshake.head()
        self.init(
            role: .client,
            configuration: configuration,
            state: .connecting(
                handshake,
                deadline: now.advanced(by: configuration.handshakeTimeout)
            ),
            at: now
        )
        do { try head.encode(into: &writer.outbound) } catch { throw .http(error) }
    }

    /// Makes the server side, which waits for a request.
    package init(serverWith configuration: WebSocketConfiguration, at now: WireInstant) {
        self.init(
            role: .server,
            configuration: configuration,
            state: .waiting(deadline: now.advanced(by: configuration.handshakeTimeout)),
            at: now
        )
    }

    // MARK: The client

    mutating func receiveResponse(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        guard case .connecting(let handshake, let deadline) = state else { return }
        do throws(HTTPViolation) {
            while let head = try heads.nextResponse(&buffer) {
                if head.isInterim { continue }
                guard head.status == 101 else {
                    let decoder = HTTPBodyDecoder(try HTTPBodyFraming(head))
                    let body = HTTPBodyCollector(limit: configuration.maximumRefusalBody)
                    let refusal = Refusal(head: head, decoder: decoder, body: body)
                    state = .refused(refusal, deadline: deadline)
                    return
                }
                return open(handshake, head, at: now)
            }
        } catch {
            finish(.handshakeFailed(.http(error)))
        }
    }

    private mutating func open(
        _ handshake: WebSocketClientHandshake,
        _ head: HTTPResponseHead,
        at now: WireInstant
    ) {
        do throws(WebSocketHandshakeFault) {
            open(try handshake.opening(from: head))
        } catch {
            finish(.handshakeFailed(error))
        }
    }

    /// Gathers the body of a refusal, up to the limit.
    mutating func receiveRefusal(_ buffer: inout ReceiveBuffer) {
        guard case .refused(var refusal, let deadline) = state else { return }
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
        guard !isComplete else { return finish(.refused(refusal.head, body: refusal.body.bytes)) }
        state = .refused(refusal, deadline: deadline)
    }

    // MARK: The server

    mutating func receiveRequest(_ buffer: inout ReceiveBuffer) {
        do throws(HTTPViolation) {
            guard let request = try heads.nextRequest(&buffer) else { return }
            state = .asked(request)
            if let refusal = WebSocketServerHandshake.refusal(of: request) {
                return refuse(refusal, body: [])
            }
            events.append(.requested(request))
        } catch {
            state = .asked(HTTPRequestHead(method: "GET", target: "/"))
            refuse(HTTPResponseHead(status: 400, reason: "Bad Request"), body: [])
        }
    }

    /// Opens the requested connection.
    ///
    /// - Parameters:
    ///   - subprotocol: One of the offered subprotocols, or nil.
    ///   - headers: Further fields of the response.
    package mutating func accept(subprotocol: String? = nil, headers: HTTPHeaders = [:]) {
        guard case .asked(let request) = state else { return }
        let (head, opening) = WebSocketServerHandshake.response(
            to: request,
            subprotocol: subprotocol,
            deflate: Compression.isAvailable ? configuration.deflate : nil,
            headers: headers
        )
        do { try head.encode(into: &writer.outbound) } catch {
            return refuse(HTTPResponseHead(status: 500, reason: "Internal Server Error"), body: [])
        }
        open(opening)
    }

    /// Refuses the requested connection, and closes the stream.
    package mutating func refuse(_ head: HTTPResponseHead, body: [UInt8]) {
        guard case .asked = state else { return }
        var head = head
        head.headers.append(name: "Content-Length", value: String(body.count))
        head.headers.append(name: "Connection", value: "close")
        try? head.encode(into: &writer.outbound)
        writer.outbound.append(contentsOf: body)
        finish(.refused(head, body: body))
    }

    // MARK: Both

    private mutating func open(_ opening: WebSocketOpening) {
        if let deflate = opening.deflate { startCompression(deflate) }
        state = .open
        events.append(.opened(opening))
    }

    private mutating func startCompression(_ deflate: PermessageDeflate) {
        let client = (bits: deflate.clientMaxWindowBits ?? 15, !deflate.clientNoContextTakeover)
        let server = (bits: deflate.serverMaxWindowBits, !deflate.serverNoContextTakeover)
        let (ours, theirs) = role == .client ? (client, server) : (server, client)
        reader = WebSocketReader(
            role: role,
            maximumMessageSize: configuration.maximumMessageSize,
            // A larger window than agreed can decode everything that a smaller one can.
            inflater: Inflater(windowBits: max(theirs.bits, 9), keepsContext: theirs.1)
        )
        // zlib has no window of 8 bits for raw data; messages are then sent uncompressed.
        guard ours.bits > 8 else { return }
        writer.deflater = Deflater(windowBits: ours.bits, keepsContext: ours.1)
    }
}
