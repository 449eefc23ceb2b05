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
/// | moving | the connection has taken it → with (the connection); the end of a connection is complete → parked |
/// | with (a connection) | the end of the connection → moving |
final class MQTTSession: Sendable {
    private enum Place: Sendable {
        // Stored out of line, because nearly always a connection has the state.
        indirect case parked(MQTTSessionState)
        /// Between two places.
        case moving(MQTTSessionMove)
        case with(MQTTConnection)
    }

    private struct State: Sendable {
        var place = Place.parked(MQTTSessionState())
        var owner = MQTTSessionOwner()
        /// The timer for the first caller whose deadline passes while the state is parked.
        var timer: UInt64?
        var lateAttempts = MQTTLateAttempts()
        /// Whether the app has discarded the session.
        var isDiscarded = false
        /// Whether the server may have begun another session since the last connection was resumed.
        var isInDoubt = false
        var storing = MQTTStoreQueue()
        /// The interceptors of the last CONNECT's provider, for the messages of an earlier process.
        var chain: RequestChain?
        /// The session expiry of the last CONNECT; nil before it.
        var lifetime: MQTTSessionLifetime?
    }

    private let state = Locked(State())
    private let clock: any TimerSource
    private let acknowledgementTimeout: Duration
    /// The store that has the exchanges; nil if they end with the process.
    private let store: (any SessionStore)?
    /// The store that has the messages; nil without one.
    private let messages: StoreClient?
    var messageStore: (any SessionStore)? { messages?.store }
    /// The messages of an earlier process; nil without a store.
    let leftMessages: MQTTLeftMessages?
    /// The client identifier whose exchanges the store has; nil without a store.
    private let storedOwner: String?

    init(
        environment: LinkEnvironment,
        acknowledgementTimeout: Duration,
        messages: StoreClient? = nil,
        leftMessages: MQTTLeftMessages? = nil,
        store: (any SessionStore)? = nil,
        restored: MQTTSessionState = MQTTSessionState(),
        of owner: String? = nil
    ) {
        clock = environment.clock
        self.acknowledgementTimeout = acknowledgementTimeout
        self.messages = messages
        self.leftMessages = leftMessages
        self.store = store
        storedOwner = owner
        state.withLock { state in
            state.place = .parked(restored)
            state.owner = MQTTSessionOwner(owner)
        }
    }

    /// The client identifier that the server has assigned, which reconnections use.
    var assignedClientIdentifier: String? { state.withLock { $0.owner.assigned } }

    /// Whether the state belongs to another client identifier than that of a CONNECT.
    func isOfOtherClient(_ packet: MQTTConnect) -> Bool {
        state.withLock { !$0.owner.isSame(as: packet.clientIdentifier) }
    }

    /// The number of unanswered packets that no connection has.
    var parkedCount: Int {
        guard case .parked(let session) = state.withLock({ $0.place }) else { return 0 }
        return session.unansweredCount
    }

    /// Whether the app has discarded the session: no message stays stored.
    var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

    /// Notes that the app discards the session.
    func discard() { state.withLock { $0.isDiscarded = true } }

    // MARK: From connection to connection

    /// Hands the state to a new connection.
    func take() -> MQTTSessionState {
        state.withLock { state in
            stopWatching(&state)
            guard case .parked(var connection) = state.place else {
                state.place = .moving(MQTTSessionMove())
                return MQTTSessionState()
            }
            if state.isInDoubt { connection.noteDoubt() }
            state.place = .moving(MQTTSessionMove(connection.repeatedSerials))
            return connection
        }
    }

    /// Notes that a connection has the state now.
    ///
    /// Called with the core's lock held, so that the connection ends after it.
    ///
    /// - Returns: What was requested meanwhile, for ``carryOut(_:)``.
    func follow(_ connection: MQTTConnection) -> [MQTTSessionMove.Action] {
        state.withLock { state in
            guard case .moving(let move) = state.place else { return [] }
            state.place = .with(connection)
            return move.actions
        }
    }

    /// Carries out what was requested while the state was moving.
    func carryOut(_ actions: [MQTTSessionMove.Action]) {
        for action in actions {
            switch action {
            case .acknowledge(let receipt, let reason): acknowledge(receipt, reason)
            case .answer(let receipt, let answer, let call):
                acknowledge(receipt, answer, awaitedBy: call)
            case .cancel(let call): cancel(call)
            case .adopt(let number, let call): _ = adopt(number, call)
            }
        }
    }

    /// Notes that the connection with the state is over.
    ///
    /// The state is taken from it and parked next.
    func leave(_ connection: MQTTConnection) {
        let repeated = connection.driver.repeatedSerials
        state.withLock { state in
            guard case .with(let present) = state.place, present === connection else {
                return
            }
            state.place = .moving(MQTTSessionMove(repeated))
        }
    }

