package import WireCore

/// The server's end of a STOMP connection: enough of a server for tests and demonstrations.
///
/// It keeps one connection in order; destinations, routing and transactions are the broker's.
///
/// | state | what moves it on |
/// | --- | --- |
/// | waiting | CONNECT → asked; anything else, or time → closed |
/// | asked | ``accept(server:session:heartBeat:headers:at:)`` → connected; ERROR → closed |
/// | connected | DISCONNECT → leaving; ERROR, violation, silence, end of stream → closed |
/// | leaving | the last receipt that is owed, time, end of stream → closed |
package struct STOMPServerConnection: ProtocolCore {
    /// What holds for every connection of a server.
    package struct Configuration: Sendable {
        /// The versions to agree to.
        package var versions = STOMPVersion.allCases
        /// How much of a frame to take.
        package var limits = STOMPLimits()
        /// How long the client may take for CONNECT.
        package var connectTimeout = Duration.seconds(10)
        /// How long the broker may take for the receipts that are owed at DISCONNECT.
        package var closeTimeout = Duration.seconds(5)
        /// How many frames to hold back until the broker has decided about CONNECT.
        package var maximumHeldFrameCount = 64
        /// Whether frames are reported as ``STOMPServerEvent/trace(_:)``.
        package var isTracing = false

        package init() {}
    }

    enum State: Sendable {
        case waiting(deadline: WireInstant)
        case asked
        case connected
        case leaving(receipt: String?, deadline: WireInstant)
        case closed
    }

    let configuration: Configuration
    var state: State
    var decoder: STOMPFrameDecoder
    var writer: STOMPFrameWriter
    var events: [STOMPServerEvent] = []
    /// What the client sent before the broker has decided about its CONNECT.
    var held: [STOMPFrame] = []
    var heartBeats: STOMPHeartBeatClock
    /// What the client said about heart-beats.
    var clientHeartBeat = STOMPHeartBeat.none
    var subscriptionIDs: Set<WireName> = []
    var transactions: Set<WireName> = []
    /// The receipts that the broker owes, and how often.
    var owed: [WireName: Int] = [:]

    /// - Parameters:
    ///   - configuration: What to accept.
    ///   - now: The time; CONNECT must come soon after it.
    package init(configuration: Configuration = Configuration(), at now: WireInstant) {
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

    /// The version that was agreed; nil before CONNECT.
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

    // MARK: What the broker decides

    /// Accepts the client with CONNECTED.
    ///
    /// - Parameters:
    ///   - server: What the server calls itself.
    ///   - session: What it calls the session.
    ///   - heartBeat: What it can give and wants to hear; not said in 1.0.
    ///   - headers: Further headers.
    ///   - now: The time.
    package mutating func accept(
        server: String? = nil,
        session: String? = nil,
        heartBeat: STOMPHeartBeat = .none,
        headers: STOMPHeaders = STOMPHeaders(),
        at now: WireInstant
    ) {
        guard case .asked = state, let version else { return }
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
            // Nothing may follow DISCONNECT, nor a violation.
            guard case .connected = state else { return }
            handleOrViolate(frame, at: now)
        }
    }

    /// Sends a message: `destination`, `message-id`, `subscription` and, where due, `ack`.
    ///
    /// - Parameters:
    ///   - headers: All headers but content-length.
    ///   - body: The message, copied once.
    ///   - now: The time.
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

    /// Answers a request that asked for it.
    ///
    /// - Parameters:
    ///   - id: The id that came with the event.
    ///   - now: The time.
    package mutating func receipt(_ id: String, at now: WireInstant) {
        switch state {
        case .connected, .leaving: break
        case .waiting, .asked, .closed: return
        }
        writeReceipt(id, at: now)
        if let count = owed[id] { owed[id] = count > 1 ? count - 1 : nil }
        leaveIfDone(at: now)
    }

    /// Sends ERROR and closes; also the refusal of a CONNECT.
    ///
    /// - Parameters:
    ///   - message: What failed, in short.
    ///   - receiptID: Which request failed, where it asked for a receipt.
    ///   - headers: Further headers.
    ///   - body: More words.
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
        do {
            try writer.write(command, headers, body: body)
        } catch {
            throw .encoding(error)
        }
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

    /// Answers DISCONNECT once nothing before it is owed any more.
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
