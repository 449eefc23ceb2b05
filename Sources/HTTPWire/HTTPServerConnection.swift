package import WireCore

/// The server side of an HTTP/1.1 connection: one request after another, each answered before the next.
///
/// | state | event → next state |
/// | --- | --- |
/// | awaiting | the head → receiving; violation, time, end of stream → finished |
/// | receiving | the whole body → answering; violation, time, end of stream → finished |
/// | answering | ``respond(_:body:at:)`` → awaiting; ``beginStream(_:at:)`` → streaming |
/// | streaming | ``endStream(at:)`` → awaiting; end of stream → finished |
/// | finished | none |
///
/// After the last response of a connection the state is finished, too. Data that a client sends before its request is
/// answered waits, within the limits of one request.
package struct HTTPServerConnection: ProtocolCore {
    /// The limits of a request.
    package struct Limits: Hashable, Sendable {
        package var head: HTTPHeadLimits
        /// The body, in bytes.
        package var bodyByteCount: Int

        /// Makes limits; by default those of ``HTTPHeadLimits``, and 1 MiB of body.
        package init(head: HTTPHeadLimits = HTTPHeadLimits(), bodyByteCount: Int = 1 << 20) {
            self.head = head
            self.bodyByteCount = bodyByteCount
        }
    }

    /// An event for the driver.
    package enum Event: Hashable, Sendable {
        /// A complete request, which needs a response.
        case request(HTTPRequestHead, body: [UInt8])
        /// The connection ended; no event follows.
        case closed(HTTPServerClosure)
    }

    private enum State: Sendable {
        case awaiting
        case receiving(HTTPRequestHead, HTTPBodyDecoder, body: [UInt8])
        case answering(HTTPRequestHead)
        case streaming(isChunked: Bool, isLast: Bool)
        case finished
    }

    private var state = State.awaiting
    private var heads: HTTPHeadDecoder
    private let limits: Limits
    private var events: [Event] = []
    /// Data that has arrived and was not read yet.
    private var waiting = ReceiveBuffer(capacity: 4_096)

    /// The time limit of a request, from its first byte or the opening of the connection to its last byte.
    private let requestTimeout: Duration
    /// The time by which the present request must have arrived; nil if there is none.
    private var requestDeadline: WireInstant?

    /// The bytes to send.
    package var outbound = ByteWriter()

    /// - Parameters:
    ///   - limits: The limits of a request.
    ///   - requestTimeout: The time limit of a request.
    ///   - now: The current time.
    package init(limits: Limits = Limits(), requestTimeout: Duration, at now: WireInstant) {
        self.limits = limits
        self.requestTimeout = requestTimeout
        heads = HTTPHeadDecoder(limits: limits.head)
        requestDeadline = now.advanced(by: requestTimeout)
    }

    // MARK: Answering

    /// Answers the last reported request with a body of known length.
    ///
    /// - Parameters:
    ///   - head: Status and fields, without `Content-Length`, `Transfer-Encoding` and `Connection`.
    ///   - body: The body; HEAD, 204 and 304 get none.
    ///   - now: The current time.
    /// - Throws: `HTTPResponseError`; nothing was written then.
    package mutating func respond(
        _ head: HTTPResponseHead,
        body: some WireBytes = [],
        at now: WireInstant
    ) throws(HTTPResponseError) {
        guard case .answering(let request) = state else { throw .notAsked }
        let isLast = Self.isLast(request)
        var head = head
        let mayHaveBody = head.status != 204 && head.status != 304
        if mayHaveBody {
            head.headers.append(name: "Content-Length", value: String(body.wireByteCount))
        }
        try write(head, isLast: isLast)
        if mayHaveBody, request.method != "HEAD" { outbound.append(body) }
        finishResponse(isLast: isLast, at: now)
    }

    /// Answers the last reported request with a body of unknown length.
    ///
    /// The body is sent in chunks, or until the end of the connection for a client without chunks (RFC 9112, 6.3).
    ///
    /// - Parameters:
    ///   - head: As in ``respond(_:body:at:)``.
    ///   - now: The current time.
    /// - Throws: `HTTPResponseError`; nothing was written then.
    package mutating func beginStream(
        _ head: HTTPResponseHead,
        at now: WireInstant
    ) throws(HTTPResponseError) {
        guard case .answering(let request) = state else { throw .notAsked }
        let isChunked = !request.isVersion1_0
        let isLast = Self.isLast(request)
        var head = head
        if isChunked { head.headers.append(name: "Transfer-Encoding", value: "chunked") }
        try write(head, isLast: isLast)
        guard request.method != "HEAD" else { return finishResponse(isLast: isLast, at: now) }
        state = .streaming(isChunked: isChunked, isLast: isLast)
    }

    /// Sends more data of a stream; does nothing without a stream.
    package mutating func stream(_ bytes: some WireBytes) {
        guard case .streaming(let isChunked, _) = state, bytes.wireByteCount > 0 else { return }
        if isChunked {
            let size = String(bytes.wireByteCount, radix: 16)
            outbound.append(contentsOf: "\(size)\r\n".utf8)
        }
        outbound.append(bytes)
        if isChunked { outbound.append(contentsOf: "\r\n".utf8) }
    }

    /// Ends a stream in the regular way.
    package mutating func endStream(at now: WireInstant) {
        guard case .streaming(let isChunked, let isLast) = state else { return }
        if isChunked { outbound.append(contentsOf: "0\r\n\r\n".utf8) }
        finishResponse(isLast: isLast, at: now)
    }

    /// Ends the connection after the pending bytes were sent.
    package mutating func close() {
        finish(.closed)
    }

    package var isStreaming: Bool {
        if case .streaming = state { true } else { false }
    }

    /// Whether a client wants no further response on the connection (RFC 9112, 9.3).
    private static func isLast(_ request: HTTPRequestHead) -> Bool {
        request.isVersion1_0 || request.headers.contains("connection", member: "close")
    }

    private mutating func write(
        _ head: HTTPResponseHead,
        isLast: Bool
    ) throws(HTTPResponseError) {
        var head = head
        if isLast { head.headers.append(name: "Connection", value: "close") }
        do { try head.encode(into: &outbound) } catch { throw .encoding(error) }
    }

    private mutating func finishResponse(isLast: Bool, at now: WireInstant) {
        guard !isLast else { return finish(.closed) }
        state = .awaiting
        read(at: now)
    }

    // MARK: ProtocolCore

    package var isFinished: Bool {
        if case .finished = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    package var deadline: WireInstant? {
        switch state {
        case .awaiting, .receiving: requestDeadline
        case .answering, .streaming, .finished: nil
        }
    }

    package mutating func advance(to now: WireInstant) {
        guard let deadline, deadline <= now else { return }
        refuse(408, .requestTimedOut)
    }

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        defer { buffer.removeAll() }
        guard !isFinished else { return }
        buffer.withUnsafeBytes { bytes in
            _ = waiting.fill(atLeast: bytes.count) { space in
                space.copyMemory(from: bytes)
                return bytes.count
            }
        }
        read(at: now)
        // Bounds the memory for a client that sends more requests before it gets a response.
        if waiting.count > limits.head.byteCount + limits.bodyByteCount { finish(.tooEager) }
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        finish(.endOfStream)
    }

    // MARK: Requests

    private mutating func read(at now: WireInstant) {
        if case .awaiting = state, waiting.count > 0, requestDeadline == nil {
            requestDeadline = now.advanced(by: requestTimeout)
        }
        do throws(HTTPViolation) {
            while try step() {}
        } catch {
            refuse(Self.status(for: error), .violation(error))
        }
        if isFinished { waiting.removeAll() }
    }

    /// Handles the waiting data.
    ///
    /// - Returns: Whether there may be more to do.
    private mutating func step() throws(HTTPViolation) -> Bool {
        switch state {
        case .answering, .streaming, .finished: return false
        case .awaiting:
            guard let head = try heads.nextRequest(&waiting) else { return false }
            try begin(head)
            return true
        case .receiving(let head, var decoder, var body):
            let part = try decoder.next(&waiting)
            if case .bytes(let slice)? = part {
                guard body.count + slice.count <= limits.bodyByteCount else { return tooLarge() }
                slice.withUnsafeBytes { body += $0 }
            }
            state = .receiving(head, decoder, body: body)
            guard let part else { return false }
            if case .end = part {
                state = .answering(head)
                requestDeadline = nil
                events.append(.request(head, body: body))
            }
            return true
        }
    }

    private mutating func begin(_ head: HTTPRequestHead) throws(HTTPViolation) {
        // Exactly one, so that no intermediary can read another host (RFC 9112, 3.2).
        guard head.isVersion1_0 || head.headers.all("host").count == 1 else {
            throw .malformedField
        }
        let framing = try HTTPBodyFraming(head)
        if case .length(let length) = framing, length > limits.bodyByteCount {
            _ = tooLarge()
            return
        }
        let isAwaited = framing != .length(0) && waiting.count == 0 && !head.isVersion1_0
        if isAwaited, head.headers.contains("expect", member: "100-continue") {
            outbound.append(contentsOf: "HTTP/1.1 100 Continue\r\n\r\n".utf8)
        }
        let decoder = HTTPBodyDecoder(framing, trailerLimits: limits.head)
        state = .receiving(head, decoder, body: [])
    }

    // MARK: Refusals

    private static func status(for violation: HTTPViolation) -> Int {
        switch violation {
        case .headTooLarge, .tooManyFields: 431
        case .unsupportedVersion: 505
        case .unsupportedTransferCoding: 501
        default: 400
        }
    }

    private mutating func tooLarge() -> Bool {
        refuse(413, .bodyTooLarge(maximum: limits.bodyByteCount))
        return false
    }

    /// Answers an invalid request and ends the connection.
    private mutating func refuse(_ status: Int, _ closure: HTTPServerClosure) {
        let head = HTTPResponseHead(
            status: status,
            headers: ["Content-Length": "0", "Connection": "close"]
        )
        // These fields are always valid.
        try? head.encode(into: &outbound)
        finish(closure)
    }

    private mutating func finish(_ closure: HTTPServerClosure) {
        guard !isFinished else { return }
        state = .finished
        waiting.removeAll()
        events.append(.closed(closure))
    }
}
