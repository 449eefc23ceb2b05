import WireCore

/// Runs jobs one after another, and counts them: a call that hops away comes back as a further job.
package final class CountingExecutor: SerialExecutor {
    private let jobs = Locked(0)

    package init() {}

    package var count: Int { jobs.withLock { $0 } }

    package func enqueue(_ job: consuming ExecutorJob) {
        jobs.withLock { $0 += 1 }
        let unowned = UnownedJob(job)
        let executor = asUnownedSerialExecutor()
        Task.detached { unowned.runSynchronously(on: executor) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }
}

/// An actor on such an executor.
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
