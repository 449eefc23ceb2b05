#if os(Linux)
    package import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    extension SystemClock {
        /// The shared loop, of which the clock is one user for as long as a timer is set.
        struct Waker {
            private(set) var loop: EventLoop?
            /// Whether the system grants no loop, and a thread of the pool looks at the timers.
            var isPolling = false

            /// Takes the loop, if there is one.
            mutating func acquire() {
                if loop == nil { loop = try? SharedEventLoop.acquireWithoutWaiting() }
                isPolling = loop == nil
            }

            mutating func release() {
                if loop.take() != nil { SharedEventLoop.release() }
            }
        }

        /// The monotonic clock, in its coarse form: a few nanoseconds to read, at most 4 ms late.
        package var now: WireInstant { SystemTime.coarseNow }

        /// Has the loop's thread call ``fire()`` at a time, at which a timer is due.
        func wake(at deadline: WireInstant) {
            let (loop, mustPoll) = state.withLock { state -> (EventLoop?, Bool) in
                guard state.timers.count > 0, !state.waker.isPolling else { return (nil, false) }
                state.waker.acquire()
                return (state.waker.loop, state.waker.isPolling)
            }
            loop?.setAlarm(at: deadline)
            if mustPoll { Task { @concurrent in await poll() } }
        }

        /// Looks at the timers every 10 ms, until a thread and descriptors are left for a loop.
        private func poll() async {
            while state.withLock({ state in
                state.waker.isPolling = false
                if state.timers.count > 0 { state.waker.acquire() }
                return state.waker.isPolling
            }) {
                fire()
                usleep(10_000)
                await Task.yield()
            }
            fire()
        }
    }
#endif
