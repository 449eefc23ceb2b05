import Waybill
import WireCore

/// One attempt to connect, for all who wait for it.
@usableFromInline
package final class ConnectionAttempt<Session: Sendable>: Sendable {
    /// What comes of it.
    struct Made: Sendable {
        let session: Session
        /// What the peer said.
        let receipt: Receipt
    }

    /// That a connection was over before it was taken over.
    struct EarlyEnd: Sendable {
        let cause: WaybillError?
    }

    /// The task, which may be cancelled before it is there.
    private final class Work: Sendable {
        private struct State: Sendable {
            var task: Task<Void, Never>?
            var isCancelled = false
        }

        private let state = Locked(State())

        func set(_ task: Task<Void, Never>) {
            let isCancelled = state.withLock { state in
                state.task = task
                return state.isCancelled
            }
            if isCancelled { task.cancel() }
        }

        func cancel() {
            let task = state.withLock { state in
                state.isCancelled = true
                return state.task
            }
            task?.cancel()
        }
    }

    private struct State: Sendable {
        var reason: WaybillError?
        var earlyEnd: EarlyEnd?
    }

    private let work = Work()
    private let state = Locked(State())

    /// Resolves with the session.
    ///
    /// When everybody who waited has been cancelled, so is the attempt.
    let outcome: Promise<Made>

    init() {
        outcome = Promise(onAbandoned: { [work] in work.cancel() })
    }

    /// Why it was stopped, for those who still wait.
    var stopReason: WaybillError {
        state.withLock { $0.reason }
            ?? WaybillError(.notConnected, "the attempt to connect was cancelled")
    }

    /// The end of the connection, should it have come before the attempt was done.
    var earlyEnd: EarlyEnd? {
        get { state.withLock { $0.earlyEnd } }
        set { state.withLock { $0.earlyEnd = newValue } }
    }

    /// Sets it going.
    func start(_ body: @escaping @Sendable () async -> Void) {
        work.set(Task { @concurrent in await body() })
    }

    /// Stops it.
    func cancel(because reason: WaybillError) {
        state.withLock { $0.reason = reason }
        work.cancel()
    }

    /// Stops it and waits until it has cleaned up.
    func stop(because reason: WaybillError) async {
        cancel(because: reason)
        await outcome.settled()
    }
}
