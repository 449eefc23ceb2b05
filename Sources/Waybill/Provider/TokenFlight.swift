import WireCore

/// One call of a token source, with the requests that wait for it.
///
/// It ends with a result, or when the last waiting request was cancelled.
final class TokenFlight: Sendable {
    private struct State: Sendable {
        var result: Result<TokenCache.Credential, WaybillError>?
        /// The number of requests that want the result, from before their wait until they have it.
        var interest = 1
        var isAbandoned = false
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

    /// Makes a flight with the interest of one request.
    init(owner: ObjectIdentifier, refused: String?) {
        self.owner = owner
        self.refused = refused
    }

    /// Whether the source is still running, even without a waiting request.
    var isSourceAtWork: Bool { state.withLock { !$0.isSourceDone } }

    /// Whether requests wait for the result.
    var isUnderWay: Bool { state.withLock { $0.result == nil && !$0.isAbandoned } }

    /// Adds one more request.
    ///
    /// - Returns: False if the flight is over; the request then needs another one.
    func enter() -> Bool {
        state.withLock { state in
            guard state.result == nil, !state.isAbandoned else { return false }
            state.interest += 1
            return true
        }
    }

    /// Keeps a task that is cancelled at the end of the flight.
    func keep(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            if state.result != nil || state.isAbandoned { return true }
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

    /// Waits for the result; the request must have entered before.
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
            await Suspension.wait { continuation in
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
        guard let result = leave() else {
            try memory.checkDisconnected()
            throw CancellationError()
        }
        return try result.get()
    }

    /// Returns the result, if there is one; otherwise the last request to leave stops the source.
    private func leave() -> Result<TokenCache.Credential, WaybillError>? {
        let (result, tasks) = state.withLock { state in
            state.interest -= 1
            guard state.result == nil, state.interest == 0 else {
                return (state.result, [Task<Void, Never>]())
            }
            state.isAbandoned = true
            defer { state.tasks = [] }
            return (nil, state.tasks)
        }
        for task in tasks { task.cancel() }
        return result
    }
}
