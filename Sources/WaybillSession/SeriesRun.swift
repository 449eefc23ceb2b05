import Waybill
import WaybillLink
import WireCore

/// The task of one series of attempts.
///
/// It waits, opens connections, and tells ``ConnectionLifecycle`` the results.
struct SeriesRun<Connection: TransportConnection>: Sendable {
    typealias Made = ConnectionLifecycle<Connection>.Made

    let lifecycle: ConnectionLifecycle<Connection>
    let number: UInt64
    let origin: SeriesOrigin
    let outcome: Promise<Made>

    /// Runs attempts until a peer accepts, or until the machine ends the series.
    func run() async {
        do {
            let timers = lifecycle.clock
            repeat {
                let attempt = try await turn(by: timers)
                do { return outcome.resolve(.success(try await connect(attempt))) } catch {
                    guard goesOn(after: error, at: timers.now) else { return }
                }
            } while true
        } catch {
            // The series was stopped during a wait.
            _ = goesOn(after: error, at: lifecycle.clock.now)
        }
    }

    /// Waits until the next attempt may begin.
    ///
    /// - Returns: The number of the attempt.
    /// - Throws: `CancellationError` if the series is over.
    private func turn(by timers: any TimerSource) async throws -> Int {
        while true {
            let (step, series) = lifecycle.apply { $0.machine.turn(of: number, at: timers.now) }
            switch step.action {
            case .open(let attempt): return attempt
            case .wait(let deadline):
                guard let wake = series?.wake else { throw CancellationError() }
                let timer = deadline.map { deadline in
                    timers.scheduleTimer(at: deadline) { wake.resolve(.success(())) }
                }
                defer { if let timer { timers.cancelTimer(timer) } }
                try await wake.value()
            case .none, .use, .join, .postpone, .begin, .wake, .close, .stop, .conclude:
                throw CancellationError()
            }
        }
    }

    /// Tells the machine that an attempt has failed.
    ///
    /// - Returns: Whether the series continues.
    private func goesOn(after error: any Error, at now: WireInstant) -> Bool {
        // An error after the stop is not the reason for the end of the series.
        let isStopped = origin != .demand && Task.isCancelled
        let cause = isStopped ? nil : error as? WaybillError
        let (step, _) = lifecycle.apply { state in
            state.machine.failed(number, cause, at: now, random: lifecycle.environment.random)
        }
        guard let failure = step.failure else { return true }
        outcome.resolve(.failure(failure))
        return false
    }

    /// Makes one connection.
    ///
    /// After a refusal it tries again with other credentials.
    private func connect(_ attempt: Int) async throws -> Made {
        guard let (content, timeout) = lifecycle.state.withLock({ $0.greeting }) else {
            throw stopReason
        }
        let hasSource = lifecycle.dialect.canReplaceCredentials
        var occasion = ConnectOccasion(
            isReconnection: origin == .loss,
            isUnattended: origin != .demand
        )
        if case .dismissed(let dismissal) = trial.state {
            occasion = dismissal.value.occasion.value.renewed(isUnattended: origin != .demand)
            try await replaceCredentials(of: &occasion, after: dismissal.value.error)
        }
        while true {
            let greeting = try await lifecycle.dialect.prepare(content, &occasion)
            noteTrial { [occasion] in $0.noteShown(occasion, hasSource: hasSource) }
            // Credentials that one host has accepted may have expired before the next host checks them.
            var wasAccepted = false
            do {
                let isReconnection = origin == .loss
                let made = try await lifecycle.failover.first(
                    isReconnection: isReconnection,
                    at: occasion.address
                ) {
                    try await connect(attempt, greeting, $0, within: timeout) {
                        wasAccepted = true
                    }
                }
                occasion.noteSuccess()
                return made
            } catch let error as WaybillError {
                try await replaceCredentials(of: &occasion, after: error, wasAccepted: wasAccepted)
            }
        }
    }

