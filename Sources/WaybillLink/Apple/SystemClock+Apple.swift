#if canImport(Network)
    import Dispatch
    package import WireCore

    extension SystemClock {
        /// The wake-ups of the queue.
        struct Waker {
            /// The earliest time at which ``SystemClock/fire()`` is certain to run.
            var next: WireInstant?

            mutating func release() {}
        }

        private static let queue = DispatchQueue(label: "waybill.timers")

        package var now: WireInstant { SystemTime.now }

        /// Has the queue call ``fire()`` at a time, at which a timer is due.
        func wake(at deadline: WireInstant) {
            let isLate = state.withLock { state in
                if let next = state.waker.next, next <= deadline { return false }
                state.waker.next = deadline
                return true
            }
            guard isLate else { return }
            let delay = max(now.duration(to: deadline).wireNanoseconds, 0)
            let moment = DispatchTime.now() + .nanoseconds(Int(clamping: delay))
            Self.queue.asyncAfter(deadline: moment) { [self] in
                state.withLock { if $0.waker.next == deadline { $0.waker.next = nil } }
                fire()
            }
        }
    }
#endif
