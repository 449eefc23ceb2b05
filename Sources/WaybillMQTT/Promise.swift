import WireCore

/// A value that comes once and that any number of tasks wait for.
final class Promise<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var result: Result<Value, any Error>?
        var waiters: [UInt64: CheckedContinuation<Value, any Error>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let state = Locked(State())
    private let onAbandoned: @Sendable () -> Void

    /// - Parameter onAbandoned: Called when the last task that waited has been cancelled.
    init(onAbandoned: @escaping @Sendable () -> Void = {}) {
        self.onAbandoned = onAbandoned
    }

    /// Gives everybody the result; the first one counts.
    func resolve(_ result: Result<Value, any Error>) {
        let waiters = state.withLock { state in
            if state.result == nil { state.result = result }
            defer { state.waiters = [:] }
            return state.waiters.values.map { $0 }
        }
        for waiter in waiters { waiter.resume(with: result) }
    }

    /// Waits for the result.
    /// - Throws: Its error, or `CancellationError`.
    func value() async throws -> Value {
        let identifier = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Value, any Error>? = state.withLock { state in
                    if let result = state.result { return result }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiters[identifier] = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
                if Task.isCancelled { abandonIfIdle() }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: identifier) }
            guard let waiter else { return }
            waiter.resume(throwing: CancellationError())
            abandonIfIdle()
        }
    }

    private func abandonIfIdle() {
        let isIdle = state.withLock { $0.result == nil && $0.waiters.isEmpty }
        if isIdle { onAbandoned() }
    }
}
