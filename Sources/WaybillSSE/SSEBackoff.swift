import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// When a stream is asked for again: by the policy, and by what the server and the app say.
final class SSEBackoff: Sendable {
    private struct State: Sendable {
        var schedule: ReconnectionSchedule
        /// Whether no stream is wanted for a while.
        var isPaused = false
        /// Resolves when the wait under way is over.
        var sleep: Promise<Void>?
    }

    /// The least wait after an attempt that brought nothing: 100 milliseconds.
    private static let leastPause = Duration.milliseconds(100)

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
        let asked = max(stated ?? .zero, outcome.retryAfter ?? .zero)
        let time = max(drawn, min(asked, policy.maximumServerDelay))
        // Nor is a server asked without a pause that opens a stream only to end it.
        return outcome.hadEvents ? time : max(time, Self.leastPause)
    }

    /// A wait that has begun.
    struct Wait {
        fileprivate let sleep: Promise<Void>
        fileprivate let deadline: WireInstant
    }

    /// Begins a wait, before anybody is told of it: from then on time counts, and whoever hurries is heard.
    /// - Returns: The wait; nil when there is no clock.
    func wait(for delay: Duration) -> Wait? {
        guard let timers = try? environment.makeTimers() else { return nil }
        defer { timers.invalidate() }
        return Wait(sleep: begin(), deadline: timers.now.advanced(by: delay))
    }

    /// - Returns: Whether the time has passed, or was cut short; false when the task was cancelled.
    func sleep(_ wait: Wait) async -> Bool {
        guard let timers = try? environment.makeTimers() else { return false }
        defer { timers.invalidate() }
        let timer = timers.scheduleTimer(at: wait.deadline) { wait.sleep.resolve(.success(())) }
        defer { timers.cancelTimer(timer) }
        // A timer for a moment that has passed comes at once, in a turn of its own: this only saves the turn.
        if wait.deadline <= timers.now { return !Task.isCancelled }
        return (try? await wait.sleep.value()) != nil
    }

    /// Notes that the server has begun to stream: after the healthy time, what failed before is forgotten.
    func noteOpened() {
        guard let timers = try? environment.makeTimers() else { return }
        defer { timers.invalidate() }
        state.withLock { $0.schedule.noteConnected(at: timers.now) }
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
            let sleep = begin()
            guard isPaused else { return !Task.isCancelled }
            guard !isOver.withLock({ $0 }) else { return false }
            guard (try? await sleep.value()) != nil else { return false }
        }
    }

    private func begin() -> Promise<Void> {
        let sleep = Promise<Void>()
        state.withLock { $0.sleep = sleep }
        return sleep
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
