package import WireCore

/// The clock of the process, whose timers run on one thread: the shared loop's, or that of a dispatch queue.
///
/// On a thread that is simulated no timer is set, and its action is never called: it would run on a real thread, at a time
/// that no seed decides.
package final class SystemClock: TimerSource {
    struct State {
        var timers = TimerQueue()
        var waker = Waker()
    }

    /// The only one.
    package static let shared = SystemClock()

    let state = Locked(State())

    private init() {}

    package var preciseNow: WireInstant { SystemTime.now }

    package func scheduleTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64 {
        guard !LinkEnvironment.isSimulated else { return state.withLock { $0.timers.makeToken() } }
        let token = state.withLock { $0.timers.add(at: deadline, action) }
        wake(at: deadline)
        return token
    }

    package func cancelTimer(_ token: UInt64) {
        state.withLock { state in
            if state.timers.cancel(token), state.timers.count == 0 { state.waker.release() }
        }
    }

    /// Calls the actions that are due.
    ///
    /// Each timer runs once: a timer that an action adds waits for the next call, whatever its deadline. Otherwise it
    /// could delay the thread's other work forever. A superfluous call finds nothing to do.
    func fire() {
        let due = state.withLock { $0.timers.takeDueTokens(at: SystemTime.now) }
        for token in due { state.withLock { $0.timers.take(token) }?() }
        let next = state.withLock { state in
            if state.timers.count == 0 { state.waker.release() }
            return state.timers.nextDeadline
        }
        if let next { wake(at: next) }
    }
}
