import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Decides when a stream is requested again, by the policy, the server and the app's hints; and carries out the wait.
final class SSEBackoff: Sendable {
    private struct State: Sendable {
        var schedule: ReconnectionSchedule
        /// True between ``pause()`` and ``resume()``.
        var isPaused = false
        /// Resolves at the end of the present wait.
        var sleep: Promise<Void>?
    }

    /// The minimum wait after an attempt without an event: 100 milliseconds.
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

    /// Returns the wait before the next attempt.
    ///
    /// - Parameters:
    ///   - outcome: The end of the last attempt.
    ///   - stated: The reconnection time that the server has set; it may lengthen the wait and not shorten it.
    /// - Returns: The wait; nil if no attempt follows.
    func delay(after outcome: SSEStream.Outcome, stated: Duration?) -> Duration? {
        guard let timers = try? environment.makeTimers() else { return nil }
        defer { timers.invalidate() }
        let cause = outcome.error ?? WaybillError(.connectionLost, "the stream has ended")
        let drawn = state.withLock { state in
            // An attempt with an event counts as a success, however soon the stream ended.
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
        // A server that opens a stream and ends it without an event is not asked again without a pause.
        return outcome.hadEvents ? time : max(time, Self.leastPause)
    }

    /// A wait that has begun.
    struct Wait {
        fileprivate let sleep: Promise<Void>
        fileprivate let deadline: WireInstant
    }

    /// Begins a wait; ``hurry()`` ends it from now on.
    ///
    /// Called before observers are told of the wait, because they may call ``hurry()`` at once.
    ///
    /// - Returns: The wait; nil if there is no clock.
    func wait(for delay: Duration) -> Wait? {
        guard let timers = try? environment.makeTimers() else { return nil }
        defer { timers.invalidate() }
        return Wait(sleep: begin(), deadline: timers.now.advanced(by: delay))
    }

    /// Waits until the deadline of a wait, or until ``hurry()``.
    ///
    /// - Returns: False if the task was cancelled.
    func sleep(_ wait: Wait) async -> Bool {
        guard let timers = try? environment.makeTimers() else { return false }
        defer { timers.invalidate() }
        let timer = timers.scheduleTimer(at: wait.deadline) { wait.sleep.resolve(.success(())) }
        defer { timers.cancelTimer(timer) }
        // Saves a turn of the event loop, in which the timer would fire.
        if wait.deadline <= timers.now { return !Task.isCancelled }
        return (try? await wait.sleep.value()) != nil
    }

    /// Notes that the stream is open; after the policy's healthy time, earlier failures no longer count.
    func noteOpened() {
        guard let timers = try? environment.makeTimers() else { return }
        defer { timers.invalidate() }
        state.withLock { $0.schedule.noteConnected(at: timers.now) }
    }

    /// Waits until the end of a pause.
    ///
    /// - Parameter limit: The time limit; nil for none.
    /// - Returns: False if the time limit has passed or the task was cancelled.
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

    /// Ends the present wait.
    func hurry() {
        state.withLock { $0.sleep }?.resolve(.success(()))
    }
}
