package import WireCore

/// The client side of a STOMP connection, 1.0 to 1.2: a value without socket and clock.
///
/// | state | event → next state |
/// | --- | --- |
/// | idle | ``connect(_:at:)`` → connecting |
/// | connecting | CONNECTED → connected; ERROR, violation, time, end of stream → closed |
/// | connected | ``disconnect(at:)`` → leaving or disconnecting; ERROR, violation, silence, end → closed |
/// | leaving | the last held frame is sent → disconnecting; time, as connected → closed |
/// | disconnecting | RECEIPT, time, end of stream → closed |
/// | closed | none; arriving data is ignored |
package struct STOMPClientConnection: ProtocolCore {
    /// The settings of every connection of a client.
    package struct Configuration: Sendable {
        /// The limits of a frame.
        package var limits = STOMPLimits()
        /// The time limit for CONNECTED.
        package var connectTimeout = Duration.seconds(10)
        /// The time limit for a RECEIPT.
        package var receiptTimeout = Duration.seconds(15)
        /// The time limit for the RECEIPT of DISCONNECT.
        package var closeTimeout = Duration.seconds(5)
        /// The number of requests that may wait for their receipts; further requests are held.
        package var maximumInFlight = 200
        /// Whether frames are reported as ``STOMPClientEvent/trace(_:)``.
        package var isTracing = false

        package init() {}
    }

    enum State: Sendable {
        case idle
        case connecting(deadline: WireInstant)
        case connected
        /// DISCONNECT will follow the held frames.
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

    /// The request, against which the server's answer is checked.
    var request: STOMPConnect?
    /// Whether CONNECT was sent and no answer arrived, also after the end.
    package internal(set) var isUnanswered = false
    var heartBeats = STOMPHeartBeatClock(.none, at: .zero)
    /// Whether the driver has stopped reading.
    var isReadingHeld = false
    var receipts = STOMPReceipts()
    /// The frames that wait until receipts arrive.
    var held = STOMPHeldFrames()
    var subscriptions = STOMPSubscriptions()
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

    /// The agreed version; nil before that.
    package var version: STOMPVersion? { writer.version }

    /// The ids of the open subscriptions, sorted.
    package var subscriptionIDs: [String] { subscriptions.ids }

    /// The ack mode of a subscription; nil if it is not open.
    package func ackMode(ofSubscription id: String) -> STOMPAckMode? {
        subscriptions[id]?.ackMode
    }

    /// The number of calls that wait for a receipt.
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

    /// The time at which a heart-beat or a receipt is due.
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

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
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
            // Servers may close without sending the RECEIPT (DISCONNECT).
            close(.disconnected)
        } else {
            close(.endOfStream)
        }
    }

    /// Ends the connection, and every call with it.
    ///
    /// Nothing is sent to the server: a client has no frame to report errors.
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
