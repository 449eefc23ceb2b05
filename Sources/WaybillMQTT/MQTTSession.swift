import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Hands the session state from one connection to the next, and keeps it while there is no connection.
///
/// In that time it also fails the calls whose timeout is over.
///
/// | place of the state | events that move it |
/// | --- | --- |
/// | parked | a connection begins → moving |
/// | moving | the connection has taken it → with the connection; the end of a connection is complete → parked |
/// | with a connection | the end of the connection → moving |
final class MQTTSession: Sendable {
    private enum Place: Sendable {
        // Stored out of line, because nearly always a connection has the state.
        indirect case parked(MQTTSessionState)
        /// Between two places, with the actions that follow on arrival.
        case moving([Action])
        case with(MQTTConnection)
    }

    /// An action that was requested while the state was moving.
    enum Action: Sendable {
        case acknowledge(MQTTDeliveryReceipt, MQTTReasonCode)
        case cancel(MQTTPendingCall)
    }

    private struct State: Sendable {
        var place = Place.parked(MQTTSessionState())
        /// The client identifier that the server has assigned (MQTT 5, 3.2.2.3.7); nil without one.
        var assignedClientIdentifier: String?
        /// The timer for the first caller whose deadline passes while the state is parked.
        var timer: UInt64?
        var lateAttempts = MQTTLateAttempts()
        /// Whether a CONNECT since the last CONNACK was not answered.
        var isInDoubt = false
    }

    private let state = Locked(State())
    private let clock: any TimerSource
    /// The store that has the exchanges; nil if they end with the process.
    private let store: (any SessionStore)?

    /// - Parameters:
    ///   - environment: The clock.
    ///   - store: The store that has the exchanges.
    ///   - restored: The state at the end of an earlier process.
    init(
        environment: LinkEnvironment,
        store: (any SessionStore)? = nil,
        restored: MQTTSessionState = MQTTSessionState()
    ) {
        clock = environment.clock
        self.store = store
        state.withLock { $0.place = .parked(restored) }
    }

    /// The client identifier that the server has assigned, which reconnections use.
    var assignedClientIdentifier: String? {
        get { state.withLock { $0.assignedClientIdentifier } }
        set { state.withLock { $0.assignedClientIdentifier = newValue } }
    }

    // MARK: From connection to connection

    /// Hands the state to a new connection.
    func take() -> MQTTSessionState {
        state.withLock { state in
            defer { state.place = .moving([]) }
            stopWatching(&state)
            guard case .parked(let connection) = state.place else {
                return MQTTSessionState()
            }
            return connection
        }
    }

    /// Notes that a connection has the state now.
    ///
    /// Called with the core's lock held, so that the connection ends after it.
    ///
    /// - Returns: What was requested meanwhile, for ``carryOut(_:)``.
    func follow(_ connection: MQTTConnection) -> [Action] {
        state.withLock { state in
            guard case .moving(let actions) = state.place else { return [] }
            state.place = .with(connection)
            return actions
        }
    }

    /// Carries out what was requested while the state was moving.
    func carryOut(_ actions: [Action]) {
        for action in actions {
            switch action {
            case .acknowledge(let receipt, let reason): acknowledge(receipt, reason)
            case .cancel(let call): cancel(call)
            }
        }
    }

    /// Notes that the connection with the state is over.
    ///
    /// The state is taken from it and parked next.
    func leave(_ connection: MQTTConnection) {
        state.withLock { state in
            guard case .with(let present) = state.place, present === connection else {
                return
            }
            state.place = .moving([])
        }
    }

    /// Keeps the state until a connection begins.
    func park(_ connection: MQTTSessionState) {
        var connection = connection
        let taken = state.withLock { state -> [UInt16] in
            guard case .moving(let actions) = state.place else { return [] }
            for action in actions {
                switch action {
                case .acknowledge(let receipt, let reason): connection.acknowledge(receipt, reason)
                case .cancel(let call): connection.cancel(call)
                }
            }
            let taken = connection.takeTaken()
            state.place = .parked(connection)
            return taken
        }
        storeTaken(taken)
        watch()
    }

    /// Fails all calls, because no connection follows soon.
    ///
    /// - Parameters:
    ///   - error: The error of the calls.
    ///   - keepsSession: Whether the messages are kept for a later connection.
    func conclude(_ error: WaybillError, keepsSession: Bool) {
        let calls = state.withLock { state -> [any MQTTCall] in
            guard case .parked(var connection) = state.place else { return [] }
            // No task waits for a stored message: it is sent over a later connection.
            let calls = connection.calls.filter { !keepsSession || !($0 is MQTTStoredCall) }
            for call in calls { connection.cancel(call) }
            if !keepsSession { connection.removeAll() }
            state.place = .parked(connection)
            stopWatching(&state)
            return calls
        }
        for call in calls { (call as? MQTTPendingCall)?.fail(error) }
    }

