import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Has the state of the session while no connection does: hands it from one to the next, and tells the callers
/// whose time is up meanwhile.
///
/// | whereabouts | what moves it on |
/// | --- | --- |
/// | parked | a connection begins → moving |
/// | moving | it has taken over → with the connection; an end has been noted → parked |
/// | with a connection | its end → moving |
final class MQTTSession: Sendable {
    private enum Whereabouts: Sendable {
        // Out of line: nearly always a connection has it.
        indirect case parked(MQTTSessionState)
        /// On its way, with what is to be done once it has arrived.
        case moving([Errand])
        case with(MQTTConnection)
    }

    /// What comes while the state is on its way.
    private enum Errand: Sendable {
        case acknowledge(MQTTDeliveryReceipt, MQTTReasonCode)
        case cancel(MQTTPendingCall)
    }

    private struct State: Sendable {
        var whereabouts = Whereabouts.parked(MQTTSessionState())
        /// The client identifier that the server has assigned (MQTT 5, 3.2.2.3.7); nil when it has not.
        var assignedClientIdentifier: String?
        /// The clock of the callers who wait while it is parked.
        var timers: (any TimerSource)?
        var lateAttempts = MQTTLateAttempts()
        /// Whether a CONNECT since the last CONNACK was not answered.
        var isInDoubt = false
    }

    private let state = Locked(State())
    private let environment: LinkEnvironment

    /// - Parameter environment: Where clocks come from.
    init(environment: LinkEnvironment) {
        self.environment = environment
    }

    /// The client identifier that the server has assigned: reconnections use it.
    var assignedClientIdentifier: String? {
        get { state.withLock { $0.assignedClientIdentifier } }
        set { state.withLock { $0.assignedClientIdentifier = newValue } }
    }

    // MARK: From connection to connection

    /// Hands the state to a connection that begins.
    func take() -> MQTTSessionState {
        let (connection, timers) = state.withLock { state in
            defer {
                state.whereabouts = .moving([])
                state.timers = nil
            }
            guard case .parked(let connection) = state.whereabouts else {
                return (MQTTSessionState(), state.timers)
            }
            return (connection, state.timers)
        }
        timers?.invalidate()
        return connection
    }

    /// Notes that a connection has taken the state over.
    func follow(_ connection: MQTTConnection) {
        let errands = state.withLock { state -> [Errand] in
            guard case .moving(let errands) = state.whereabouts else { return [] }
            state.whereabouts = .with(connection)
            return errands
        }
        for errand in errands {
            switch errand {
            case .acknowledge(let receipt, let reason): acknowledge(receipt, reason)
            case .cancel(let call): connection.cancel(call)
            }
        }
    }

    /// Notes that the connection which has the state is over: it is to be taken from it and parked.
    func leave(_ connection: MQTTConnection) {
        state.withLock { state in
            guard case .with(let present) = state.whereabouts, present === connection else {
                return
            }
            state.whereabouts = .moving([])
        }
    }

    /// Takes the state in until a connection begins.
    func park(_ connection: MQTTSessionState) {
        var connection = connection
        state.withLock { state in
            guard case .moving(let errands) = state.whereabouts else { return }
            for errand in errands {
                switch errand {
                case .acknowledge(let receipt, let reason): connection.acknowledge(receipt, reason)
                case .cancel(let call): connection.cancel(call)
                }
            }
            state.whereabouts = .parked(connection)
        }
        watch()
    }

    /// Gives up who waits, as no connection follows soon.
    ///
    /// - Parameters:
    ///   - error: What they fail with.
    ///   - keepsSession: Whether messages go on should a connection follow after all.
    func conclude(_ error: WaybillError, keepsSession: Bool) {
        let (calls, timers) = state.withLock { state -> ([any MQTTCall], (any TimerSource)?) in
            guard case .parked(var connection) = state.whereabouts else { return ([], nil) }
            let calls = connection.calls
            for call in calls { connection.cancel(call) }
            if !keepsSession { connection.removeAll() }
            state.whereabouts = .parked(connection)
            defer { state.timers = nil }
            return (calls, state.timers)
        }
        timers?.invalidate()
        for call in calls { (call as? MQTTPendingCall)?.fail(error) }
    }

