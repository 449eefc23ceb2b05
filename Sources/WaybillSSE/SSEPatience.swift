import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// When a stream is asked for again: by the policy, and by what the server and the app say.
final class SSEPatience: Sendable {
    private struct State: Sendable {
        var schedule: ReconnectionSchedule
        /// Whether no stream is wanted for a while.
        var isPaused = false
        /// Resolves when the wait under way is over.
        var sleep: Promise<Void>?
    }

    /// The least wait after an attempt that brought nothing: 100 milliseconds.
    private static let leastPause = Duration.milliseconds(100)
    /// The longest wait that a server can set.
    private static let mostPause = Duration.milliseconds(1 << 53)

    private let policy: ReconnectionPolicy
    private let environment: LinkEnvironment
    private let state: Locked<State>

    init(_ policy: ReconnectionPolicy, in environment: LinkEnvironment, isPaused: Bool) {
        self.policy = policy
        self.environment = environment
        state = Locked(State(schedule: ReconnectionSchedule(policy), isPaused: isPaused))
    }

    // MARK: Waits

    /// How long to wait before the next attempt.
    ///
    /// - Parameters:
    ///   - outcome: How the last one ended.
    ///   - stated: The reconnection time that the server has set; it may ask for more patience, not for less.
    /// - Returns: The wait; nil when there is to be no further attempt.
    func delay(after outcome: SSEStream.Outcome, stated: Duration?) -> Duration? {
        guard let timers = try? environment.makeTimers() else { return nil }
        defer { timers.invalidate() }
        let cause = outcome.error ?? WaybillError(.connectionLost, "the stream has ended")
        let drawn = state.withLock { state in
            // A stream that has brought something has done well, however soon it ended.
            if outcome.hadEvents { state.schedule = ReconnectionSchedule(policy) }
            return state.schedule.delay(
                after: cause,
                at: timers.now,
                random: environment.random
            )
        }
        guard let drawn else { return nil }
        let time = max(drawn, min(stated ?? .zero, Self.mostPause), outcome.retryAfter ?? .zero)
        // Nor is a server asked without a pause that opens a stream only to end it.
        return outcome.hadEvents ? time : max(time, Self.leastPause)
    }

    /// - Returns: Whether the time has passed, or was cut short; false when the task was cancelled.
    func sleep(for delay: Duration) async -> Bool {
        guard delay > .zero else { return !Task.isCancelled }
        guard let timers = try? environment.makeTimers() else { return false }
        defer { timers.invalidate() }
        let sleep = announced()
        let timer = timers.scheduleTimer(at: timers.now.advanced(by: delay)) {
            sleep.resolve(.success(()))
        }
        defer {
            timers.cancelTimer(timer)
            forget(sleep)
        }
        return (try? await sleep.value()) != nil
    }

    /// Waits until no pause is wanted.
    ///
    /// - Parameter limit: How long at the most; nil for any time.
    /// - Returns: False when time was up or the task was cancelled.
    func sleepWhilePaused(within limit: Duration?) async -> Bool {
        guard let timers = try? environment.makeTimers() else { return false }
        defer { timers.invalidate() }
        let isOver = Locked(false)
        let timer = limit.map { limit in
            timers.scheduleTimer(at: timers.now.advanced(by: limit)) { [weak self] in
                isOver.withLock { $0 = true }
                self?.hurry()
            }
        }
        defer { if let timer { timers.cancelTimer(timer) } }
        while true {
            let sleep = announced()
            defer { forget(sleep) }
            guard isPaused else { return !Task.isCancelled }
            guard !isOver.withLock({ $0 }) else { return false }
            guard (try? await sleep.value()) != nil else { return false }
        }
    }

    /// Hears ``hurry()`` from now on, for the wait that follows.
    func announceSleep() {
        state.withLock { $0.sleep = Promise<Void>() }
    }

    /// The wait that was announced, or a new one.
    private func announced() -> Promise<Void> {
        state.withLock { state in
            let sleep = state.sleep ?? Promise<Void>()
            state.sleep = sleep
            return sleep
        }
    }

    private func forget(_ sleep: Promise<Void>) {
        state.withLock { if $0.sleep === sleep { $0.sleep = nil } }
    }

    // MARK: Hints

    var isPaused: Bool { state.withLock { $0.isPaused } }

    func pause() {
        state.withLock { $0.isPaused = true }
    }

    func resume() {
        state.withLock { $0.isPaused = false }
        hurry()
    }

    /// Cuts a wait short.
    func hurry() {
        state.withLock { $0.sleep }?.resolve(.success(()))
    }
}