    /// Asks for other credentials if the server has refused those of an attempt, by the table of ``CredentialTrial``.
    ///
    /// - Throws: The error that ends the attempt. Returns without an error if another greeting follows.
    private func replaceCredentials(
        of occasion: inout ConnectOccasion,
        after error: WaybillError,
        wasAccepted: Bool = false
    ) async throws {
        let hasSource = lifecycle.dialect.canReplaceCredentials
        var plain = error
        plain.wordlessRefusal = nil
        switch error.wordlessRefusal {
        case nil:
            let isOfDismissal = if case .dismissed = trial.state { true } else { false }
            do {
                try await occasion.goOn(
                    after: error,
                    canReplaceCredentials: hasSource,
                    wasAccepted: wasAccepted
                )
            } catch {
                noteTrial { $0.noteKept() }
                throw error
            }
            guard isOfDismissal || error.code == .unauthorized && !wasAccepted else { return }
        case .silence?:
            guard trial.asks(after: .silence) else { throw plain }
            let isReplaced = try await occasion.replaceCredentials(
                afterSilence: error,
                canReplaceCredentials: hasSource
            )
            guard isReplaced else { throw plain }
        case .dismissal?:
            // Before the connection was handed over to requests.
            guard trial.asks(after: .dismissal), occasion.canReplace(hasSource: hasSource) else {
                throw plain
            }
            try await occasion.goOn(
                after: error.asRefusal,
                canReplaceCredentials: hasSource,
                wasAccepted: false
            )
        }
        noteTrial { $0.noteReplaced() }
    }

    private var trial: CredentialTrial { lifecycle.state.withLock { $0.machine.trial } }

    private func noteTrial(_ event: (inout CredentialTrial) -> Void) {
        lifecycle.state.withLock { event(&$0.machine.trial) }
    }

    private var stopReason: WaybillError {
        lifecycle.state.withLock { $0.machine.state.stopReason }
    }

    /// Makes a connection to one host, and restores the state of the previous connection.
    ///
    /// - Parameters:
    ///   - attempt: The number of the attempt, of which this host is a part.
    ///   - greeting: The greeting to send.
    ///   - route: The host.
    ///   - timeout: The limit for the whole connect.
    ///   - onAcceptance: Called when the server has accepted the greeting.
    /// - Returns: The connection, which requests already use.
    /// - Throws: `WaybillError`, `CancellationError`; the connection is closed then.
    private func connect(
        _ attempt: Int,
        _ greeting: Connection.Greeting,
        _ route: Failover.Route,
        within timeout: Duration,
        onAcceptance: () -> Void
    ) async throws -> Made {
        let reporter = lifecycle.reporter
        let entry = reporter.noteConnecting(
            to: route.address.endpoint.description,
            attempt: attempt
        )
        var opened: Connection?
        do {
            lifecycle.state.withLock { $0.machine.opening(by: number) }
            let connection = try await lifecycle.dialect.open(route, within: timeout, greeting)
            opened = connection
            // The connection references itself until its end. A weak reference would slow down every reference count
            // of the connection, and each message changes some.
            let receipt = try await connection.begin(greeting) { [weak lifecycle, number] cause in
                lifecycle?.ended(connection, to: route, of: number, cause)
            }
            onAcceptance()
            let isResumed = Connection.hasServerSessions ? receipt[.sessionPresence] ?? false : nil
            reporter.noteConnected(entry, isResumed: isResumed)
            try await connection.resume(receipt)
            try await takeOver(connection, to: route)
            return Made(connection: connection, receipt: receipt)
        } catch {
            reporter.noteEnd(of: entry, error as? WaybillError, stoppedBy: stopReason)
            guard let connection = opened else { throw error }
            series?.prepareEnd?(connection)
            await connection.disconnect(within: lifecycle.settings.closeTimeout, abandonment: nil)
            // The cause of the connection's end is more specific than the error of the request that was lost with it.
            let code = (error as? WaybillError)?.code
            let end = lifecycle.state.withLock { $0.machine.state.attempt }
            guard end?.series == number, let cause = end?.earlyEnd?.cause,
                code == .connectionLost || code == .notConnected
            else { throw error }
            throw cause
        }
    }

    /// The series, while it is the running one.
    private var series: ConnectionLifecycle<Connection>.Series? {
        lifecycle.state.withLock { $0.series?.number == number ? $0.series : nil }
    }

    /// Hands the connection over to requests, after the sends of the queue.
    ///
    /// - Throws: The errors of the queue; `CancellationError` if the series is over.
    private func takeOver(
        _ connection: Connection,
        to route: Failover.Route
    ) async throws {
        while true {
            try lifecycle.queue.flush(to: connection)
            var isQueueEmpty = false
            let (step, _) = try lifecycle.apply { state throws(CancellationError) in
                isQueueEmpty = lifecycle.queue.count == 0
                guard isQueueEmpty else { return .init() }
                let earlyEnd = state.machine.state.attempt?.earlyEnd?.cause
                let (now, random) = (connection.now, lifecycle.environment.random)
                guard
                    let step = state.machine
                        .accepted(connection, by: number, at: now, random: random)
                else { throw CancellationError() }
                lifecycle.failover.noteEnd(of: route, step, earlyEnd)
                return step
            }
            guard isQueueEmpty else { continue }
            if case .close = step.action { await lifecycle.close(step) }
            return
        }
    }
}
