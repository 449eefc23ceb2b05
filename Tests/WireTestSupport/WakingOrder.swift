#if os(Linux)
    import WireCore

    /// Tasks that wait for something, and the order in which they were woken.
    ///
    /// They run one at a time and in the order in which they were begun or resumed, where the shared pool and an actor's
    /// queue would let one overtake another.
    package final class WakingOrder: Sendable {
        private final class Queue: TaskExecutor {
            private let jobs = Locked<[UnownedJob]>([])

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                jobs.withLock { $0.append(job) }
            }

            /// Runs what there is.
            func run() {
                while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                    job.runSynchronously(on: asUnownedTaskExecutor())
                }
            }
        }

        private struct State: Sendable {
            var count = 0
            var begun = 0
            var woken: [Int] = []
        }

        private let queue = Queue()
        private let state = Locked(State())

        package init() {}

        /// Begins tasks one after the other, each of which comes to its first wait.
        ///
        /// - Parameters:
        ///   - count: How many.
        ///   - wait: What each does, given its number from 0 on.
        package func begin(_ count: Int, _ wait: @escaping @Sendable (Int) async -> Void) {
            state.withLock { $0.count = count }
            for number in 0..<count {
                Task(executorPreference: queue) { [self] in
                    await wait(number)
                    state.withLock { $0.woken.append(number) }
                }
            }
            queue.run()
        }

        /// Lets the tasks go on, until something is so.
        package func run(until isSo: () -> Bool) async throws {
            try await waitUntil {
                queue.run()
                return isSo()
            }
        }

        /// The numbers of the tasks in the order in which they were woken, when all were.
        package var woken: [Int] {
            get async throws {
                try await run { state.withLock { $0.woken.count == $0.count } }
                return state.withLock { $0.woken }
            }
        }
    }
#endif
