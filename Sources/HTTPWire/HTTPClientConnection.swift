package import WireCore

/// The client side of an HTTP/1.1 connection: one request after another, each answered before the next.
///
/// | state | event → next state |
/// | --- | --- |
/// | idle | ``send(_:body:timeout:at:)`` → awaiting; data, end of stream → finished |
/// | awaiting | the head → receiving; violation, time, end of stream → finished |
/// | receiving | the body's end → idle, or if the connection ends with it → finished; violation, silence → finished |
/// | finished | none |
package struct HTTPClientConnection: ProtocolCore {
    /// An event for the driver.
    package enum Event: Hashable, Sendable {
        /// The head of the response; interim responses are not reported.
        case head(HTTPResponseHead)
        /// A piece of the body as it arrived.
        case body(ByteSlice)
        /// The response is complete; `isReusable` says whether the connection takes another request.
        case end(trailers: HTTPHeaders, isReusable: Bool)
        /// The connection ended; no event follows.
        case closed(HTTPClosure)
    }

    private enum State: Sendable {
        case idle
        case awaiting(method: String)
        case receiving(isReusable: Bool)
        case finished
    }

    private var state = State.idle
    /// The body of the response that is being received.
    private var body = HTTPBodyDecoder(.length(0))
    private var heads: HTTPHeadDecoder
    private let limits: HTTPHeadLimits
    private var events: [Event] = []
    package private(set) var hasMoreInput = false
    private var interimCount = 0

    /// The longest silence of the peer during a response; nil for no limit.
    private let idleTimeout: Duration?
    private var lastReceived = WireInstant.zero
    private var isReadingHeld = false
    /// The time by which the head of the response, or with `isWholeLimited` the whole response, must have arrived.
    private var responseDeadline = WireInstant.zero
    private var responseTimeout = Duration.zero
    private var isWholeLimited: Bool

    /// The bytes to send.
    package var outbound = ByteWriter()

    /// - Parameters:
    ///   - limits: The limits of a head.
    ///   - idleTimeout: The longest silence of the peer within a body; nil for no limit.
    ///   - limitsWhole: Whether the time limit of a response includes its body.
    package init(
        limits: HTTPHeadLimits = HTTPHeadLimits(),
        idleTimeout: Duration? = nil,
        limitsWhole: Bool = false
    ) {
        isWholeLimited = limitsWhole
        self.limits = limits
        self.idleTimeout = idleTimeout
        heads = HTTPHeadDecoder(limits: limits)
    }

    // MARK: Sending

    /// Sends a request; the head gets the body's length.
    ///
    /// - Parameters:
    ///   - head: Method, target and fields, without `Content-Length`.
    ///   - body: The body; empty for none.
    ///   - timeout: The time limit for the head of the response, or for the whole response.
    ///   - now: The current time.
    /// - Throws: `HTTPRequestError`; nothing was written then.
    package mutating func send(
        _ head: HTTPRequestHead,
        body: some WireBytes,
        timeout: Duration,
        at now: WireInstant
    ) throws(HTTPRequestError) {
        guard case .idle = state else { throw .busy }
        var head = head
        let byteCount = body.wireByteCount
        if byteCount > 0 || !["GET", "HEAD", "DELETE", "OPTIONS"].contains(head.method) {
            head.headers.append(name: "Content-Length", value: String(byteCount))
        }
        do { try head.encode(into: &outbound) } catch { throw .encoding(error) }
        outbound.append(body)
        state = .awaiting(method: head.method)
        responseTimeout = timeout
        responseDeadline = now.advanced(by: timeout)
        lastReceived = now
    }

    package mutating func close() {
        finish(.closed)
    }

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        lastReceived = now
        if !isHeld { responseDeadline = now.advanced(by: responseTimeout) }
    }

    /// The longest wait for the rest of a refusal, whose head says what matters: 1 second.
    package static let refusalTime = Duration.seconds(1)

    /// Limits the rest of the present response to ``refusalTime``, or to what is left of the time for the whole.
    package mutating func limitRefusal() {
        isWholeLimited = true
        responseTimeout = min(responseTimeout, Self.refusalTime)
        responseDeadline = min(responseDeadline, lastReceived.advanced(by: Self.refusalTime))
    }

    // MARK: ProtocolCore

    package var isFinished: Bool {
        if case .finished = state { true } else { false }
    }

    /// Whether a request can be sent.
    package var isIdle: Bool {
        if case .idle = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    package var deadline: WireInstant? {
        guard !isReadingHeld else { return nil }
        switch state {
        case .awaiting: return responseDeadline
        case .receiving:
            let silence = idleTimeout.map { lastReceived.advanced(by: $0) }
            guard isWholeLimited else { return silence }
            return silence.map { min($0, responseDeadline) } ?? responseDeadline
        case .idle, .finished: return nil
        }
    }

    package mutating func advance(to now: WireInstant) {
        guard let deadline, deadline <= now else { return }
        if case .awaiting = state { return finish(.responseTimedOut) }
        let isOverdue = isWholeLimited && responseDeadline <= now
        finish(isOverdue ? .responseTimedOut : .idleTimedOut)
    }

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        lastReceived = now
        hasMoreInput = false
        let limit = events.count + ReceiveTurn.maximumEventCount
        do throws(HTTPViolation) {
            while try step(&buffer) {
                guard events.count < limit || isFinished else {
                    hasMoreInput = true
                    return
                }
            }
        } catch {
            finish(.violation(error))
        }
        if isFinished { buffer.removeAll() }
    }

    /// Handles the input in the buffer.
    ///
    /// - Returns: Whether there may be more to do.
    private mutating func step(_ buffer: inout ReceiveBuffer) throws(HTTPViolation) -> Bool {
        switch state {
        case .idle:
            // No request is pending.
            if buffer.count > 0 { finish(.unexpectedResponse) }
            return false
        case .finished: return false
        case .awaiting(let method):
            guard let head = try heads.nextResponse(&buffer) else { return false }
            guard !head.isInterim else {
                interimCount += 1
                guard interimCount <= 16 else { throw .tooManyFields(maximum: 16) }
                return true
            }
            try begin(head, method)
            return true
        case .receiving(let isReusable):
            guard let part = try body.next(&buffer) else { return false }
            take(part, isReusable: isReusable)
            return true
        }
    }

    private mutating func begin(
        _ head: HTTPResponseHead,
        _ method: String
    ) throws(HTTPViolation) {
        interimCount = 0
        events.append(.head(head))
        let framing = try HTTPBodyFraming(head, to: method)
        let keepsAlive =
            head.isVersion1_0
            ? head.headers.contains("connection", member: "keep-alive")
            : !head.headers.contains("connection", member: "close")
        let isReusable = keepsAlive && framing != .untilClose && head.status != 101
        body = HTTPBodyDecoder(framing, trailerLimits: limits)
        state = .receiving(isReusable: isReusable)
    }

    private mutating func take(_ part: HTTPBodyDecoder.Part, isReusable: Bool) {
        switch part {
        case .bytes(let slice): events.append(.body(slice))
        case .end(let trailers):
            events.append(.end(trailers: trailers, isReusable: isReusable))
            state = .idle
            if !isReusable { finish(.closed) }
        }
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        guard case .receiving = state else { return finish(.endOfStream) }
        do throws(HTTPViolation) {
            if let part = try body.receiveEndOfStream() { take(part, isReusable: false) }
            finish(.endOfStream)
        } catch {
            finish(.violation(error))
        }
    }

    /// A body that only the end of the connection would complete is incomplete (RFC 9112, 8).
    package mutating func receiveLoss(at now: WireInstant) {
        finish(.endOfStream)
    }

    private mutating func finish(_ closure: HTTPClosure) {
        guard !isFinished else { return }
        state = .finished
        events.append(.closed(closure))
    }
}

/// The reason why a connection ended.
package enum HTTPClosure: Hashable, Sendable {
    /// This side ended it, or the response announced its end.
    case closed
    /// The peer violated HTTP/1.1.
    case violation(HTTPViolation)
    /// The peer sent data without a request.
    case unexpectedResponse
    /// The head did not arrive in time.
    case responseTimedOut
    /// The peer was silent for too long within a body.
    case idleTimedOut
    /// The peer closed the stream.
    case endOfStream
}

/// The reason why a request was not sent.
package enum HTTPRequestError: Error, Hashable, Sendable {
    /// Another request is pending, or the connection has ended.
    case busy
    /// The head cannot be written.
    case encoding(HTTPEncodingError)
}
