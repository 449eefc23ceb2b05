package import HTTPWire
package import WireCore

/// The client side of one event stream: a request, its response, and the events in it.
///
/// | state | event → next state |
/// | --- | --- |
/// | asked | 200 with `text/event-stream` → open; another response → refused; violation, time → closed |
/// | open | the end of the body, a limit, silence → closed |
/// | refused | the end of the body, 64 KiB of it, time → closed |
/// | closed | none |
package struct EventStreamConnection: ProtocolCore {
    /// An event for the driver.
    package enum Event: Sendable {
        /// The server streams events from now on.
        case opened(HTTPResponseHead)
        case events(EventStreamArrivals)
        /// Events above the limit, which were not kept.
        case skipped(EventStreamSkipped)
        /// The text of a comment, if comments are reported.
        case comment(String)
        /// The connection ended; no event follows.
        case closed(EventStreamClosure)
    }

    private enum State: Sendable {
        case asked
        case open
        case refused(HTTPResponseHead, HTTPBodyCollector)
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
    /// The events of the stream since the last of ``events``.
    private var arrivals = EventStreamArrivals()
    /// The number of events that were not taken, with each of the stream counted.
    private var reportedCount = 0

    /// Events of the HTTP connection that are not handled yet, in order.
    private var pending: ArraySlice<HTTPClientConnection.Event> = []
    /// The rest of a piece of the body that is not decompressed yet; nil if there is none.
    private var compressed: ByteSlice?
    /// Whether the buffer may hold a complete event.
    private var isUnparsed = false
    package private(set) var hasMoreInput = false

    /// - Parameters:
    ///   - lastEventID: The id of the last event of an earlier stream.
    ///   - limits: The limits of data gathered from a stream.
    ///   - acceptsCompression: Whether the request accepts codings other than `identity`.
    ///   - idleTimeout: The longest silence of the stream; nil for no limit.
    ///   - reportsComments: Whether comments are reported as events.
    package init(
        lastEventID: String,
        limits: EventStreamLimits,
        acceptsCompression: Bool = true,
        idleTimeout: Duration?,
        reportsComments: Bool = false
    ) {
        self.acceptsCompression = acceptsCompression
        self.reportsComments = reportsComments
        http = HTTPClientConnection(idleTimeout: idleTimeout)
        parser = EventStreamParser(
            lastEventID: lastEventID,
            limits: limits,
            keepsComments: reportsComments
        )
    }

    /// Requests the stream.
    ///
    /// - Throws: `HTTPRequestError`; nothing was written then.
    package mutating func request(
        _ head: HTTPRequestHead,
        body: some WireBytes,
        timeout: Duration,
        at now: WireInstant
    ) throws(HTTPRequestError) {
        try http.send(head, body: body, timeout: timeout, at: now)
    }

    /// The id of the last event so far.
    package var lastEventID: String { parser.lastEventID }

    /// The reconnection time that the server has set; nil if it has set none.
    package var reconnectionTime: Duration? { parser.reconnectionTime }

    /// Notes that the driver has stopped or resumed reading.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        http.holdReading(isHeld, at: now)
    }

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

    package var hasEvents: Bool { !events.isEmpty || !arrivals.isEmpty }

    /// The number of events, with each of the stream counted.
    private var eventCount: Int { reportedCount + arrivals.count }

    package mutating func takeEvents() -> [Event] {
        endArrivals()
        reportedCount = 0
        defer { events = [] }
        return events
    }

    /// Adds an event behind those of the stream that arrived before it.
    private mutating func report(_ event: Event) {
        endArrivals()
        reportedCount += 1
        events.append(event)
    }

    private mutating func endArrivals() {
        guard !arrivals.isEmpty else { return }
        reportedCount += arrivals.count
        events.append(.events(arrivals))
        arrivals = EventStreamArrivals()
    }

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        var turn = beginTurn()
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

    /// The amount of work that one call may do, besides the lines of the parser.
    private struct Turn {
        /// The lines that one call may read.
        static let maximumLineCount = 4_096
        /// The bytes that one call may decompress, and 16 KiB more.
        private static let maximumByteCount = 64 << 10

        private let eventLimit: Int
        private var byteCount = 0
        fileprivate var isOver = false

        init(_ eventCount: Int) {
            eventLimit = eventCount + ReceiveTurn.maximumEventCount
        }

        /// Counts events, or bytes that were decompressed.
        mutating func note(_ eventCount: Int, byteCount more: Int = 0) {
            byteCount += more
            isOver =
                eventCount >= eventLimit || byteCount >= Self.maximumByteCount
        }
    }

    private mutating func beginTurn() -> Turn {
        parser.linesLeft = Turn.maximumLineCount
        return Turn(eventCount)
    }

    /// Handles the events after an end of stream or a timeout.
    private mutating func handleResponse() {
        pending += http.takeEvents()
        var turn = beginTurn()
        handlePending(&turn)
        hasMoreInput = !isFinished && turn.isOver
    }

    /// Handles pending events in order, until there are none or the turn is over.
    private mutating func handlePending(_ turn: inout Turn) {
        while !isFinished {
            if isUnparsed { parse(&turn) }
            guard !turn.isOver, !isFinished else { return }
            if compressed != nil {
                decompress(&turn)
                continue
            }
            guard let event = pending.popFirst() else {
                // An empty slice would keep the whole array alive.
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
            let body = HTTPBodyCollector(
                limit: HTTPBodyCollector.refusalLimit,
                decoder: decoder
            )
            state = .refused(head, body)
            http.limitRefusal()
            return
        }
        if let coding = codings.first, decoder == nil { return close(.unknownCoding(coding)) }
        state = .open
        report(.opened(head))
    }

    private mutating func take(_ slice: ByteSlice) {
        switch state {
        case .refused(let head, var body):
            let wantsMore = body.append(slice)
            state = .refused(head, body)
            if !wantsMore { end(.endOfStream) }
        case .open:
            guard decoder == nil else { return compressed = slice }
            slice.withUnsafeBytes { append($0) }
        case .asked, .closed: break
        }
    }

    /// Decompresses one part of the rest.
    private mutating func decompress(_ turn: inout Turn) {
        guard let decoder, var rest = compressed else { return compressed = nil }
        var byteCount = 0
        let progress = decoder.decodePart(of: &rest) { part in
            byteCount = part.count
            append(part)
        }
        compressed = progress == .more ? rest : nil
        if progress == .broken { return close(.invalidCoding) }
        turn.note(eventCount, byteCount: byteCount)
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        _ = buffer.fill(atLeast: bytes.count) { space in
            space.copyMemory(from: bytes)
            return bytes.count
        }
        isUnparsed = true
    }

    /// Takes events from the buffer until there are none, or the turn is over.
    private mutating func parse(_ turn: inout Turn) {
        do throws(EventStreamViolation) {
            while true {
                let event = try parser.next(&buffer)
                if reportsComments {
                    // All comments read here precede the event that was read with them.
                    for comment in parser.takeComments() { report(.comment(comment)) }
                }
                if let skipped = parser.takeSkipped() { report(.skipped(skipped)) }
                guard let event else {
                    guard parser.linesLeft <= 0 else { break }
                    // The rest of the buffer is for the next turn.
                    return turn.isOver = true
                }
                if !arrivals.append(event, readFrom: buffer) {
                    endArrivals()
                    _ = arrivals.append(event, readFrom: buffer)
                }
                turn.note(eventCount)
                if turn.isOver { return }
            }
            isUnparsed = false
        } catch {
            close(.violation(error))
        }
    }

    /// Handles the end of the body or of the connection.
    private mutating func end(_ closure: EventStreamClosure) {
        if case .refused(let head, let body) = state {
            close(.refused(head, body: body.bytes))
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
        report(.closed(closure))
    }
}

/// The reason why an event stream ended.
package enum EventStreamClosure: Hashable, Sendable {
    /// This side ended it.
    case closed
    /// The response is no event stream: its head, and up to 64 KiB of its body.
    case refused(HTTPResponseHead, body: [UInt8])
    /// The stream ended regularly: the client is expected to reconnect.
    case endOfStream
    /// The connection ended, or the peer violated HTTP/1.1.
    case connection(HTTPClosure)
    /// A line of an `id`, `event` or `retry` field exceeds the limit.
    case violation(EventStreamViolation)
    /// A content coding that the request did not accept.
    case unknownCoding(String)
    /// Data that does not match its content coding.
    case invalidCoding
}
