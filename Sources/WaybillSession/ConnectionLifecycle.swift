package import Waybill
package import WaybillLink
public import WireCore

/// The shell of ``ConnectionMachine``.
///
/// It owns the lock, runs the attempts, and carries out the machine's decisions.
@usableFromInline
package final class ConnectionLifecycle<Connection: TransportConnection>: Sendable {
    package typealias Greeting = Connection.Greeting
    typealias Step = ConnectionStep<Connection>

    /// The result of a series of attempts.
    package struct Made: Sendable {
        let connection: Connection
        /// The peer's answer to the greeting.
        let receipt: Receipt
    }

    /// The running series of attempts.
    package struct Series: Sendable {
        let number: UInt64
        /// Nil when it has ended, because it keeps the peer's answer.
        var outcome: Promise<Made>?
        /// Nil when it has ended, because a task keeps its memory as long as something refers to it.
        var task: Task<Void, Never>?
        /// Resolves when the series and its connection are over, and subscriptions and calls are ended.
        ///
        /// Not if another series follows.
        let conclusion = Promise<Void>()
        /// Prepares an open connection for its end, such as its DISCONNECT packet.
        var prepareEnd: (@Sendable (Connection) -> Void)?
        /// Ends the wait before the next attempt.
        var wake: Promise<Void>?
    }

    /// The state behind the lock.
    @usableFromInline
    package struct State: Sendable {
        @usableFromInline var machine: ConnectionMachine<Connection>
        /// The greeting of the next attempts, and the timeout of each.
        var greeting: (content: Greeting, timeout: Duration)?
        /// The running series; nil after its conclusion, because it keeps the connection that it has made.
        var series: Series?
        var violations = RepeatedViolation()
    }

    @usableFromInline let state: Locked<State>
    let settings: ConnectionSettings
    let environment: LinkEnvironment
    let failover: Failover
    let dialect: any ConnectionDialect<Connection>
    let queue: OfflineQueue<Connection>
    let reporter: ConnectionReporter
    /// Resolves when a shutdown has ended everything.
    private let shutdownEnd = Promise<Void>()

    /// The states, for observers.
    package var states: ConnectionStateSource { reporter.states }

    /// What the life cycle itself knows of the figures of its transport.
    package var statistics: TransportStatistics {
        var statistics = TransportStatistics()
        (statistics.queuedCount, statistics.queuedByteCount) = queue.depth
        statistics.connectionCount = reporter.connectionCount
        return statistics
    }

    /// - Parameters:
    ///   - settings: The settings.
    ///   - policy: Whether and when to connect again.
    ///   - offlineQueue: What happens to sends while a lost connection is made again.
    ///   - failover: The hosts.
    ///   - environment: Provides clocks and random numbers.
    ///   - events: Receives the events of connections and of the queue.
    ///   - dialect: The transport's part.
    package init(
        _ settings: ConnectionSettings,
        reconnecting policy: ReconnectionPolicy,
        offlineQueue: OfflinePolicy = .off,
        _ failover: Failover,
        in environment: LinkEnvironment,
        reportingTo events: TransportEventSource = TransportEventSource(),
        _ dialect: any ConnectionDialect<Connection>
    ) {
        self.settings = settings
        self.failover = failover
        self.environment = environment
        self.dialect = dialect
        reporter = ConnectionReporter(events)
        queue = OfflineQueue(offlineQueue, in: environment, reportingTo: events)
        state = Locked(State(machine: ConnectionMachine(policy)))
    }

    /// Passes an event to the machine, reports the changes, and carries out the actions that need no caller.
    ///
    /// - Parameter event: The event.
    /// - Returns: What follows, and the series that is running then.
    /// - Throws: The errors of `event`.
    @discardableResult
    func apply<Failure: Error>(
        _ event: (inout State) throws(Failure) -> Step
    ) throws(Failure) -> (step: Step, series: Series?) {
        let (step, series) = try state.withLock { state throws(Failure) -> (Step, Series?) in
            let step = try event(&state)
            for change in step.changes { reporter.note(change) }
            switch step.action {
            case .begin: state.series = state.machine.state.attempt.map(makeSeries)
            // Stored under the same lock, so that an event that ends the wait finds it.
            case .wait: state.series?.wake = Promise()
            case .none, .use, .join, .postpone, .open, .wake, .close, .stop, .conclude: break
            }
            return (step, state.series)
        }
        switch step.action {
        case .wake: series?.wake?.resolve(.success(()))
        case .conclude(let cause, let isForGood): conclude(cause, isForGood: isForGood)
        case .none, .use, .join, .postpone, .begin, .open, .wait, .close, .stop: break
        }
        return (step, series)
    }

    /// Passes a request to the machine, again after each conclusion that it has to wait for.
    ///
    /// - Throws: The errors of `event`; `CancellationError`.
    func ask(
        _ event: (inout State) throws(WaybillError) -> Step
    ) async throws -> (step: Step, series: Series?) {
        while true {
            let (step, series) = try apply(event)
            guard case .postpone = step.action else { return (step, series) }
            try await series?.conclusion.value()
        }
    }

    /// Waits while an attempt is being stopped, or subscriptions and calls are being ended.
    ///
    /// - Throws: `CancellationError`.
    func waitUntilConcluded() async throws {
        let conclusion: Promise<Void>? = state.withLock { state in
            switch state.machine.state {
            case .stopping, .concluding: state.series?.conclusion
            case .idle, .connecting, .connected, .waiting, .paused, .closing, .shutDown: nil
            }
        }
        try await conclusion?.value()
    }

    private func conclude(_ cause: WaybillError?, isForGood: Bool) {
        dialect.conclude(cause, isForGood: isForGood)
        queue.conclude(
            isForGood
                ? .shutDown
                : WaybillError(
                    .notConnected,
                    "the connection is over: nothing was sent",
                    after: cause
                ),
            // Later attempts may succeed, unless the peer has refused the client.
            lasting: isForGood
                ? .shutDown : cause.flatMap { $0.isRetryable ? nil : $0.arriving(false) }
        )
        let series: Series? = state.withLock { state in
            state.machine.concluded()
            state.greeting = nil
            return state.series.take()
        }
        series?.conclusion.resolve(.success(()))
    }

    /// The clock of all time limits.
    package var clock: any TimerSource { environment.clock }

    // MARK: Connecting

    /// The connection for requests; nil if there is none.
    ///
    /// Inlinable into the transport's module, because every message reads it.
    @inlinable package var connected: Connection? {
        state.withLock { state in
            switch state.machine.state {
            case .connected(let connection), .closing(let connection, _): connection
            case .idle, .connecting, .waiting, .paused, .stopping, .concluding, .shutDown: nil
            }
        }
    }

    /// The functions that lead requests to a connection.
    package var requests: RequestPath<Connection> { RequestPath(lifecycle: self) }

    /// Whether there is a connection, or one is made again.
    package var isAlive: Bool {
        state.withLock { $0.machine.state.isAlive }
    }

    /// Whether there is a connection or an attempt to make one, also one that waits, is paused or is being stopped.
    package var isUnderWay: Bool {
        state.withLock { $0.machine.state.isUnderWay }
    }

    var isShutDown: Bool {
        state.withLock { state in
            if case .shutDown = state.machine.state { true } else { false }
        }
    }

    /// Connects.
    ///
    /// If the connection was lost, the next attempt starts at once instead of after the wait. While a disconnect stops
    /// an attempt, the new one starts after it.
    ///
    /// - Parameters:
    ///   - greeting: The greeting of this connection, and of those that follow its loss.
    ///   - timeout: The connect timeout; nil for the transport's own.
    /// - Returns: The peer's answer.
    /// - Throws: `rejected` if there is a connection, or one is being made; `shutDown`;
    ///   `notConnected` if the app disconnects in the meantime; the error of the attempt;
    ///   `CancellationError`.
    package func connect(_ greeting: Greeting, timeout: Duration?) async throws -> Receipt {
        let timeout = timeout ?? settings.connectTimeout
        let (step, series) = try await ask { state throws(WaybillError) in
            let step = try state.machine.connect()
            if case .postpone = step.action { return step }
            state.greeting = (greeting, timeout)
            state.violations = RepeatedViolation()
            return step
        }
        return try await made(by: series, step, within: timeout).receipt
    }

    /// Waits for the result of a series.
    ///
    /// If the series has no end of its own, the wait has a timeout.
    func made(by series: Series?, _ step: Step, within timeout: Duration) async throws
        -> Made
    {
        guard let outcome = series?.outcome else { throw WaybillError.noConnection }
        switch step.action {
        case .wake, .join(isLimited: true), .begin(isLimited: true):
            guard let made = try await outcome.value(within: timeout, by: clock) else {
                throw step.failure ?? state.withLock { $0.machine.state.absence }
            }
            return made
        case .join where step.waitsForInterval, .begin where step.waitsForInterval:
            // The attempt begins in time, unless a pause comes before it.
            let goesOn = { @Sendable [self] in !state.withLock { $0.machine.state.isPaused } }
            guard let made = try await outcome.value(within: timeout, by: clock, unless: goesOn)
            else { throw state.withLock { $0.machine.state.absence } }
            return made
        case .none, .use, .join, .postpone, .begin, .open, .wait, .close, .stop, .conclude:
            return try await outcome.value()
        }
    }

    /// Starts to make a connection for a subscription, unless there is one or one is being made.
    ///
    /// Does not wait for the connection.
    ///
    /// - Throws: `CancellationError`.
    func wantConnection(_ greeting: Greeting) async throws {
        _ = try await ask { state in want(greeting, &state) }
    }

    /// Has the machine make a connection for a subscription or a send; under the lock.
    func want(_ greeting: Greeting, _ state: inout State) -> Step {
        let step = state.machine.subscribe()
        if case .begin = step.action { state.greeting = (greeting, settings.connectTimeout) }
        return step
    }

    // MARK: A series of attempts

    private func makeSeries(_ attempt: ConnectionAttempt) -> Series {
        let number = attempt.series
        // A first attempt is cancelled when every waiting task was cancelled.
        let outcome =
            attempt.isLasting
            ? Promise<Made>() : Promise<Made>(onAbandoned: { [weak self] in self?.cancel(number) })
        let origin = attempt.origin
        let run = SeriesRun(lifecycle: self, number: number, origin: origin, outcome: outcome)
        let task = Task { @concurrent [weak self] in
            await run.run()
            self?.noteEnd(of: number)
        }
        return Series(number: number, outcome: outcome, task: task)
    }

    /// Releases what a series needs only until a peer has accepted, or until it has failed.
    private func noteEnd(of number: UInt64) {
        let ended: Series? = state.withLock { state in
            guard let series = state.series, series.number == number else { return nil }
            state.series?.task = nil
            state.series?.outcome = nil
            return series
        }
        // Released with no lock held.
        withExtendedLifetime(ended) {}
    }

    private func cancel(_ number: UInt64) {
        state.withLock { $0.series?.number == number ? $0.series?.task : nil }?.cancel()
    }

    /// Cancels a series and waits until it has cleaned up.
    private func stop(
        _ series: Series?,
        preparing prepare: @escaping @Sendable (Connection) -> Void
    ) async {
        guard let series else { return }
        state.withLock { $0.series?.prepareEnd = prepare }
        series.task?.cancel()
        await series.outcome?.waitUntilResolved()
    }

    /// A connection is over.
    func ended(
        _ connection: Connection,
        to route: Failover.Route,
        of number: UInt64,
        _ cause: WaybillError?
    ) {
        apply { state in
            let cause = state.violations.note(cause, mark: connection.violationMark)
            let step = state.machine.ended(
                connection,
                of: number,
                cause,
                hasProgress: connection.hasProgress,
                at: connection.now,
                random: environment.random
            )
            // What came before a healthy connection belongs to no row.
            if step.wasHealthy == true { state.violations = RepeatedViolation() }
            // Under the same lock, because a series that begins here reads the order of the hosts.
            failover.noteEnd(of: route, step, cause)
            return step
        }
    }

    // MARK: The end

    /// Ends the connection, or the attempt to make one, and waits until it is closed and everything is stored.
    ///
    /// No request makes another connection until ``connect(_:timeout:)``.
    ///
    /// - Parameters:
    ///   - timeout: The time limit of the close; nil for that of the settings.
    ///   - drainTimeout: The time limit of pending sends; nil for that of the settings.
    ///   - prepare: Prepares a connection for its end, such as its DISCONNECT packet.
    /// - Throws: `shutDown`.
    package func disconnect(
        within timeout: Duration? = nil,
        drainingWithin drainTimeout: Duration? = nil,
        preparing prepare: @escaping @Sendable (Connection) -> Void = { _ in }
    ) async throws(WaybillError) {
        let (step, series) = try apply { state throws(WaybillError) in
            try state.machine.disconnect()
        }
        let closeTimeout = timeout ?? settings.closeTimeout
        switch step.action {
        case .stop: await stop(series, preparing: prepare)
        case .close(let connection):
            await connection.drain(within: drainTimeout ?? settings.drainTimeout)
            prepare(connection)
            await connection.disconnect(within: closeTimeout, abandonment: nil)
        case .none, .use, .join, .postpone, .begin, .open, .wait, .wake, .conclude: break
        }
        await dialect.flush(within: closeTimeout)
    }

    /// Shuts down: ends connection, attempts and queue, and waits until they have ended.
    ///
    /// Pending calls fail with `shutDown`. A second call waits for the same end.
    ///
    /// - Parameter prepare: Prepares a connection for its end, such as its DISCONNECT packet.
    package func shutdown(
        preparing prepare: @escaping @Sendable (Connection) -> Void = { _ in }
    ) async {
        let (step, series) = apply { $0.machine.shutDown() }
        switch step.action {
        case .stop: await stop(series, preparing: prepare)
        case .close(let connection):
            prepare(connection)
            await connection.disconnect(
                within: settings.closeTimeout,
                abandonment: .shutDown.arriving(true)
            )
        // What an earlier end has left to be written.
        case .conclude: break
        case .none, .use, .join, .postpone, .begin, .open, .wait, .wake:
            return await shutdownEnd.waitUntilResolved()
        }
        apply { _ in Step(action: .conclude(nil, isForGood: true)) }
        await dialect.flush(within: settings.closeTimeout)
        LinkEnvironment.reclaim()
        states.finish()
        shutdownEnd.resolve(.success(()))
    }

    /// Shuts down without waiting, when the transport was released.
    package func abandon() {
        let (step, series) = apply { $0.machine.shutDown() }
        switch step.action {
        case .stop: series?.task?.cancel()
        case .close(let connection): connection.disconnectNow()
        case .none, .use, .join, .postpone, .begin, .open, .wait, .wake, .conclude:
            return states.finish()
        }
        apply { _ in Step(action: .conclude(nil, isForGood: true)) }
        states.finish()
    }

    // MARK: Hints

    /// Follows a hint of the app or of the platform.
    package func heed(_ hint: ConnectionHint) {
        switch hint {
        case .pause:
            let step = apply { $0.machine.pause() }.step
            Task { @concurrent in await close(step) }
        case .resume: resume()
        case .retryNow: retryNow()
        }
    }

    /// Closes the connection, if a step demands it, and waits until it is closed and everything is stored.
    func close(_ step: Step) async {
        if case .close(let connection) = step.action {
            await connection.disconnect(within: settings.closeTimeout, abandonment: nil)
        }
        await dialect.flush(within: settings.closeTimeout)
    }

    /// Closes the connection until ``resume()``, and waits until it is closed and everything is stored.
    ///
    /// Streams and pending calls stay.
    package func pause() async {
        await close(apply { $0.machine.pause() }.step)
    }

    /// Ends a pause.
    ///
    /// A connection that it has closed is made again at once.
    package func resume() { apply { $0.machine.resume() } }

    /// Ends the wait for the next attempt.
    package func retryNow() { apply { $0.machine.retryNow() } }
}
