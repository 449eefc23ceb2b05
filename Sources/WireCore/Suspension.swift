/// Waiting for a callback without leaving the caller's actor.
@usableFromInline
package enum Suspension {
    #if DEBUG
        /// Traps when it is resumed twice, and says so when it is forgotten.
        @usableFromInline
        package typealias Continuation = CheckedContinuation<Void, Never>
    #else
        /// Unchecked, which saves an object for each wait.
        ///
        /// Whoever keeps one takes it out of its state, under its lock, to resume it, so that it is resumed once;
        /// every test of a debug build runs with those that check.
        @usableFromInline
        package typealias Continuation = UnsafeContinuation<Void, Never>
    #endif

    /// How many continuations are resumed one by one: 4.
    package static var fewContinuations: Int { 4 }

    /// Resumes all of them, in order.
    ///
    /// Many are left to the shared pool itself: resumed here, the first would wake a thread of the pool, which would run
    /// its task, find no other and go back to sleep, and so on with each of them.
    ///
    /// The pool has threads for each priority. The high one is what an app's main task has and what it begins: off the main
    /// actor, such callers run on the very thread that has resumed them. To ask each for its own priority costs 0.2 us.
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
    /// As `withTaskCancellationHandler` around `withCheckedContinuation`, but for one thing: used as they
    /// are, their closure runs on the shared pool, so that a wait from an actor costs two more hops between
    /// threads, 7 to 12 microseconds each. A closure that captures the actor stays on it.
    ///
    /// - Parameters:
    ///   - actor: The caller's.
    ///   - body: Keeps the continuation, or resumes it.
    ///   - cancel: Called when the task is cancelled, perhaps before `body`; sees to it that the
    ///     continuation is resumed.
    @inlinable
    package static func wait(
        isolation actor: isolated (any Actor)? = #isolation,
        _ body: (Continuation) -> Void,
        onCancel cancel: @Sendable () -> Void
    ) async {
        await withTaskCancellationHandler {
            _ = actor
            await wait(isolation: actor, body)
        } onCancel: {
            LockObserver.uninterrupted(cancel)
        }
    }

    /// Suspends the task until its continuation is resumed, cancelled or not.
    ///
    /// - Parameters:
    ///   - actor: The caller's.
    ///   - body: Keeps the continuation, or resumes it.
    @inlinable @inline(__always)
    package static func wait(
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