    // MARK: Stored exchanges

    /// Notes that the server has lost the session.
    func loseStoredSession() {
        store?.loseSession()
    }

    /// Stores a step, and calls `done` when that is on the disk or cannot be.
    func store(_ step: MQTTStorageStep, done: @escaping @Sendable () -> Void) {
        guard let store else { return done() }
        switch step {
        case .released(let number, _): store.setStage(.released, of: number, done: done)
        case .taken(let identifier): store.insertReceived(identifier, done: done)
        case .forgotten(let identifier): store.removeReceived(identifier, done: done)
        }
    }

    private func storeTaken(_ identifiers: [UInt16]) {
        for identifier in identifiers { store(.taken(identifier)) {} }
    }

    // MARK: Abandoned attempts

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

    /// Whether a takeover of the session may be caused by such a CONNECT.
    ///
    /// Each CONNECT counts once.
    func takeLateAttempt(at now: WireInstant) -> Bool {
        state.withLock { $0.lateAttempts.take(at: now) }
    }

    /// Whether the server's session may have been started by such a CONNECT.
    ///
    /// Called once after each CONNACK.
    ///
    /// In that case the server may have lost the earlier session, and the CONNACK that stated it was lost, too.
    func takeDoubt() -> Bool {
        state.withLock { state in
            defer { state.isInDoubt = false }
            return state.isInDoubt
        }
    }

    // MARK: Callers

    /// Withdraws a call, wherever the state is.
    func cancel(_ call: MQTTPendingCall) {
        while true {
            let connection = state.withLock { state -> MQTTConnection? in
                switch state.place {
                case .with(let connection): return connection
                case .moving(let actions): state.place = .moving(actions + [.cancel(call)])
                case .parked(var connection):
                    connection.cancel(call)
                    state.place = .parked(connection)
                }
                return nil
            }
            // False means that the state was just taken from the connection. The next turn finds its new place.
            guard let connection, !connection.driver.cancel(call) else { return }
        }
    }

    /// Fails the calls whose deadlines have passed, and sets the timer for the next one.
    /// - Parameter deadline: The time of the timer; the clock may lag behind by a little.
    private func watch(at deadline: WireInstant? = nil) {
        let expired = state.withLock { state -> [any MQTTCall] in
            guard case .parked(var connection) = state.place else { return [] }
            stopWatching(&state)
            let expired = connection.takeExpired(at: max(clock.now, deadline ?? .zero))
            state.place = .parked(connection)
            if let next = connection.earliestDeadline {
                state.timer = clock.scheduleTimer(at: next) { [weak self] in self?.watch(at: next) }
            }
            return expired
        }
        for call in expired {
            (call as? MQTTPendingCall)?.fail(
                WaybillError(.timedOut, "the connection was not back in time")
            )
        }
    }

    private func stopWatching(_ state: inout State) {
        if let timer = state.timer.take() { clock.cancelTimer(timer) }
    }

    // MARK: Taking messages

    /// Acknowledges a message over the connection that has the session.
    ///
    /// - Returns: False for a message of an earlier connection that the server sends again.
    @discardableResult
    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ reason: MQTTReasonCode) -> Bool {
        while true {
            let (connection, isFirst, taken) = state.withLock {
                state -> (MQTTConnection?, Bool, [UInt16]) in
                switch state.place {
                case .with(let connection): return (connection, true, [])
                case .moving(let actions):
                    state.place = .moving(actions + [.acknowledge(receipt, reason)])
                    return (nil, true, [])
                case .parked(var connection):
                    let isFirst = connection.acknowledge(receipt, reason)
                    let taken = connection.takeTaken()
                    state.place = .parked(connection)
                    return (nil, isFirst, taken)
                }
            }
            storeTaken(taken)
            guard let connection else { return isFirst }
            // Nil means that the state was just taken from the connection. The next turn finds its new place.
            if let isFirst = connection.driver.acknowledge(receipt, reason) { return isFirst }
        }
    }

    /// The QoS 1 messages of earlier connections that the server sends again.
    var repeatedSerials: MQTTRepeatedSerials {
        let (connection, parked) = state.withLock {
            state -> (MQTTConnection?, MQTTRepeatedSerials) in
            switch state.place {
            case .with(let connection): (connection, MQTTRepeatedSerials())
            case .moving: (nil, MQTTRepeatedSerials())
            case .parked(let connection): (nil, connection.repeatedSerials)
            }
        }
        return connection?.driver.repeatedSerials ?? parked
    }
}
