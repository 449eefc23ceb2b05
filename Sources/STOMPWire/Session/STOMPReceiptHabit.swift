import WireCore

/// Whether the server answers requests for receipts, as far as its frames have shown.
///
/// Spring's simple broker answers only that of DISCONNECT.
///
/// | state | event → next state |
/// | --- | --- |
/// | unknown | RECEIPT → answering; MESSAGE while a request waits → doubted |
/// | doubted | RECEIPT → answering; one second passes, in which this side reads and nothing is being sent → silent |
/// | silent | RECEIPT → answering |
/// | answering | none |
struct STOMPReceiptHabit: Sendable {
    private enum State: Sendable {
        case unknown
        case doubted(until: WireInstant)
        case silent
        case answering
    }

    /// The time within which a server that has sent a MESSAGE must have sent a RECEIPT.
    static let timeout = Duration.seconds(1)

    private var state = State.unknown
    private var isReadingHeld = false

    /// - Parameter server: The name in CONNECTED.
    init(server: String? = nil) {
        // These answer, if a disk is slow later than a MESSAGE of another subscription.
        let known = ["RabbitMQ/", "ActiveMQ"]
        if let server, known.contains(where: server.hasBytePrefix) { state = .answering }
    }

    /// Whether the server answers no requests for receipts.
    var isSilent: Bool {
        if case .silent = state { true } else { false }
    }

    /// Whether the server has answered a request for a receipt, or is known to.
    var isAnswering: Bool {
        if case .answering = state { true } else { false }
    }

    /// The end of the time for a RECEIPT.
    var deadline: WireInstant? {
        if case .doubted(let deadline) = state, !isReadingHeld { deadline } else { nil }
    }

    /// Notes that this side has stopped or resumed reading: a RECEIPT may be unread.
    mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        restart(at: now)
    }

    /// Notes that what was written is still on its way, and the request for a receipt with it.
    mutating func restart(at now: WireInstant) {
        if case .doubted = state { state = .doubted(until: now.advanced(by: Self.timeout)) }
    }

    mutating func noteReceipt() {
        state = .answering
    }

    /// Notes a MESSAGE that has come while requests wait for receipts.
    mutating func noteMessage(at now: WireInstant) {
        if case .unknown = state { state = .doubted(until: now.advanced(by: Self.timeout)) }
    }

    /// Notes the time.
    ///
    /// - Returns: Whether the server is silent from now on.
    mutating func fallSilent(at now: WireInstant) -> Bool {
        guard let deadline, deadline <= now else { return false }
        state = .silent
        return true
    }
}
