package import WireCore

/// The server side of a STOMP connection, as far as tests and demonstrations need it.
///
/// It handles one connection; the broker handles destinations, routing and transactions.
///
/// | state | event → next state |
/// | --- | --- |
/// | waiting | CONNECT → asked; anything else, or time → closed |
/// | asked | ``accept(server:session:heartBeat:headers:at:)`` → connected; ERROR → closed |
/// | connected | DISCONNECT → leaving; ERROR, violation, silence, end of stream → closed |
/// | leaving | the last owed receipt, time, end of stream → closed |
/// | closed | none |
package struct STOMPServerConnection: ProtocolCore {
    enum State: Sendable {
        case waiting(deadline: WireInstant)
        /// The client's heart-beats, until the broker decides about its CONNECT.
        case asked(STOMPHeartBeat)
        case connected
        case leaving(receipt: String?, deadline: WireInstant)
        case closed
    }

    let configuration: STOMPServerConfiguration
    var state: State
    var decoder: STOMPFrameDecoder
    var writer: STOMPFrameWriter
    var events: [STOMPServerEvent] = []
    /// Frames that arrived before the broker's decision about the CONNECT.
    var held: [STOMPFrame] = []
    var heartBeats: STOMPHeartBeatClock
    var scopes = STOMPServerScopes()
    /// The receipts that the broker owes, with the number of times.
    var owed: [WireName: Int] = [:]

    /// - Parameters:
    ///   - configuration: The settings.
    ///   - now: The current time; the time limit for CONNECT begins here.
    package init(
        configuration: STOMPServerConfiguration = STOMPServerConfiguration(),
        at now: WireInstant
    ) {
        self.configuration = configuration
        state = .waiting(deadline: now.advanced(by: configuration.connectTimeout))
        decoder = STOMPFrameDecoder(role: .server, limits: configuration.limits)
        writer = STOMPFrameWriter(isTracing: configuration.isTracing)
        heartBeats = STOMPHeartBeatClock(.none, at: now)
    }

    package var outboundByteCount: Int { writer.outbound.count }

    package var outbound: ByteWriter {
        get { writer.outbound }
        set { writer.outbound = newValue }
        _modify { yield &writer.outbound }
    }

    package var isFinished: Bool {
        if case .closed = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [STOMPServerEvent] {
        defer { events = [] }
        return events
    }

    /// The agreed version; nil before CONNECT.
    package var version: STOMPVersion? { writer.version }

    // MARK: Time

    package var deadline: WireInstant? {
        switch state {
        case .waiting(let deadline), .leaving(_, let deadline): deadline
        case .connected: heartBeats.deadline
        case .asked, .closed: nil
        }
    }

    package mutating func advance(to now: WireInstant) {
        switch state {
        case .waiting(let deadline) where deadline <= now: close(.timedOut)
        case .leaving(_, let deadline) where deadline <= now: close(.disconnected)
        case .connected:
            switch heartBeats.due(at: now) {
            case .nothing: break
            case .beat:
                writer.writeHeartBeat()
                takeTraces()
            case .giveUp:
                writeError("no heart-beat in time", receiptID: nil, STOMPHeaders(), [UInt8]())
                close(.timedOut)
            }
        default: break
        }
    }

    // MARK: Decisions of the broker

    /// Accepts the client with CONNECTED.
    ///
    /// - Parameters:
    ///   - server: The name of the server.
    ///   - session: The session's identifier.
    ///   - heartBeat: The heart-beats that the server can send and wants to receive; not sent in 1.0.
    ///   - headers: Further headers.
    ///   - now: The current time.
    package mutating func accept(
        server: String? = nil,
        session: String? = nil,
        heartBeat: STOMPHeartBeat = .none,
        headers: STOMPHeaders = STOMPHeaders(),
        at now: WireInstant
    ) {
        guard case .asked(let clientHeartBeat) = state, let version else { return }
        var all = STOMPHeaders()
        if version > .v1_0 {
            all.append(STOMPHeaderName.version, version.text)
            all.append(STOMPHeaderName.heartBeat, heartBeat.text)
        }
        if let server { all.append(STOMPHeaderName.server, server) }
        if let session { all.append(STOMPHeaderName.session, session) }
        all.append(headers)
        state = .connected
        let agreed = version > .v1_0 ? heartBeat.agreed(with: clientHeartBeat) : .none
        heartBeats = STOMPHeartBeatClock(agreed, at: now)
        try? write(.connected, all, body: ByteSlice.empty, at: now)
        let frames = held
        held = []
        for frame in frames {
            // Nothing may follow DISCONNECT or a violation.
            guard case .connected = state else { return }
            handleOrViolate(frame, at: now)
        }
    }

    /// Sends a message with `destination`, `message-id`, `subscription` and, if needed, `ack`.
    ///
    /// - Parameters:
    ///   - headers: All headers except content-length.
    ///   - body: The body, copied once.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func message(
        _ headers: STOMPHeaders,
        body: some WireBytes,
        at now: WireInstant
    ) throws(STOMPSendError) {
        switch state {
        case .connected, .leaving: break
        case .waiting, .asked, .closed: throw .notConnected
        }
        try write(.message, headers, body: body, at: now)
    }

    /// Sends the receipt of a request.
    ///
    /// - Parameters:
    ///   - id: The receipt id of the event.
    ///   - now: The current time.
    package mutating func receipt(_ id: String, at now: WireInstant) {
        switch state {
        case .connected, .leaving: break
        case .waiting, .asked, .closed: return
        }
        writeReceipt(id, at: now)
        if let count = owed[id] { owed[id] = count > 1 ? count - 1 : nil }
        leaveIfDone(at: now)
    }

    /// Sends ERROR and closes; also used to refuse a CONNECT.
    ///
    /// - Parameters:
    ///   - message: The short error text.
    ///   - receiptID: The receipt of the failed request, if it requested one.
    ///   - headers: Further headers.
    ///   - body: More text.
    package mutating func error(
        message: String,
        receiptID: String? = nil,
        headers: STOMPHeaders = STOMPHeaders(),
        body: some WireBytes = ByteSlice.empty
    ) {
        guard !isFinished else { return }
        writeError(message, receiptID: receiptID, headers, body)
        close(.error)
    }

    // MARK: Writing

    mutating func write(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        at now: WireInstant
    ) throws(STOMPSendError) {
        try writer.write(command, headers, body: body)
        heartBeats.noteSent(at: now)
        takeTraces()
    }

    private mutating func writeReceipt(_ id: String, at now: WireInstant) {
        try? write(.receipt, [STOMPHeaderName.receiptID: id], body: ByteSlice.empty, at: now)
    }

    mutating func writeError(
        _ message: String,
        receiptID: String?,
        _ headers: STOMPHeaders,
        _ body: some WireBytes
    ) {
        var all: STOMPHeaders = [STOMPHeaderName.message: message]
        if let receiptID { all.append(STOMPHeaderName.receiptID, receiptID) }
        all.append(headers)
        try? writer.write(.error, all, body: body)
        takeTraces()
    }

    mutating func takeTraces() {
        guard configuration.isTracing else { return }
        events.append(contentsOf: writer.takeTraces().map { .trace($0) })
    }

    // MARK: The end

    package mutating func receiveEndOfStream(at now: WireInstant) {
        if case .leaving = state { close(.disconnected) } else { close(.endOfStream) }
    }

    /// Answers DISCONNECT when no earlier receipt is owed any more.
    mutating func leaveIfDone(at now: WireInstant) {
        guard case .leaving(let receipt, _) = state, owed.isEmpty else { return }
        if let receipt { writeReceipt(receipt, at: now) }
        close(.disconnected)
    }

    mutating func close(_ closure: STOMPServerClosure) {
        guard !isFinished else { return }
        state = .closed
        held = []
        events.append(.closed(closure))
    }
}
