import WireCore

/// The opening of a stream: a handshake whose outcome is decided once, and the task that waits for it.
///
/// | state | `wait` | `decide` | `withdraw` |
/// | --- | --- | --- | --- |
/// | pending | → awaited | → decided | no change |
/// | awaited | → awaited by the new waiter | → decided, resumes the waiter | → pending, resumes the waiter |
/// | decided | no change | no change | no change |
package enum Opening<Value: Sendable, Waiter: Sendable>: Sendable {
    case pending
    case awaited(Waiter)
    case decided(Result<Value, LinkError>)

    /// The outcome of the handshake; nil before it is decided.
    package var outcome: Result<Value, LinkError>? {
        guard case .decided(let outcome) = self else { return nil }
        return outcome
    }

    package var isDecided: Bool { outcome != nil }

    /// Adds the one task that waits.
    ///
    /// - Returns: False when the outcome is decided.
    package mutating func wait(_ waiter: Waiter) -> Bool {
        guard !isDecided else { return false }
        self = .awaited(waiter)
        return true
    }

    /// Decides the outcome, unless it is decided: the answer, the end, a timer and a cancelled task may come at once.
    ///
    /// - Returns: Whether this call decided, and the task to resume.
    package mutating func decide(
        _ outcome: Result<Value, LinkError>
    ) -> (isFirst: Bool, waiter: Waiter?) {
        switch self {
        case .pending:
            self = .decided(outcome)
            return (true, nil)
        case .awaited(let waiter):
            self = .decided(outcome)
            return (true, waiter)
        case .decided: return (false, nil)
        }
    }

    /// Removes the task that waits, which was cancelled.
    ///
    /// - Returns: The task to resume.
    package mutating func withdraw() -> Waiter? {
        guard case .awaited(let waiter) = self else { return nil }
        self = .pending
        return waiter
    }
}

extension Locked where State: Sendable {
    /// Waits until an opening is decided.
    ///
    /// - Parameters:
    ///   - opening: The opening.
    ///   - cancel: Closes the stream, because the task was cancelled before.
    /// - Returns: The result of the handshake.
    /// - Throws: The error of the handshake; `cancelled`.
    func opened<Value>(
        _ opening: any WritableKeyPath<State, Opening<Value, Suspension.Continuation>> & Sendable,
        orElse cancel: () -> Void
    ) async throws(LinkError) -> Value {
        await Suspension.wait(for: "a handshake") { continuation in
            let mustWait = withLock { state in
                !Task.isCancelled && state[keyPath: opening].wait(continuation)
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            withLock { $0[keyPath: opening].withdraw() }?.resume()
        }
        // Read under the lock, so that the resumed task sees all earlier writes.
        guard let outcome = withLock({ $0[keyPath: opening].outcome }) else {
            cancel()
            throw .cancelled
        }
        return try outcome.get()
    }
}
