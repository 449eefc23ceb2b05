#if canImport(Network)
    import Dispatch
    package import WireCore

    /// The clock of the process, with timers on one queue.
    package final class SystemClock: TimerSource, Sendable {
        private struct State {
            var timers = TimerQueue()
            /// The earliest time at which ``fire()`` is certain to run.
            var wakeUp: WireInstant?

            mutating func takeDueTokens(at now: WireInstant) -> [UInt64] {
                if let moment = wakeUp, moment <= now { wakeUp = nil }
                return timers.takeDueTokens(at: now)
            }
        }

        /// The only one.
        package static let shared = SystemClock()

        private static let queue = DispatchQueue(label: "waybill.timers")
        private let state = Locked(State())

        private init() {}

        package var now: WireInstant { SystemTime.now }

        package var preciseNow: WireInstant { SystemTime.now }

        package func scheduleTimer(
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) -> UInt64 {
            let token = state.withLock { $0.timers.add(at: deadline, action) }
            arm()
            return token
        }

        package func cancelTimer(_ token: UInt64) {
            state.withLock { _ = $0.timers.cancel(token) }
        }

        /// Has the queue call ``fire()`` for the next timer.
        private func arm() {
            let next: WireInstant? = state.withLock { state in
                guard let next = state.timers.nextDeadline else { return nil }
                if let wakeUp = state.wakeUp, wakeUp <= next { return nil }
                state.wakeUp = next
                return next
            }
            guard let next else { return }
            let delay = max(now.duration(to: next).wireNanoseconds, 0)
            // A superfluous wake-up finds nothing to do.
            let moment = DispatchTime.now() + .nanoseconds(Int(clamping: delay))
            Self.queue.asyncAfter(deadline: moment) { self.fire() }
        }

        private func fire() {
            // Each due timer runs once: a timer that an action adds waits for the next call, whatever its deadline.
            let due = state.withLock { $0.takeDueTokens(at: SystemTime.now) }
            for token in due { state.withLock { $0.timers.take(token) }?() }
            arm()
        }
    }
#endif
