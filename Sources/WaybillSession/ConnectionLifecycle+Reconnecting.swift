package import Waybill
import WaybillLink
import WireCore

// What follows when a connection was lost.
extension ConnectionLifecycle {
    /// What is to be done, with no lock held, after a connection.
    enum Next: Sendable {
        /// Connect again at a time; nil for when a pause is over.
        case reconnect(ConnectionAttempt<Connection>, WireInstant?)
        /// Tell that it is over.
        case conclude(WaybillError?, isForGood: Bool)
    }

    /// Moves on from a connection that has ended; called with the lock of the phase held.
    func moveOn(_ phase: inout Phase, after cause: WaybillError?, at now: WireInstant) -> Next {
        journal.noteDisconnected(cause)
        let (isPaused, delay) = memory.withLock { memory -> (Bool, Duration?) in
            let closesForPause = memory.closesForPause
            memory.closesForPause = false
            if memory.isPaused { return (true, nil) }
            // The pause was over before the connection was closed.
            if closesForPause, cause == nil { return (false, .zero) }
            guard let cause else { return (false, nil) }
            let delay = memory.schedule.delay(
                after: cause,
                at: now,
                random: environment.random
            )
            return (false, delay)
        }
        guard isPaused || delay != nil else {
            phase = .idle
            memory.withLock { $0.greeting = nil }
            states.report(.disconnected(cause: cause))
            return .conclude(cause, isForGood: false)
        }
        let attempt = ConnectionAttempt<Connection>(after: cause ?? Self.pause)
        phase = .connecting(attempt)
        report(.waiting(until: Self.instant(after: delay), cause: cause ?? Self.pause), attempt)
        return .reconnect(attempt, delay.map { now.advanced(by: $0) })
    }

    func carryOut(_ next: Next) {
        switch next {
        case .conclude(let cause, let isForGood): conclude(cause, isForGood: isForGood)
        case .reconnect(let attempt, let time):
            attempt.start { [self] in
                do {
                    attempt.outcome.resolve(.success(try await remake(for: attempt, at: time)))
                } catch {
                    fail(attempt, error)
                }
            }
        }
    }

    /// Tries until the peer accepts, or there is no use in it, or enough of it.
    private func remake(
        for attempt: ConnectionAttempt<Connection>,
        at time: WireInstant?
    ) async throws -> ConnectionAttempt<Connection>.Made {
        let timers = try clock()
        defer { timers.invalidate() }
        var next = time
        var number = 0
        while true {
            if let next { try await attempt.sleep(until: next, by: timers) }
            while isPaused { try await attempt.sleep(until: nil, by: timers, if: { isPaused }) }
            number += 1
            attempt.number = number
            try report(.connecting(attempt: number), of: attempt)
            do { return try await make(for: attempt) } catch let error as WaybillError {
                try Task.checkCancellation()
                attempt.failure = error
                let now = timers.now
                var delay = memory.withLock { memory in
                    memory.schedule.delay(after: error, at: now, random: environment.random)
                }
                if isPaused { delay = nil } else if delay == nil { throw error }
                next = delay.map { now.advanced(by: $0) }
                try report(.waiting(until: Self.instant(after: delay), cause: error), of: attempt)
            }
        }
    }

    private var isPaused: Bool { memory.withLock { $0.isPaused } }

    private func report(
        _ state: ConnectionState,
        of attempt: ConnectionAttempt<Connection>
    ) throws {
        try phase.withLock { phase in
            guard case .connecting(let current) = phase, current === attempt else {
                throw CancellationError()
            }
            report(state, attempt)
        }
    }

    /// Reports a state of an attempt, and a wait among the events, too.
    func report(_ state: ConnectionState, _ attempt: ConnectionAttempt<Connection>) {
        if case .waiting(let instant, let cause) = state {
            attempt.announceSleep()
            journal.noteWaiting(until: instant, attempt: attempt.number + 1, cause: cause)
        }
        states.report(state)
    }

    /// When a wait is over; for one without an end, in some years.
    static func instant(after delay: Duration?) -> ContinuousClock.Instant {
        .now + min(delay ?? longest, longest)
    }

    private static var longest: Duration { .seconds(10 * 365 * 86_400) }

    private static var pause: WaybillError {
        WaybillError(.notConnected, "the connection is paused")
    }

    /// Tells that the connection is over and no other follows.
    func conclude(_ cause: WaybillError?, isForGood: Bool) {
        actions.conclude(cause, isForGood)
        // It may keep interceptors alive, and they the transport.
        if isForGood { memory.withLock { $0.greeting = nil } }
        queue.conclude(
            isForGood
                ? .shutDown
                : WaybillError(
                    .notConnected,
                    "the connection is over: nothing was sent",
                    peerReason: cause?.peerReason,
                    underlying: cause
                )
        )
    }

    // MARK: Hints

    /// Heeds what the app or the platform knows of the surroundings.
    package func heed(_ hint: ConnectionHint) {
        switch hint {
        case .pause:
            memory.withLock { $0.isPaused = true }
            Task { @concurrent in await closeForPause() }
        case .resume: resume()
        case .retryNow: hurry()
        }
    }

    /// Closes the connection for a while and waits until that is done; streams and what is under way stay.
    package func pause() async {
        memory.withLock { $0.isPaused = true }
        await closeForPause()
    }

    private func closeForPause() async {
        // One that is being made is closed when it is there.
        guard let connection = connected, memory.withLock({ $0.beginClosingForPause() }) else {
            return
        }
        await connection.disconnect(within: settings.closeTimeout, abandonment: nil)
    }

    /// Ends a pause: what was closed by it is connected again, at once.
    package func resume() {
        memory.withLock { $0.isPaused = false }
        hurry()
    }

    /// Cuts the wait for the next attempt short, since there is reason to hope.
    package func hurry() {
        guard !isPaused, case .connecting(let attempt) = phase.withLock({ $0 }) else { return }
        attempt.hurry()
    }
}
