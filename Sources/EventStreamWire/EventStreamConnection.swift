package import HTTPWire
package import WireCore

/// The client's end of one event stream: a request, its answer, and the events in it.
///
/// | state | what moves it on |
/// | --- | --- |
/// | waiting | ``request(_:body:timeout:at:)`` → asked |
/// | asked | 200 with `text/event-stream` → open; another answer → refused |
/// | open | the end of the body, a limit, silence → closed |
/// | refused | the end of the body, 64 KiB of it, time → closed |
package struct EventStreamConnection: ProtocolCore {
    /// What the connection tells its driver.
    package enum Event: Hashable, Sendable {
        /// The server streams events from now on.
        case opened(HTTPResponseHead)
        case event(EventStreamEvent)
        /// The text of a comment, where comments are wanted.
        case comment(String)
        /// The connection is over; nothing follows.
        case closed(EventStreamClosure)
    }

    private enum State: Sendable {
        case asked
        case open
        case refused(HTTPResponseHead, body: [UInt8])
        case closed
    }

    private var state = State.asked
    private var http: HTTPClientConnection
    private var parser: EventStreamParser
    private let acceptsCompression: Bool
    private let reportsComments: Bool
    private var decoder: HTTPContentDecoder?
    /// The stream without the framing of its body.
    private var buffer = ReceiveBuffer(capacity: 4_096)
    private var events: [Event] = []

    /// What the connection below has told and is not handled yet, in order.
    private var pending: ArraySlice<HTTPClientConnection.Event> = []
    /// What is left to decompress of a piece of the body; nil when nothing is.
    private var compressed: ByteSlice?
    /// Whether the buffer may hold a whole event.
    private var isUnparsed = false
    package private(set) var hasMoreInput = false

    /// How much of the body of a refusal is kept: 64 KiB.
    private static let refusalLimit = 65_536

    /// - Parameters:
    ///   - lastEventID: Where an earlier stream stopped.
    ///   - limits: How much of a stream may be gathered.
    ///   - headLimits: How large the head of the answer may be.
    ///   - acceptsCompression: Whether the request asks for more than `identity`.
    ///   - idleTimeout: How long the stream may be silent; nil for any time.
    ///   - reportsComments: Whether comments are events of this connection, too.
    package init(
        lastEventID: String,
        limits: EventStreamLimits,
        headLimits: HTTPHeadLimits = HTTPHeadLimits(),
        acceptsCompression: Bool = true,
        idleTimeout: Duration?,
        reportsComments: Bool = false
    ) {
        self.acceptsCompression = acceptsCompression
        self.reportsComments = reportsComments
        http = HTTPClientConnection(limits: headLimits, idleTimeout: idleTimeout)
        parser = EventStreamParser(
            lastEventID: lastEventID,
            limits: limits,
            keepsComments: reportsComments
        )
    }

    /// Asks for the stream.
    /// - Throws: `HTTPRequestError`; nothing was written then.
    package mutating func request(
        _ head: HTTPRequestHead,
        body: some WireBytes,
        timeout: Duration,
        at now: WireInstant
    ) throws(HTTPRequestError) {
        try http.send(head, body: body, timeout: timeout, at: now)
    }

    /// Where the stream has come to.
    package var lastEventID: String { parser.lastEventID }

    /// What the server has set; nil if it has not.
    package var reconnectionTime: Duration? { parser.reconnectionTime }

    /// Tells the core that its driver has stopped reading, or goes on.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        http.holdReading(isHeld, at: now)
    }

    /// Ends the stream.
    package mutating func close() {
        http.close()
        close(.closed)
    }

    // MARK: ProtocolCore

    package var outboundByteCount: Int { http.outboundByteCount }

    package var outbound: ByteWriter {
        get { http.outbound }
        set { http.outbound = newValue }
        _modify { yield &http.outbound }
    }

    package var deadline: WireInstant? { isFinished ? nil : http.deadline }

    package var isFinished: Bool {
        if case .closed = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        var turn = Turn(events)
        handlePending(&turn)
        while !turn.isOver {
            http.receive(&buffer, at: now)
            pending += http.takeEvents()
            handlePending(&turn)
            guard http.hasMoreInput, !isFinished else { break }
        }
        hasMoreInput = !isFinished && (turn.isOver || http.hasMoreInput)
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        http.receiveEndOfStream(at: now)
        handleResponse()
    }

    package mutating func receiveLoss(at now: WireInstant) {
        http.receiveLoss(at: now)
        handleResponse()
    }

    package mutating func advance(to now: WireInstant) {
        http.advance(to: now)
        handleResponse()
    }

    // MARK: The answer

    /// How much one call may still bring.
    private struct Turn {
        private let eventLimit: Int
        private var byteCount = 0
        fileprivate var isOver = false

        init(_ events: [Event]) {
            eventLimit = events.count + ReceiveTurn.maximumEventCount
        }

        /// Notes an event, or bytes that were decompressed.
        mutating func note(_ events: [Event], byteCount more: Int = 0) {
            byteCount += more
            isOver =
                events.count >= eventLimit || byteCount >= ReceiveTurn.maximumByteCount
        }
    }

    /// Handles what an end, or the time, has brought.
    private mutating func handleResponse() {
        pending += http.takeEvents()
        var turn = Turn(events)
        handlePending(&turn)
        hasMoreInput = !isFinished && turn.isOver
    }

    /// Handles what is there, in order, until it is done or the turn is over.
    private mutating func handlePending(_ turn: inout Turn) {
        while !isFinished {
            if isUnparsed { parse(&turn) }
            guard !turn.isOver, !isFinished else { return }
            if compressed != nil {
                decompress(&turn)
                continue
            }
            guard let event = pending.popFirst() else {
                // An empty part of an array would keep the whole of it.
                pending = []
                return
            }
            switch event {
            case .head(let head): begin(head)
            case .body(let slice): take(slice)
            case .end: end(.endOfStream)
            case .closed(let closure): end(.connection(closure))
            }
        }
    }

    private mutating func begin(_ head: HTTPResponseHead) {
        let codings = head.headers.members("content-encoding")
            .filter { !HTTPSyntax.areSameName($0, "identity") }
        if acceptsCompression, codings.count == 1 {
            decoder = HTTPContentDecoder(coding: codings[0])
        }
        let contentType = head.headers.first("content-type") ?? ""
        let media = Substring(contentType.utf8.prefix { $0 != UInt8(ascii: ";") })
        guard head.status == 200,
            HTTPSyntax.areSameName(HTTPSyntax.trimmed(media), "text/event-stream")
        else {
            state = .refused(head, body: [])
            // Nobody waits for the end of what is no stream for longer than for its head.
            http.limitWhole()
            return
        }
        if let coding = codings.first, decoder == nil { return close(.unknownCoding(coding)) }
        state = .open
        events.append(.opened(head))
    }

    private mutating func take(_ slice: ByteSlice) {
        switch state {
        case .refused(let head, var body):
            let wantsMore = keep(slice, in: &body)
            state = .refused(head, body: body)
            if !wantsMore { end(.endOfStream) }
        case .open:
            guard decoder == nil else { return compressed = slice }
            slice.withUnsafeBytes { append($0) }
        case .asked, .closed: break
        }
    }

    /// Adds a piece to the body of a refusal, decoded where the answer is compressed.
    /// - Returns: Whether more of it is wanted: not beyond the limit, and not behind data that cannot be decoded.
    private func keep(_ slice: ByteSlice, in body: inout [UInt8]) -> Bool {
        func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
            body += bytes.prefix(Self.refusalLimit - body.count)
            return body.count < Self.refusalLimit
        }
        guard let decoder else { return slice.withUnsafeBytes(append) }
        return decoder.decode(slice, append)
    }

    /// Decompresses one part of what is left.
    private mutating func decompress(_ turn: inout Turn) {
        guard let decoder, var rest = compressed else { return compressed = nil }
        var byteCount = 0
        let progress = decoder.decodePart(of: &rest) { part in
            byteCount = part.count
            append(part)
        }
        compressed = progress == .more ? rest : nil
        if progress == .broken { return close(.invalidCoding) }
        turn.note(events, byteCount: byteCount)
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        _ = buffer.fill(atLeast: bytes.count) { space in
            space.copyMemory(from: bytes)
            return bytes.count
        }
        isUnparsed = true
    }

    /// Takes events from the buffer until there is none, or the turn is over.
    private mutating func parse(_ turn: inout Turn) {
        do throws(EventStreamViolation) {
            while true {
                let event = try parser.next(&buffer)
                if reportsComments {
                    // All that were read stand before the event that was read with them.
                    events += parser.takeComments().map { .comment($0) }
                }
                guard let event else { break }
                events.append(.event(event))
                turn.note(events)
                if turn.isOver { return }
            }
            isUnparsed = false
        } catch {
            close(.violation(error))
        }
    }

    /// The body, or the connection, is over.
    private mutating func end(_ closure: EventStreamClosure) {
        if case .refused(let head, let body) = state {
            close(.refused(head, body: body))
        } else {
            close(closure)
        }
    }

    private mutating func close(_ closure: EventStreamClosure) {
        guard !isFinished else { return }
        state = .closed
        pending = []
        compressed = nil
        http.close()
        events.append(.closed(closure))
    }
}

/// Why an event stream is over.
package enum EventStreamClosure: Hashable, Sendable {
    /// This side ended it.
    case closed
    /// The server's answer is no event stream: its head, and up to 64 KiB of its body.
    case refused(HTTPResponseHead, body: [UInt8])
    /// The stream has ended as it should: the client is to come again.
    case endOfStream
    /// The connection ended it, or broke HTTP/1.1.
    case connection(HTTPClosure)
    /// A line or an event is too long.
    case violation(EventStreamViolation)
    /// A content coding that was not asked for, any of them where none was.
    case unknownCoding(String)
    /// Data that is not what its content coding says.
    case invalidCoding
}
