import MQTTWire
import Waybill
import WireCore

/// One attempt to connect, for all who wait for it.
final class MQTTAttempt: Sendable {
    /// What comes of it.
    struct Made: Sendable {
        let session: MQTTSession
        let connack: MQTTConnack
    }

    /// The task, which may be cancelled before it is there.
    private final class Work: Sendable {
        private struct State: Sendable {
            var task: Task<Void, Never>?
            var isCancelled = false
        }

        private let state = Locked(State())

        var task: Task<Void, Never>? { state.withLock { $0.task } }

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

    private let work = Work()
    private let reason = Locked<WaybillError?>(nil)

    /// Resolves with the session.
    ///
    /// When everybody who waited has been cancelled, so is the attempt.
    let outcome: Promise<Made>

    init() {
        outcome = Promise(onAbandoned: { [work] in work.cancel() })
    }

    /// One that has succeeded already.
    convenience init(done session: MQTTSession) {
        self.init()
        outcome.resolve(.success(Made(session: session, connack: MQTTConnack())))
    }

    /// Why it was stopped, for those who still wait.
    var stopReason: WaybillError {
        reason.withLock { $0 }
            ?? WaybillError(.notConnected, "the attempt to connect was cancelled")
    }

    /// Sets it going.
    func start(_ body: @escaping @Sendable () async -> Void) {
        work.set(Task { @concurrent in await body() })
    }

    /// Stops it.
    func cancel(because reason: WaybillError) {
        self.reason.withLock { $0 = reason }
        work.cancel()
    }

    /// Stops it and waits until it has cleaned up.
    func stop(because reason: WaybillError) async {
        cancel(because: reason)
        await work.task?.value
    }
}
