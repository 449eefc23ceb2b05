import WireCore

/// A value that is set once.
///
/// Any number of tasks can wait for it; they are resumed in the order of their calls.
package final class Promise<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var result: Result<Value, any Error>?
        var waiters: [UInt64: Suspension.Continuation] = [:]
        var lastWaiter: UInt64 = 0
        /// The waiters that were cancelled before the result came, until they have thrown.
        var cancelled: Set<UInt64> = []
    }

    private let state = Locked(State())
    private let onAbandoned: @Sendable () -> Void

    /// The result, if it has come.
    package var result: Result<Value, any Error>? { state.withLock { $0.result } }

    /// - Parameter onAbandoned: Called when the last waiting task has been cancelled.
    package init(onAbandoned: @escaping @Sendable () -> Void = {}) {
        self.onAbandoned = onAbandoned
    }

    /// Sets the result and resumes all waiting tasks.
    ///
    /// Only the first result counts.
    package func resolve(_ result: Result<Value, any Error>) {
        let waiters = state.withLock { state in
            if state.result == nil { state.result = result }
            defer { state.waiters = [:] }
            return state.waiters.valuesInKeyOrder
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for the result.
    ///
    /// - Throws: The result's error; `CancellationError` in a task that was cancelled before the result came.
    package func value() async throws -> Value {
        let identifier = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await Suspension.wait(for: "a result of the type \(Value.self)") { continuation in
            let mustWait = state.withLock { state in
                guard state.result == nil else { return false }
                guard !Task.isCancelled else {
                    state.cancelled.insert(identifier)
                    return false
                }
                state.waiters[identifier] = continuation
                return true
            }
            if !mustWait { continuation.resume() }
            if Task.isCancelled { abandonIfIdle() }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: identifier)
                if waiter != nil { state.cancelled.insert(identifier) }
                return waiter
            }
            guard let waiter else { return }
            waiter.resume()
            abandonIfIdle()
        }
        // Read under the lock, so that the resumed task sees all writes before the result. A cancelled task does not
        // get a result that its cancellation caused.
        let result = state.withLock { state in
            state.cancelled.remove(identifier) == nil ? state.result : nil
        }
        guard let result else { throw CancellationError() }
        return try result.get()
    }

    private func abandonIfIdle() {
        let isIdle = state.withLock { $0.result == nil && $0.waiters.isEmpty }
        if isIdle { onAbandoned() }
    }
}
