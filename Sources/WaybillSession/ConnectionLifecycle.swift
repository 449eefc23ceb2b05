package import Waybill
package import WaybillLink
public import WireCore

/// The life of a transport: when it connects, over which session requests go, and when it is over.
///
/// | phase | what moves it on |
/// | --- | --- |
/// | idle | a request, ``connect(_:timeout:)`` → connecting |
/// | disconnected | ``connect(_:timeout:)`` → connecting; unless the app has disconnected, a request, too |
/// | connecting | the peer accepts → connected; failure, disconnect, nobody waits → disconnected |
/// | connected | ``disconnect()`` → disconnected; loss → reconnecting, or disconnected |
/// | reconnecting | the peer accepts → connected; a fatal failure, the policy, disconnect → disconnected |
/// | any | ``shutdown()`` → shut down, for good |
@usableFromInline
package final class ConnectionLifecycle<Connection: TransportConnection>: Sendable {
    /// Where a transport stands.
    @usableFromInline
    package enum Phase: Sendable {
        /// There is no connection.
        case idle
        /// One is being made, for the first time or again.
        case connecting(ConnectionAttempt<Connection>)
        /// There is one.
        case connected(Connection)
        /// There will not be another one.
        case shutDown
    }

    /// What is kept from one connection to the next.
    struct Memory: Sendable {
        /// What was said first, and how long it might take.
        var greeting: (words: Connection.Greeting, timeout: Duration)?
        var schedule: ReconnectionSchedule
        /// Whether no connection is wanted for a while.
        var isPaused = false
        /// Whether the connection is being closed for a pause, which may be over before that is done.
        var closesForPause = false
        /// Whether the connection that there is came in the place of one that was lost.
        var isSuccessor = false
        /// True between an explicit disconnect and the next explicit connect: requests make no connection then.
        var isLeft = false

        /// Notes that the connection is closed for a pause, if there is one.
        /// - Returns: Whether there is a pause.
        mutating func beginClosingForPause() -> Bool {
            closesForPause = isPaused
            return isPaused
        }
    }

    @usableFromInline let phase = Locked(Phase.idle)
    let memory: Locked<Memory>
    let settings: Settings
    let failover: Failover
    let environment: LinkEnvironment
    let actions: Actions
    let queue: OfflineQueue<Connection>

    /// Hears of every change once.
    package let states = ConnectionStateSource()
    let journal: ConnectionReporter

    /// - Parameters:
    ///   - settings: When and how long.
    ///   - failover: Where to.
    ///   - environment: Where clocks and dice come from.
    ///   - events: Where it is reported what happens.
    ///   - actions: What the transport does.
    package init(
        _ settings: Settings,
        _ failover: Failover,
        in environment: LinkEnvironment,
        reportingTo events: TransportEventSource = TransportEventSource(),
        _ actions: Actions
    ) {
        self.settings = settings
        self.failover = failover
        self.environment = environment
        self.actions = actions
        journal = ConnectionReporter(events)
        queue = OfflineQueue(settings.offlineQueue, in: environment, reportingTo: events)
        memory = Locked(Memory(schedule: ReconnectionSchedule(settings.reconnection)))
    }

    // MARK: For requests

    /// The session over which requests go now; nil when there is none.
    ///
    /// Every message asks for it, so that it is compiled into the transport's own module.
    @inlinable package var connected: Connection? {
        phase.withLock { phase in
            guard case .connected(let connection) = phase else { return nil }
            return connection
        }
    }

    /// The session for a request that makes no sense without one.
    /// - Throws: `notConnected`, `shutDown`.
    package func current(for request: Request) throws(WaybillError) -> Connection {
        guard let connection = connected else { throw notConnected(request) }
        return connection
    }

    /// Whether there is a connection or one is on its way back.
    package var isAlive: Bool {
        switch phase.withLock({ $0 }) {
        case .connected: true
        case .connecting(let attempt): attempt.isReconnection
        case .idle, .shutDown: false
        }
    }

    /// Lets a request pass that makes sense while there is a connection or one is on its way back.
    /// - Throws: `notConnected`, `shutDown`.
    package func check(_ request: Request) throws(WaybillError) {
        guard isAlive else { throw notConnected(request) }
    }

    /// The session for a request, made first if need be; ask ``connected`` before.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - greeting: The first words, should a connection be made for it.
    /// - Returns: A session that the peer has accepted.
    /// - Throws: As ``connect(_:timeout:)``; `notConnected` when connections are made by hand only; what
    ///   `greeting` throws.
    package func connection(
        for request: Request,
        greeting: () throws(WaybillError) -> Connection.Greeting
    ) async throws -> Connection {
        guard settings.connectsOnDemand else {
            switch phase.withLock({ $0 }) {
            case .connected(let connection): return connection
            case .connecting(let attempt): return try await made(by: attempt).connection
            case .idle, .shutDown: throw notConnected(request)
            }
        }
        switch try join(greeting(), within: settings.connectTimeout, for: request) {
        case .there(let connection): return connection
        case .new(let attempt), .underWay(let attempt):
            return try await made(by: attempt).connection
        }
    }

    /// What comes of an attempt; one that follows a loss may take long, and nobody waits for ever.
    private func made(
        by attempt: ConnectionAttempt<Connection>,
        within timeout: Duration? = nil
    ) async throws -> ConnectionAttempt<Connection>.Made {
        guard attempt.isReconnection else { return try await attempt.outcome.value() }
        let timers = try clock()
        defer { timers.invalidate() }
        guard
            let made = try await attempt.outcome.value(
                within: timeout ?? settings.connectTimeout,
                by: timers
            )
        else {
            let failure = attempt.failure
            throw WaybillError(
                .notConnected,
                attempt.isFirst
                    ? "there is no connection yet" : "the connection was lost and is not back yet",
                peerReason: failure?.peerReason,
                underlying: failure
            )
        }
        return made
    }

    func clock() throws(WaybillError) -> any TimerSource {
        do { return try environment.makeTimers() } catch { throw WaybillError(error) }
    }

    func notConnected(_ request: Request) -> WaybillError {
        guard case .shutDown = phase.withLock({ $0 }) else {
            return WaybillError.noConnection.about(request)
        }
        return .shutDown
    }

    // MARK: Connecting

    /// Connects; when the connection was lost, at once instead of after the wait.
    ///
    /// - Parameters:
    ///   - greeting: The first words, also of the connections that follow this one should it be lost.
    ///   - timeout: How long it may take; nil for the transport's own limit.
    /// - Returns: What the peer said.
    /// - Throws: `rejected` when there is a connection, or one is being made; `shutDown`;
    ///   `notConnected` when somebody disconnects meanwhile; what went wrong on the way;
    ///   `CancellationError`.
    package func connect(_ greeting: Connection.Greeting, timeout: Duration?) async throws
        -> Receipt
    {
        switch try join(greeting, within: timeout ?? settings.connectTimeout) {
        case .underWay(let attempt) where attempt.isReconnection:
            memory.withLock { memory in
                memory.greeting = (greeting, timeout ?? settings.connectTimeout)
                memory.isPaused = false
            }
            attempt.hurry()
            return try await made(by: attempt, within: timeout).receipt
        case .there, .underWay:
            throw WaybillError.alreadyConnected
        case .new(let attempt): return try await attempt.outcome.value().receipt
        }
    }

    private enum Joined {
        case there(Connection)
        case underWay(ConnectionAttempt<Connection>)
        case new(ConnectionAttempt<Connection>)
    }

    /// What is there, the attempt that is under way, or a new one.
    ///
    /// - Parameters:
    ///   - greeting: The first words.
    ///   - timeout: How long connecting may take.
    ///   - request: The request that needs a connection; nil for an explicit connect.
    /// - Returns: One of the three.
    /// - Throws: `shutDown`; `notConnected` for a request after an explicit disconnect.
    private func join(
        _ greeting: Connection.Greeting,
        within timeout: Duration,
        for request: Request? = nil
    ) throws(WaybillError) -> Joined {
        let joined = try phase.withLock { phase throws(WaybillError) -> Joined in
            switch phase {
            case .connecting(let attempt): return .underWay(attempt)
            case .shutDown: throw .shutDown
            case .connected(let connection): return .there(connection)
            case .idle:
                if let request, memory.withLock({ $0.isLeft }) {
                    throw WaybillError.disconnectedByApp.about(request)
                }
                let attempt = ConnectionAttempt<Connection>()
                phase = .connecting(attempt)
                memory.withLock { memory in
                    memory.isLeft = false
                    memory.greeting = (greeting, timeout)
                    // Whoever asks for a connection wants one.
                    memory.isPaused = false
                    memory.schedule = ReconnectionSchedule(settings.reconnection)
                }
                // Reported within the lock, so that no other change comes in between.
                states.report(.connecting(attempt: 1))
                return .new(attempt)
            }
        }
        if case .new(let attempt) = joined {
            attempt.start { [self] in
                do {
                    attempt.outcome.resolve(.success(try await make(for: attempt)))
                } catch {
                    fail(attempt, error)
                }
            }
        }
        return joined
    }

    func make(
        _ greeting: Connection.Greeting,
        _ route: Failover.Route,
        within timeout: Duration,
        for attempt: ConnectionAttempt<Connection>
    ) async throws -> ConnectionAttempt<Connection>.Made {
        let host = route.address.endpoint.description
        let entry = journal.noteConnecting(to: host, attempt: attempt.number)
        let connection: Connection
        do { connection = try await actions.open(route, timeout, greeting) } catch {
            journal.noteEnd(of: entry, error as? WaybillError, stoppedBy: attempt.stopReason)
            throw error
        }
        // The end of the session with the host before has been heard.
        attempt.earlyEnd = nil
        do {
            // The session keeps itself until its end. A weak reference would make each count of references to it a slow
            // one, and every message counts some.
            let receipt = try await connection.begin(greeting) { [weak self, weak attempt] cause in
                self?.sessionEnded(connection, cause, of: attempt)
            }
            attempt.noteAccepted()
            let isResumed = Connection.hasServerSessions ? receipt.isSessionPresent : nil
            journal.noteConnected(entry, isResumed: isResumed)
            try await connection.resume(receipt)
            repeat {
                try queue.flush(to: connection)
            } while try !takeOver(connection, from: attempt)
            if memory.withLock({ $0.beginClosingForPause() }) {
                await connection.disconnect(within: settings.closeTimeout, abandonment: nil)
            }
            return ConnectionAttempt.Made(connection: connection, receipt: receipt)
        } catch {
            journal.noteEnd(of: entry, error as? WaybillError, stoppedBy: attempt.stopReason)
            attempt.prepareEnd(of: connection)
            await connection.disconnect(within: settings.closeTimeout, abandonment: nil)
            // Why the connection has ended says more than that what was under way was lost with it.
            let code = (error as? WaybillError)?.code
            if let cause = attempt.earlyEnd?.cause, code == .connectionLost || code == .notConnected
            {
                throw cause
            }
            throw error
        }
    }

    /// - Returns: Whether it is done; false when there are sends that have to go first.
    private func takeOver(
        _ connection: Connection,
        from attempt: ConnectionAttempt<Connection>
    ) throws -> Bool {
        let (isDone, next) = try phase.withLock { phase -> (Bool, Next?) in
            guard case .connecting(let current) = phase, current === attempt else {
                throw CancellationError()
            }
            guard queue.count == 0 else { return (false, nil) }
            phase = .connected(connection)
            memory.withLock { memory in
                memory.schedule.noteConnected(at: connection.now)
                memory.isSuccessor = !attempt.isFirst
            }
            states.report(.connected)
            // A peer that accepts and hangs up at once may be faster than this task.
            let next = attempt.earlyEnd.map { end in
                moveOn(&phase, after: end.cause, at: connection.now)
            }
            return (true, next)
        }
        if let next { carryOut(next) }
        return isDone
    }

    func fail(_ attempt: ConnectionAttempt<Connection>, _ error: any Error) {
        let cause = error as? WaybillError
        let timers = try? clock()
        defer { timers?.invalidate() }
        let (isShutDown, next) = phase.withLock { phase -> (Bool, Next?) in
            if case .shutDown = phase { return (true, nil) }
            guard case .connecting(let current) = phase, current === attempt else {
                return (false, nil)
            }
            if let timers, let next = goOn(&phase, after: attempt, cause, at: timers.now) {
                return (false, next)
            }
            phase = .idle
            memory.withLock { $0.greeting = nil }
            states.report(.disconnected(cause: cause))
            return (false, .conclude(cause, isForGood: false))
        }
        if let next { carryOut(next) }
        let reason = cause ?? (isShutDown ? .shutDown : attempt.stopReason)
        attempt.outcome.resolve(.failure(reason))
    }

    // MARK: The end

    private func sessionEnded(
        _ connection: Connection?,
        _ cause: WaybillError?,
        of attempt: ConnectionAttempt<Connection>?
    ) {
        let next = phase.withLock { phase -> Next? in
            switch phase {
            case .connected(let current) where current === connection:
                return moveOn(&phase, after: cause, at: current.now)
            case .connecting(let current) where current === attempt:
                current.earlyEnd = .init(cause: cause)
                return nil
            case .shutDown: return .conclude(nil, isForGood: true)
            default: return nil
            }
        }
        if let next { carryOut(next) }
    }

    /// Ends the connection, or the attempt to make one, and waits until that is done.
    ///
    /// No request makes another connection until ``connect(_:timeout:)``.
    ///
    /// - Parameters:
    ///   - options: How long that may take, unless as the settings say.
    ///   - prepare: Tells a session how to say goodbye.
    /// - Throws: `shutDown`.
    package func disconnect(
        _ options: DisconnectOptions = DisconnectOptions(),
        preparing prepare: @escaping @Sendable (Connection) -> Void = { _ in }
    ) async throws(WaybillError) {
        memory.withLock { $0.isLeft = true }
        while true {
            let connection: Connection
            switch phase.withLock({ $0 }) {
            case .idle: return
            case .shutDown: throw .shutDown
            case .connected(let current): connection = current
            case .connecting(let attempt):
                let reason = WaybillError(.notConnected, "disconnected while connecting")
                await attempt.stop(because: reason, preparing: prepare)
                // It may have been done just before it was stopped.
                guard case .success(let made) = attempt.outcome.result else { return }
                connection = made.connection
            }
            await connection.drain(within: options.drainTimeout ?? settings.drainTimeout)
            memory.withLock { $0.closesForPause = false }
            prepare(connection)
            await connection.disconnect(
                within: options.timeout ?? settings.closeTimeout,
                abandonment: nil
            )
            // It may have been lost just before, and be on its way back, or there.
            switch phase.withLock({ $0 }) {
            case .connecting(let attempt) where !attempt.isFirst: continue
            case .connected(let other) where other !== connection:
                guard memory.withLock({ $0.isSuccessor }) else { return }
            default: return
            }
        }
    }

    /// Ends everything for good and waits until nothing is left.
    ///
    /// Calls under way fail with `shutDown`. Doing it twice does nothing more.
    ///
    /// - Parameter prepare: Tells a session how to say goodbye.
    package func shutdown(
        preparing prepare: @escaping @Sendable (Connection) -> Void = { _ in }
    ) async {
        switch shutDownPhase() {
        case .shutDown: return
        case .idle: break
        case .connecting(let attempt):
            states.report(.disconnected(cause: nil))
            await attempt.stop(because: .shutDown, preparing: prepare)
        case .connected(let connection):
            states.report(.disconnected(cause: nil))
            journal.noteDisconnected(nil)
            prepare(connection)
            await connection.disconnect(within: settings.closeTimeout, abandonment: .shutDown)
        }
        conclude(nil, isForGood: true)
        #if os(Linux)
            SharedEventLoop.reap()
        #endif
    }

    /// Closes without waiting, when nobody refers to the transport any longer.
    package func abandon() {
        let phase = shutDownPhase()
        switch phase {
        case .idle, .shutDown: return
        case .connecting, .connected: states.report(.disconnected(cause: nil))
        }
        switch phase {
        case .idle, .shutDown: break
        case .connecting(let attempt): attempt.cancel(because: .shutDown)
        case .connected(let connection):
            journal.noteDisconnected(nil)
            connection.disconnectNow()
        }
        conclude(nil, isForGood: true)
    }

    /// Moves on to the last phase.
    /// - Returns: The phase before.
    private func shutDownPhase() -> Phase {
        phase.withLock { phase in
            defer { phase = .shutDown }
            return phase
        }
    }
}
