#if os(Linux)
    package import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// The clock of the process, whose timers run on the shared loop: it runs as long as a timer is set.
    ///
    /// On a thread that is simulated no timer is set, and its action is never called: it would run on a real thread, at a time
    /// that no seed decides.
    package final class SystemClock: TimerSource {
        private struct State {
            var lastToken: UInt64 = 0
            /// Timers for which the system granted no loop.
            var stranded = TimerQueue()
            var isPolling = false
        }

        /// The only one.
        package static let shared = SystemClock()

        private let state = Locked(State())

        private init() {}

        /// The monotonic clock, in its coarse form: a few nanoseconds to read, at most 4 ms late.
        package var now: WireInstant { SystemTime.coarseNow }

        package var preciseNow: WireInstant { SystemTime.now }

        package func scheduleTimer(
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) -> UInt64 {
            let token = state.withLock { state in
                state.lastToken += 1
                return state.lastToken
            }
            guard !LinkEnvironment.isSimulated else { return token }
            do throws(LinkError) {
                // Each timer counts as a user of the loop until it has fired or was cancelled.
                let loop = try SharedEventLoop.acquireWithoutWaiting()
                loop.addTimer(token, at: deadline) {
                    action()
                    SharedEventLoop.release()
                }
            } catch {
                strand(token, at: deadline, action)
            }
            return token
        }

        package func cancelTimer(_ token: UInt64) {
            if SharedEventLoop.running?.cancelTimer(token) == true {
                SharedEventLoop.release()
            } else {
                state.withLock { _ = $0.stranded.cancel(token) }
            }
        }

        // MARK: Without a loop

        /// Keeps a timer for which there is no thread or descriptor: a thread of the pool looks at it every 10 ms.
        private func strand(
            _ token: UInt64,
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) {
            let mustPoll = state.withLock { state in
                state.stranded.add(token, at: deadline, action)
                defer { state.isPolling = true }
                return !state.isPolling
            }
            if mustPoll { Task { @concurrent in await poll() } }
        }

        private func poll() async {
            while state.withLock({ state in
                state.isPolling = state.stranded.count > 0
                return state.isPolling
            }) {
                while let action = state.withLock({ $0.stranded.takeDue(at: preciseNow) }) {
                    action()
                }
                usleep(10_000)
                await Task.yield()
            }
        }
    }
#endif
