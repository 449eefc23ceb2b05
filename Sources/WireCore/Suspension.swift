/// Waiting for a callback without leaving the caller's actor.
@usableFromInline
package enum Suspension {
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
        _ body: (CheckedContinuation<Void, Never>) -> Void,
        onCancel cancel: @Sendable () -> Void
    ) async {
        await withTaskCancellationHandler {
            _ = actor
            await withCheckedContinuation(isolation: actor) { body($0) }
        } onCancel: {
            cancel()
        }
    }
}
