#if canImport(Network)
    import Dispatch
    package import WireCore

    /// The system's clock, with timers on one queue that all links of the process share.
    package final class DispatchTimers: TimerSource, Sendable {
        private struct State {
            var timers = TimerQueue()
            /// The earliest time at which ``fire()`` is certain to run.
            var wakeUp: WireInstant?
            var isValid = true

            mutating func takeDueTokens(at now: WireInstant) -> [UInt64] {
                if let moment = wakeUp, moment <= now { wakeUp = nil }
                return isValid ? timers.takeDueTokens(at: now) : []
            }
        }

        private static let queue = DispatchQueue(label: "waybill.timers")
        private let state = Locked(State())

        package init() {}

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
            state.withLock { $0.timers.cancel(token) }
        }

        package func invalidate() {
            state.withLock { state in
                state.isValid = false
                state.timers = TimerQueue()
            }
        }

        /// Schedules a wake-up for the next timer, unless an earlier one is scheduled.
        private func arm() {
            let next: WireInstant? = state.withLock { state in
                guard state.isValid, let next = state.timers.nextDeadline else { return nil }
                if let wakeUp = state.wakeUp, wakeUp <= next { return nil }
                state.wakeUp = next
                return next
            }
            guard let next else { return }
            let delay = max(now.duration(to: next).wireNanoseconds, 0)
            // A superfluous wake-up finds nothing to do.
            let moment = DispatchTime.now() + .nanoseconds(Int(clamping: delay))
            Self.queue.asyncAfter(deadline: moment) { [weak self] in self?.fire() }
        }

        private func fire() {
            // Each due timer runs once: a timer that an action adds waits for the next call, whatever its deadline.
            let due = state.withLock { $0.takeDueTokens(at: SystemTime.now) }
            for token in due { state.withLock { $0.timers.take(token) }?() }
            arm()
        }
    }
#endif
