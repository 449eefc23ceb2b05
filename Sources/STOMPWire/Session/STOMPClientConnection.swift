package import WireCore

/// The client's end of a STOMP connection, 1.0 to 1.2: a value without socket and clock.
///
/// | state | what moves it on |
/// | --- | --- |
/// | idle | ``connect(_:at:)`` → connecting |
/// | connecting | CONNECTED → connected; ERROR, violation, time, end of stream → closed |
/// | connected | ``disconnect(at:)`` → leaving or disconnecting; ERROR, violation, silence, end → closed |
/// | leaving | the last held frame is sent → disconnecting; time, as connected → closed |
/// | disconnecting | RECEIPT, time, end of stream → closed |
/// | closed | nothing; what arrives is ignored |
package struct STOMPClientConnection: ProtocolCore {
    /// What holds for every connection of a client.
    package struct Configuration: Sendable {
        /// How much of a frame to take.
        package var limits = STOMPLimits()
        /// How long the server may take for CONNECTED.
        package var connectTimeout = Duration.seconds(10)
        /// How long it may take for a RECEIPT.
        package var receiptTimeout = Duration.seconds(15)
        /// How long it may take for the RECEIPT of DISCONNECT.
        package var closeTimeout = Duration.seconds(5)
        /// How many requests may wait for their receipts at a time; further ones are held.
        package var maximumInFlight = 200
        /// Whether frames are reported as ``STOMPClientEvent/trace(_:)``.
        package var isTracing = false

        package init() {}
    }

    enum State: Sendable {
        case idle
        case connecting(deadline: WireInstant)
        case connected
        /// DISCONNECT is to follow the frames that are held.
        case leaving(deadline: WireInstant)
        case disconnecting(receipt: UInt64, deadline: WireInstant)
        case closed
    }

    package let configuration: Configuration

    var state = State.idle
    var decoder: STOMPFrameDecoder
    var writer: STOMPFrameWriter
    var events: [STOMPClientEvent] = []
    package internal(set) var hasMoreInput = false

    /// The request, to check the server's answer against.
    var request: STOMPConnect?
    /// Whether CONNECT was sent and no answer has come, nor ever came.
    package internal(set) var isUnanswered = false
    var heartBeats = STOMPHeartBeatClock(.none, at: .zero)
    /// Whether the driver does not read.
    var isReadingHeld = false
    var receipts = STOMPReceipts()
    /// What waits for receipts to come.
    var held = STOMPHeldFrames()
    var subscriptions = STOMPSubscriptions()
    /// The transactions that are open.
    package internal(set) var transactions: Set<WireName> = []

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        decoder = STOMPFrameDecoder(role: .client, limits: configuration.limits)
        writer = STOMPFrameWriter(isTracing: configuration.isTracing)
    }

    package var outboundByteCount: Int { writer.outbound.count }

    package var outbound: ByteWriter {
        get { writer.outbound }
        set { writer.outbound = newValue }
        _modify { yield &writer.outbound }
    }

    /// Whether frames can be sent.
    package var isConnected: Bool {
        if case .connected = state { true } else { false }
    }

    package var isFinished: Bool {
        if case .closed = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [STOMPClientEvent] {
        defer { events = [] }
        return events
    }

    /// The version that was agreed; nil before that.
    package var version: STOMPVersion? { writer.version }

    /// The ids of the subscriptions that are open, sorted.
    package var subscriptionIDs: [String] { subscriptions.ids }

    /// How the messages of a subscription are acknowledged; nil when it is not open.
    package func ackMode(ofSubscription id: String) -> STOMPAckMode? {
        subscriptions[id]?.ackMode
    }

    /// How many calls wait for a receipt.
    package var pendingReceiptCount: Int { receipts.count }

    package var openCallCount: Int { receipts.count }

    // MARK: Time

    package var deadline: WireInstant? {
        switch state {
        case .connecting(let deadline), .disconnecting(_, let deadline): deadline
        case .connected: workDeadline
        case .leaving(let deadline): workDeadline.map { min($0, deadline) } ?? deadline
        case .idle, .closed: nil
        }
    }

    /// When a heart-beat or a receipt is due.
    private var workDeadline: WireInstant? {
        switch (heartBeats.deadline, receipts.earliestDeadline) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    package mutating func advance(to now: WireInstant) {
        switch state {
        case .connecting(let deadline) where deadline <= now: close(.connectTimedOut)
        case .disconnecting(_, let deadline) where deadline <= now: close(.disconnected)
        case .leaving(let deadline) where deadline <= now: close(.disconnected)
        case .connected, .leaving:
            switch heartBeats.due(at: now) {
            case .nothing: break
            case .beat:
                writer.writeHeartBeat()
                takeTraces()
            case .giveUp: return close(.heartBeatMissed)
            }
            for call in receipts.takeExpired(at: now) { events.append(.timedOut(call)) }
            sendHeld(at: now)
        default: break
        }
    }

    /// Tells the core that its driver has stopped reading, or goes on: what is not read is no sign of
    /// death.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        heartBeats.holdReading(isHeld, at: now)
    }

    // MARK: Writing

    mutating func noteSent(at now: WireInstant) {
        heartBeats.noteSent(at: now)
        takeTraces()
    }

    mutating func takeTraces() {
        guard configuration.isTracing else { return }
        events.append(contentsOf: writer.takeTraces().map { .trace($0) })
    }

    // MARK: The end

    package mutating func receiveEndOfStream(at now: WireInstant) {
        if case .disconnecting = state {
            // Servers may close without the RECEIPT (DISCONNECT).
            close(.disconnected)
        } else {
            close(.endOfStream)
        }
    }

    /// Ends the connection for good, and every call with it.
    ///
    /// Nothing is said to the server: a client has no frame for its complaints.
    mutating func close(_ closure: STOMPClosure) {
        guard !isFinished else { return }
        state = .closed
        let calls = receipts.takeAll()
        events.append(contentsOf: calls.sent.map { .abandoned($0) })
        events.append(contentsOf: calls.unsent.map { .notSent($0) })
        held = STOMPHeldFrames()
        subscriptions = STOMPSubscriptions()
        transactions = []
        events.append(.closed(closure))
    }
}
