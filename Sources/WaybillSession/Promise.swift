import WireCore

/// A value that comes once and that any number of tasks wait for, which are woken first come, first served.
package final class Promise<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var result: Result<Value, any Error>?
        var waiters: [UInt64: Suspension.Continuation] = [:]
        var lastWaiter: UInt64 = 0
        /// Those who were cancelled before the result came, until they have thrown.
        var cancelled: Set<UInt64> = []
    }

    private let state = Locked(State())
    private let onAbandoned: @Sendable () -> Void

    /// The result, if it has come.
    package var result: Result<Value, any Error>? { state.withLock { $0.result } }

    /// - Parameter onAbandoned: Called when the last task that waited has been cancelled.
    package init(onAbandoned: @escaping @Sendable () -> Void = {}) {
        self.onAbandoned = onAbandoned
    }

    /// Gives everybody the result; the first one counts.
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
    /// - Throws: Its error; `CancellationError` to whoever was cancelled before it came, whatever has come of that.
    package func value() async throws -> Value {
        let identifier = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await Suspension.wait { continuation in
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
        // Read with the lock, so that whoever is resumed sees all that was written before. What comes of giving up is
        // no answer to who was cancelled.
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