    /// Keeps the state until a connection begins.
    func park(_ connection: MQTTSessionState) {
        var connection = connection
        let ended = state.withLock { state -> MQTTSessionMove.Ended in
            guard case .moving(let move) = state.place else { return MQTTSessionMove.Ended() }
            let ended = move.carryOut(on: &connection, deadline: deadline)
            state.storing.append(connection.takeSteps())
            state.place = .parked(connection)
            return ended
        }
        callStore()
        for call in ended.stored { call.didEnd() }
        for (call, completion) in ended.answered { Self.end(call, completion) }
        watch()
    }

    /// Fails all calls, because no connection follows soon.
    ///
    /// - Parameters:
    ///   - error: The error of the calls.
    ///   - keepsSession: Whether the messages are kept for a later connection.
    ///   - abandoned: The received messages that the app can no longer acknowledge.
    func conclude(
        _ error: WaybillError,
        keepsSession: Bool,
        abandoning abandoned: [MQTTDeliveryReceipt]
    ) {
        let calls = state.withLock { state -> [any MQTTCall] in
            state.chain = nil
            guard case .parked(var connection) = state.place else { return [] }
            // No task waits for a stored message: it is sent over a later connection.
            let calls = connection.calls.filter { !keepsSession || !($0 is MQTTStoredCall) }
            for call in calls { connection.cancel(call) }
            if keepsSession {
                connection.abandon(abandoned)
            } else {
                connection.removeAll()
            }
            state.place = .parked(connection)
            stopWatching(&state)
            return calls
        }
        for call in calls { (call as? MQTTPendingCall)?.fail(error) }
    }

    /// Forgets received messages that the server sends again over the next connection, which delivers them.
    func abandon(_ receipts: [MQTTDeliveryReceipt]) {
        guard !receipts.isEmpty else { return }
        state.withLock { state in
            guard case .parked(var connection) = state.place else { return }
            connection.abandon(receipts)
            state.place = .parked(connection)
        }
    }

    // MARK: Stored exchanges

    /// Returns the removal of a stored message that the server has answered; nil without a store.
    func removal(of number: UInt64?) -> (@Sendable () -> Void)? {
        messages?.removal(of: number)
    }

    /// Takes the interceptors of the last CONNECT.
    func takeChain() -> RequestChain? { state.withLock { $0.chain.take() } }

    /// Notes a CONNECT, before its CONNACK, and the interceptors of its provider.
    func noteRequested(_ packet: MQTTConnect, _ chain: RequestChain?) {
        let lifetime = MQTTSessionLifetime(packet)
        state.withLock { state in
            state.lifetime = lifetime
            state.chain = leftMessages == nil ? nil : chain
            state.owner.noteRequested(packet.clientIdentifier)
        }
    }

    /// Notes that the server has accepted the last CONNECT, whose session the state belongs to from now on.
    ///
    /// - Parameters:
    ///   - connack: The server's CONNACK.
    ///   - continues: False if the server has lost the session, or if it is that of another client identifier.
    func noteConnected(_ connack: MQTTConnackPacket, continues: Bool) {
        state.withLock { state in
            state.owner.noteConnected(assigned: connack.properties.assignedClientIdentifier)
            state.lifetime?.note(connack)
            guard !continues, let storedOwner else { return }
            state.storing.loseSession(isKept: state.owner.isSame(as: storedOwner))
        }
        callStore()
    }

    /// Stores a step, and calls `done` when that is on the disk or cannot be.
    ///
    /// `done` is called at once if the store does not keep the session, as under another client identifier than the
    /// configured one.
    func store(_ step: MQTTStorageStep, done: @escaping @Sendable () -> Void) {
        let isStored = store != nil && state.withLock { $0.storing.append(step, done: done) }
        guard isStored else { return done() }
        callStore()
    }

    /// Whether a store keeps what belongs to the present session.
    var isStored: Bool { state.withLock { $0.storing.isKept } }

    /// Tells the store what waits; one caller at a time, with no lock held.
    private func callStore() {
        guard let store, state.withLock({ $0.storing.begin() }) else { return }
        while let call = state.withLock({ $0.storing.next() }) { call.make(to: store) }
    }

    /// Keeps a stored message of QoS 2 in the store until its exchange has ended, because its caller no longer waits.
    ///
    /// Otherwise the server would wait for a PUBREL that no later process sends. A message that was never sent is
    /// withdrawn.
    ///
    /// - Parameters:
    ///   - number: The number of the message.
    ///   - call: Ends with the exchange, or at once if there is none.
    /// - Returns: False if there is no exchange, so that the message is not sent any more.
    func adopt(_ number: UInt64, _ call: MQTTStoredCall) -> Bool {
        while true {
            let (connection, isOpen) = state.withLock { state -> (MQTTConnection?, Bool) in
                switch state.place {
                case .with(let connection): return (connection, true)
                case .moving(var move):
                    move.adopt(number, call)
                    state.place = .moving(move)
                    return (nil, true)
                case .parked(var connection):
                    let isOpen = connection.adopt(number, call)
                    state.place = .parked(connection)
                    return (nil, isOpen)
                }
            }
            // Nil means that the state was just taken from the connection. The next turn finds its new place.
            guard let isOpen = connection.map({ $0.driver.adopt(number, call) }) ?? isOpen else {
                continue
            }
            if !isOpen { call.didEnd() }
            return isOpen
        }
    }

