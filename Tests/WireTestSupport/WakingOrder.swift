#if os(Linux)
    import WireCore

    /// Tasks that wait for something, and the order in which they were woken.
    ///
    /// They run one at a time, in the order in which they were started or resumed. On the shared pool or in an
    /// actor's queue, one task could overtake another.
    package final class WakingOrder: Sendable {
        private final class Queue: TaskExecutor {
            private let jobs = Locked<[UnownedJob]>([])

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                jobs.withLock { $0.append(job) }
            }

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

        /// Starts tasks one after the other. Each runs up to its first wait.
        ///
        /// - Parameters:
        ///   - count: The number of tasks.
        ///   - wait: The body of each task, which gets the task's number from 0 on.
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

        /// Runs the tasks until the condition is true.
        package func run(until isSo: () -> Bool) async throws {
            try await waitUntil {
                queue.run()
                return isSo()
            }
        }

        /// The numbers of all tasks in the order in which they were woken.
        package var woken: [Int] {
            get async throws {
                try await run { state.withLock { $0.woken.count == $0.count } }
                return state.withLock { $0.woken }
            }
        }
    }
#endif
