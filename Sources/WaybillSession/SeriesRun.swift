import Waybill
import WaybillLink
import WireCore

/// The task of one series of attempts.
///
/// It waits, opens connections, and tells ``ConnectionLifecycle`` the results.
struct SeriesRun<Connection: TransportConnection>: Sendable {
    typealias Made = ConnectionLifecycle<Connection>.Made

    let lifecycle: ConnectionLifecycle<Connection>
    let series: ConnectionLifecycle<Connection>.Series

    /// Runs attempts until a peer accepts, or until the machine ends the series.
    func run() async {
        do {
            let timers = lifecycle.clock
            repeat {
                let number = try await turn(by: timers)
                do { return series.outcome.resolve(.success(try await connect(number))) } catch {
                    guard goesOn(after: error, at: timers.now) else { return }
                }
            } while true
        } catch {
            // The series was stopped during a wait.
            _ = goesOn(after: error, at: .zero)
        }
    }

    /// Waits until the next attempt may begin.
    ///
    /// - Returns: The number of the attempt.
    /// - Throws: `CancellationError` if the series is over.
    private func turn(by timers: any TimerSource) async throws -> Int {
        while true {
            let wake = Promise<Void>()
            var turn = SeriesTurn.end
            lifecycle.apply { state in
                let (next, step) = state.machine.turn(of: series.number, at: timers.now)
                turn = next
                // Stored under the same lock, so that an event that ends the wait finds it.
                if case .wait = next { state.series?.wake = wake }
                return step
            }
            switch turn {
            case .end: throw CancellationError()
            case .open(let number): return number
            case .wait(let deadline):
                let timer = deadline.map { deadline in
                    timers.scheduleTimer(at: deadline) { wake.resolve(.success(())) }
                }
                defer { if let timer { timers.cancelTimer(timer) } }
                try await wake.value()
            }
        }
    }

    /// Tells the machine that an attempt has failed.
    ///
    /// - Returns: Whether the series continues.
    private func goesOn(after error: any Error, at now: WireInstant) -> Bool {
        // An error after the stop is not the reason for the end of the series.
        let isStopped = series.origin != .demand && Task.isCancelled
        let cause = isStopped ? nil : error as? WaybillError
        let (step, _) = lifecycle.apply { state in
            state.machine.failed(
                series.number,
                cause,
                at: now,
                random: lifecycle.environment.random
            )
        }
        guard let failure = step.failure else { return true }
        series.outcome.resolve(.failure(failure))
        return false
    }

    /// Makes one connection.
    ///
    /// After a refusal it tries again with other credentials.
    private func connect(_ number: Int) async throws -> Made {
        guard let (words, timeout) = lifecycle.state.withLock({ $0.greeting }) else {
            throw stopReason
        }
        var occasion = ConnectOccasion(
            isReconnection: series.origin == .loss,
            isUnattended: series.origin != .demand
        )
        while true {
            let greeting = try await lifecycle.dialect.prepare(words, &occasion)
            // Credentials that one host has accepted may have expired before the next host checks them.
            var wasAccepted = false
            do {
                let made = try await lifecycle.failover.first { route in
                    try await attempt(number, greeting, route, within: timeout) {
                        wasAccepted = true
                    }
                }
                occasion.noteSuccess()
                return made
            } catch let error as WaybillError {
                try await occasion.goOn(
                    after: error,
                    canReplaceCredentials: lifecycle.dialect.canReplaceCredentials,
                    wasAccepted: wasAccepted
                )
            }
        }
    }

    private var stopReason: WaybillError { lifecycle.state.withLock { $0.machine.stopReason } }

    /// Makes a connection to one host, and restores the state of the previous connection.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt, of which this host is a part.
    ///   - greeting: The greeting to send.
    ///   - route: The host.
    ///   - timeout: The limit for the whole connect.
    ///   - onAcceptance: Called when the server has accepted the greeting.
    /// - Returns: The connection, which requests already use.
    /// - Throws: `WaybillError`, `CancellationError`; the connection is closed then.
    private func attempt(
        _ number: Int,
        _ greeting: Connection.Greeting,
        _ route: Failover.Route,
        within timeout: Duration,
        onAcceptance: () -> Void
    ) async throws -> Made {
        let reporter = lifecycle.reporter
        let entry = reporter.noteConnecting(
            to: route.address.endpoint.description,
            attempt: number
        )
        let connection: Connection
        do {
            connection = try await lifecycle.dialect.open(route, within: timeout, greeting)
        } catch {
            reporter.noteEnd(of: entry, error as? WaybillError, stoppedBy: stopReason)
            throw error
        }
        lifecycle.state.withLock { $0.machine.opened(by: series.number) }
        do {
            // The connection references itself until its end. A weak reference would slow down every reference count
            // of the connection, and each message changes some.
            let receipt = try await connection.begin(greeting) { [weak lifecycle, series] cause in
                lifecycle?.ended(connection, of: series.number, cause)
            }
            onAcceptance()
            let isResumed = Connection.hasServerSessions ? receipt.isSessionPresent : nil
            reporter.noteConnected(entry, isResumed: isResumed)
            try await connection.resume(receipt)
            try await takeOver(connection)
            return Made(connection: connection, receipt: receipt)
        } catch {
            reporter.noteEnd(of: entry, error as? WaybillError, stoppedBy: stopReason)
            lifecycle.farewell(of: series.number)?(connection)
            await connection.disconnect(within: lifecycle.settings.closeTimeout, abandonment: nil)
            // The cause of the connection's end is more specific than the error of the request that was lost with it.
            let code = (error as? WaybillError)?.code
            if let cause = lifecycle.earlyEnd(of: series.number)?.cause,
                code == .connectionLost || code == .notConnected
            {
                throw cause
            }
            throw error
        }
    }

    /// Hands the connection over to requests, after the sends of the queue.
    private func takeOver(_ connection: Connection) async throws {
        var step: ConnectionLifecycle<Connection>.Step?
        repeat {
            try lifecycle.queue.flush(to: connection)
            step = try lifecycle.takeOver(connection, by: series.number)
        } while step == nil
        guard case .close(let connection) = step?.action else { return }
        await connection.disconnect(within: lifecycle.settings.closeTimeout, abandonment: nil)
    }
}
