import WireCore

/// One call of a token source, with the requests that wait for it.
///
/// It ends with a result, also when no request waits any more: a refresh token may be good for one call, whose result
/// would be lost.
final class TokenFlight: Sendable {
    private struct State: Sendable {
        var result: Result<TokenCache.Credential, WaybillError>?
        var isSourceDone = false
        var isReported = false
        var waiters: [UInt64: Suspension.Continuation] = [:]
        var lastWaiter: UInt64 = 0
        var tasks: [Task<Void, Never>] = []
    }

    /// The cache that the call belongs to.
    let owner: ObjectIdentifier
    /// The token that was refused; nil at the first call.
    let refused: String?
    let begun = ContinuousClock.now
    private let state = Locked(State())

    init(owner: ObjectIdentifier, refused: String?) {
        self.owner = owner
        self.refused = refused
    }

    /// Whether the source is still running, even after the result is decided.
    var isSourceAtWork: Bool { state.withLock { !$0.isSourceDone } }

    /// Whether the result is still to come.
    var isUnderWay: Bool { state.withLock { $0.result == nil } }

    /// Keeps a task that is cancelled at the end of the flight.
    func keep(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            if state.result != nil { return true }
            state.tasks.append(task)
            return false
        }
        if isOver { task.cancel() }
    }

    /// Remembers that the source has returned.
    func noteSourceDone() {
        state.withLock { $0.isSourceDone = true }
    }

    /// Whether observers still have to be told of the end; true once.
    func takeReport() -> Bool {
        state.withLock { state in
            defer { state.isReported = true }
            return !state.isReported
        }
    }

    /// Sets the result for every waiting request; only the first call counts.
    func resolve(_ result: Result<TokenCache.Credential, WaybillError>) {
        let (waiters, tasks) = state.withLock { state in
            if state.result == nil { state.result = result }
            defer {
                state.waiters = [:]
                state.tasks = []
            }
            return (state.waiters.valuesInKeyOrder, state.tasks)
        }
        for task in tasks { task.cancel() }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for the result.
    ///
    /// - Parameter memory: The memory of the request; a disconnect ends its wait.
    /// - Returns: The result.
    /// - Throws: `WaybillError`, or `CancellationError`.
    func value(for memory: RequestMemory) async throws -> TokenCache.Credential {
        let identifier = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let end: @Sendable () -> Void = { [self] in
            state.withLock { $0.waiters.removeValue(forKey: identifier) }?.resume()
        }
        await memory.endingAtDisconnect(end) {
            await Suspension.wait(for: "a token") { continuation in
                let mustWait = state.withLock { state in
                    // Checked under the lock, so that `end` cannot miss the waiter.
                    let isOver = Task.isCancelled || memory.isDisconnected
                    guard state.result == nil, !isOver else { return false }
                    state.waiters[identifier] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            } onCancel: {
                end()
            }
        }
        guard let result = state.withLock({ $0.result }) else {
            try memory.checkDisconnected()
            throw CancellationError()
        }
        return try result.get()
    }
}