    // MARK: Attempts that were given up

    /// Notes a CONNECT that was never answered.
    func noteUnansweredAttempt(
        at now: WireInstant,
        lasting connectTimeout: Duration,
        isEndedByPeer: Bool
    ) {
        state.withLock { state in
            state.lateAttempts.note(
                at: now,
                lasting: connectTimeout,
                isEndedByPeer: isEndedByPeer
            )
            state.isInDoubt = true
        }
    }

    /// Whether a session that is taken over now may have been by such a CONNECT; each is counted once.
    func takeLateAttempt(at now: WireInstant) -> Bool {
        state.withLock { $0.lateAttempts.take(at: now) }
    }

    /// Whether a session that the server has may be one that such a CONNECT began; asked once after each CONNACK.
    ///
    /// The server may have lost the session before, and said so in a CONNACK that never came.
    func takeDoubt() -> Bool {
        state.withLock { state in
            defer { state.isInDoubt = false }
            return state.isInDoubt
        }
    }

    // MARK: Callers

    /// Withdraws a call, wherever its message is.
    func cancel(_ call: MQTTPendingCall) {
        let connection = state.withLock { state -> MQTTConnection? in
            switch state.whereabouts {
            case .with(let connection): return connection
            case .moving(let errands): state.whereabouts = .moving(errands + [.cancel(call)])
            case .parked(var connection):
                connection.cancel(call)
                state.whereabouts = .parked(connection)
            }
            return nil
        }
        connection?.cancel(call)
    }

    /// Tells the callers whose time is up, and comes back when the next one's is.
    /// - Parameter deadline: The time of the timer; the clock may lag behind by a little.
    private func watch(at deadline: WireInstant? = nil) {
        var expired: [any MQTTCall] = []
        var idle: (any TimerSource)?
        try? state.withClock(\.timers, environment.makeTimers) { state, clock in
            guard case .parked(var connection) = state.whereabouts else {
                idle = state.timers.take()
                return
            }
            expired = connection.takeExpired(at: max(clock.now, deadline ?? .zero))
            state.whereabouts = .parked(connection)
            if let next = connection.earliestDeadline {
                _ = clock.scheduleTimer(at: next) { [weak self] in self?.watch(at: next) }
            } else {
                idle = state.timers.take()
            }
        }
        idle?.invalidate()
        for call in expired {
            (call as? MQTTPendingCall)?.fail(
                WaybillError(.timedOut, "the connection was not back in time")
            )
        }
    }

    // MARK: Taking messages

    /// Acknowledges a message, over whatever connection has the session.
    /// - Returns: False for a message of an earlier connection that the server sends again.
    @discardableResult
    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ reason: MQTTReasonCode) -> Bool {
        while true {
            let (connection, isFirst) = state.withLock { state -> (MQTTConnection?, Bool) in
                switch state.whereabouts {
                case .with(let connection): return (connection, true)
                case .moving(let errands):
                    state.whereabouts = .moving(errands + [.acknowledge(receipt, reason)])
                    return (nil, true)
                case .parked(var connection):
                    let isFirst = connection.acknowledge(receipt, reason)
                    state.whereabouts = .parked(connection)
                    return (nil, isFirst)
                }
            }
            guard let connection else { return isFirst }
            // Without an answer its state has just been taken: it is to be found elsewhere.
            if let isFirst = connection.acknowledge(receipt, reason) { return isFirst }
        }
    }

    /// The QoS 1 messages of earlier connections that the server sends again.
    var repeatedSerials: MQTTRepeatedSerials {
        let (connection, parked) = state.withLock {
            state -> (MQTTConnection?, MQTTRepeatedSerials) in
            switch state.whereabouts {
            case .with(let connection): (connection, MQTTRepeatedSerials())
            case .moving: (nil, MQTTRepeatedSerials())
            case .parked(let connection): (nil, connection.repeatedSerials)
            }
        }
        return connection?.repeatedSerials ?? parked
    }
}
