/// Waits for a callback without leaving the caller's actor.
@usableFromInline
package enum Suspension {
    #if DEBUG
        /// Traps when it is resumed twice, and reports when it is never resumed.
        @usableFromInline
        package typealias Continuation = CheckedContinuation<Void, Never>
    #else
        /// Unchecked, which saves an allocation per wait.
        ///
        /// The owner takes a continuation out of its state under its lock before resuming it, so each is resumed once.
        /// Every test of a debug build runs with checked continuations.
        @usableFromInline
        package typealias Continuation = UnsafeContinuation<Void, Never>
    #endif

    /// The number of continuations up to which each is resumed directly: 4.
    package static var fewContinuations: Int { 4 }

    /// Resumes all continuations, in order.
    ///
    /// Many are resumed from a task on the shared pool. Resumed here, the first would wake a thread of the pool. That
    /// thread would run its task, find no other and sleep again, and the same would happen for each of them.
    ///
    /// The pool has threads for each priority. The high priority is that of an app's main task and of tasks it starts:
    /// off the main actor, such callers run on the thread that resumed them. Reading each task's own priority would
    /// cost 0.2 us.
    package static func resume(_ continuations: [Continuation]) {
        guard continuations.count > fewContinuations else {
            for continuation in continuations { continuation.resume() }
            return
        }
        Task(priority: .high) { @concurrent in
            for continuation in continuations { continuation.resume() }
        }
    }

    /// Suspends the task until its continuation is resumed.
    ///
    /// It works like `withTaskCancellationHandler` around `withCheckedContinuation`, with one difference. The closure
    /// of those runs on the shared pool: a wait from an actor then costs two more hops between threads, 7 to 12
    /// microseconds each. Here the closure captures the actor and stays on it.
    ///
    /// - Parameters:
    ///   - reason: What the task waits for, in words; a simulation shows it when no task goes on.
    ///   - actor: The caller's actor.
    ///   - body: Stores the continuation, or resumes it.
    ///   - cancel: Called when the task is cancelled, possibly before `body`; it must ensure that the continuation is
    ///     resumed.
    @inlinable
    package static func wait(
        for reason: @autoclosure () -> String,
        isolation actor: isolated (any Actor)? = #isolation,
        _ body: (Continuation) -> Void,
        onCancel cancel: @Sendable () -> Void
    ) async {
        let wait = LockObserver.beginWait(reason)
        await withTaskCancellationHandler {
            _ = actor
            await suspend(isolation: actor, body)
        } onCancel: {
            LockObserver.uninterrupted(cancel)
        }
        LockObserver.endWait(wait)
    }

    /// Suspends the task until its continuation is resumed; a cancellation does not end the wait.
    ///
    /// - Parameters:
    ///   - actor: The caller's actor.
    ///   - body: Stores the continuation, or resumes it.
    @inlinable @inline(__always)
    package static func suspend(
        isolation actor: isolated (any Actor)? = #isolation,
        _ body: (Continuation) -> Void
    ) async {
        #if DEBUG
            await withCheckedContinuation(isolation: actor) { body($0) }
        #else
            await withUnsafeContinuation(isolation: actor) { body($0) }
        #endif
    }
}
