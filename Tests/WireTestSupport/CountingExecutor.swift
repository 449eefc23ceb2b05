import WireCore

/// Runs jobs one after another and counts them. A call that leaves the actor comes back as one more job.
package final class CountingExecutor: SerialExecutor {
    private struct State: Sendable {
        var count = 0
        var waiting: [UnownedJob] = []
        var isRunning = false
    }

    private let state = Locked(State())

    package init() {}

    package var count: Int { state.withLock { $0.count } }

    #if canImport(Darwin)
        // The other type is there since macOS 14.
        package func enqueue(_ job: UnownedJob) { add(job) }
    #else
        package func enqueue(_ job: consuming ExecutorJob) { add(UnownedJob(job)) }
    #endif

    private func add(_ job: UnownedJob) {
        let isFirst = state.withLock { state in
            state.count += 1
            state.waiting.append(job)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { Task.detached { self.run() } }
    }

    private func run() {
        while let job = nextJob() { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    private func nextJob() -> UnownedJob? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isRunning = false
                return nil
            }
            return state.waiting.removeFirst()
        }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }
}

/// An actor on a ``CountingExecutor``.
package actor CountingActor {
    private let executor = CountingExecutor()

    package init() {}

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    /// How many times the body left the actor and came back.
    package func hops(
        _ body: @Sendable (isolated CountingActor) async throws -> Void
    ) async rethrows -> Int {
        let before = executor.count
        try await body(self)
        return executor.count - before
    }
}
