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
            #if DEBUG
                await withCheckedContinuation(isolation: actor) { body($0) }
            #else
                await withUnsafeContinuation(isolation: actor) { body($0) }
            #endif
        } onCancel: {
            cancel()
        }
    }
}