    /// Whether a stored message goes on although its send has failed: one of QoS 2 whose exchange has begun.
    func goesOn(with number: UInt64, _ qos: QoS) -> Bool {
        guard leftMessages?.keepsExchanges == true, qos == .exactlyOnce, let messageStore else {
            return false
        }
        return adopt(number, MQTTStoredCall { messageStore.remove(number) })
    }

    /// Waits until everything is written, at most for the timeout; what is not written then is reported.
    func flush(within timeout: Duration, reportingTo events: TransportEventSource) async {
        await messages?.flush(within: timeout, reportingTo: events)
    }

    // MARK: Abandoned attempts

    /// Notes that the server may have begun another session without this side knowing.
    func noteDoubt() { state.withLock { $0.isInDoubt = true } }

    /// Notes a CONNECT that the server may yet accept.
    ///
    /// Also if the peer has ended its stream: a proxy may have ended it and still deliver the bytes. A server that
    /// refuses by closing looks the same. If another client then takes the session over, this client takes it back
    /// once. That is less harmful than a client that never connects again.
    func noteLateAttempt(
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
        }
    }

    /// Whether there is such a CONNECT.
    func hasLateAttempt(at now: WireInstant) -> Bool {
        state.withLock { $0.lateAttempts.isAny(at: now) }
    }

    /// Whether a takeover of the session may be caused by such a CONNECT.
    ///
    /// Each CONNECT counts once.
    func takeLateAttempt(at now: WireInstant) -> Bool {
        state.withLock { $0.lateAttempts.take(at: now) }
    }

    /// Whether the server may have begun another session, when a connection is resumed.
    ///
    /// CONNACK may then say that there is a session, although the earlier one is lost.
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
                case .moving(var move):
                    move.cancel(call)
                    state.place = .moving(move)
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
            let (connection, isFirst) = state.withLock { state -> (MQTTConnection?, Bool) in
                switch state.place {
                case .with(let connection): return (connection, true)
                case .moving(var move):
                    let isFirst = move.acknowledge(receipt, reason)
                    state.place = .moving(move)
                    return (nil, isFirst)
                case .parked(var connection):
                    let isFirst = connection.acknowledge(receipt, reason)
                    state.storing.append(connection.takeSteps())
                    state.place = .parked(connection)
                    return (nil, isFirst)
                }
            }
            if connection == nil { callStore() }
            guard let connection else { return isFirst }
            // Nil means that the state was just taken from the connection. The next turn finds its new place.
            if let isFirst = connection.driver.acknowledge(receipt, reason) { return isFirst }
        }
    }

    /// Answers a message as ``acknowledge(_:_:)`` does, with the texts of an answer, and ends the call unless it waits.
    func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ answer: MQTTReceiverAnswer,
        awaitedBy call: MQTTPendingCall?
    ) {
        while true {
            let deadline = deadline
            let (connection, completion) = state.withLock {
                state -> (MQTTConnection?, MQTTCompletion) in
                switch state.place {
                case .with(let connection): return (connection, .waiting)
                case .moving(var move):
                    move.answer(receipt, answer, awaitedBy: call)
                    state.place = .moving(move)
                    return (nil, .waiting)
                case .parked(var connection):
                    let completion = connection.acknowledge(
                        receipt,
                        answer,
                        awaitedBy: call,
                        deadline: deadline
                    )
                    state.storing.append(connection.takeSteps())
                    state.place = .parked(connection)
                    return (nil, completion)
                }
            }
            guard let connection else {
                callStore()
                Self.end(call, completion)
                return watch()
            }
            // Nil means that the state was just taken from the connection. The next turn finds its new place.
            let outcome = connection.driver.acknowledge(receipt, answer, awaitedBy: call)
            if let outcome { return Self.end(call, outcome) }
        }
    }

    /// The time limit of a call that waits from now on.
    private var deadline: WireInstant { clock.now.advanced(by: acknowledgementTimeout) }

    /// Ends a call that waits for the end of an exchange, unless it still waits.
    private static func end(_ call: MQTTPendingCall?, _ completion: MQTTCompletion) {
        switch completion {
        case .waiting: break
        case .completed: call?.succeed(.completed)
        case .sessionLost: call?.fail(MQTTErrorMapping.exchangeLost)
        }
    }

    // MARK: The lifetime of the session

    /// The session expiry of the last CONNECT; nil before it.
    var lifetime: MQTTSessionLifetime? { state.withLock { $0.lifetime } }

    /// The QoS 1 messages of earlier connections that the server sends again.
    var repeatedSerials: MQTTRepeatedSerials {
        let (connection, parked) = state.withLock {
            state -> (MQTTConnection?, MQTTRepeatedSerials) in
            switch state.place {
            case .with(let connection): (connection, MQTTRepeatedSerials())
            case .moving(let move): (nil, move.repeatedSerials)
            case .parked(let connection): (nil, connection.repeatedSerials)
            }
        }
        return connection?.driver.repeatedSerials ?? parked
    }
}
