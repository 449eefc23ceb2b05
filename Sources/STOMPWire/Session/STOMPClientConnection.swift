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
    enum State: Sendable {
        case idle
        case connecting(deadline: WireInstant)
        case connected
        /// DISCONNECT will follow the held frames.
        case leaving(deadline: WireInstant)
        case disconnecting(receipt: UInt64, deadline: WireInstant)
        case closed
    }

    package let configuration: STOMPClientConfiguration

    var state = State.idle
    var decoder: STOMPFrameDecoder
    var writer: STOMPFrameWriter
    var events: [STOMPClientEvent] = []
    package internal(set) var hasMoreInput = false
    /// Whether the server has answered more than CONNECT: a RECEIPT, a MESSAGE or a heart-beat.
    package internal(set) var hasProgress = false

    /// The request, against which the server's answer is checked.
    var request: STOMPConnect?
    /// Whether CONNECT was sent and no answer arrived, also after the end.
    package internal(set) var isUnanswered = false
    var heartBeats = STOMPHeartBeatClock(.none, at: .zero)
    var window: STOMPWindow
    var receiptHabit = STOMPReceiptHabit()
    /// Whether a SEND with text has no content-length.
    var omitsTextLength = false
    package internal(set) var scopes = STOMPClientScopes()

    package init(configuration: STOMPClientConfiguration = STOMPClientConfiguration()) {
        self.configuration = configuration
        decoder = STOMPFrameDecoder(role: .client, limits: configuration.limits)
        decoder.skipsLongMessages = true
        writer = STOMPFrameWriter(isTracing: configuration.isTracing)
        window = STOMPWindow(maximum: configuration.maximumInFlight)
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

    /// The number of calls that wait for a receipt.
    package var openCallCount: Int { window.receipts.count }

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
        var deadline = heartBeats.deadline ?? .never
        deadline = min(deadline, window.receipts.earliestDeadline ?? .never)
        deadline = min(deadline, receiptHabit.deadline ?? .never)
        return deadline == .never ? nil : deadline
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
            for call in window.receipts.takeExpired(at: now) {
                events.append(.timedOut(call, isAnswering: receiptHabit.isAnswering))
            }
            if receiptHabit.fallSilent(at: now) {
                events.append(.receiptsMissing)
                endOptionalReceipts()
            }
            sendHeld(at: now)
        default: break
        }
    }

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        heartBeats.holdReading(isHeld, at: now)
        receiptHabit.holdReading(isHeld, at: now)
    }

    package mutating func noteGiven(isRest: Bool, at now: WireInstant) {
        if isRest { receiptHabit.restart(at: now) }
    }

    package mutating func noteProgress(at now: WireInstant) {
        receiptHabit.restart(at: now)
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
        let calls = window.receipts.takeAll()
        events.append(contentsOf: calls.sent.map { .abandoned($0) })
        events.append(contentsOf: calls.unsent.map { .notSent($0) })
        window = STOMPWindow(maximum: configuration.maximumInFlight)
        scopes = STOMPClientScopes()
        events.append(.closed(closure))
    }
}
