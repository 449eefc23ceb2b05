import WireCore

/// One call of a token source, and the requests that wait for it.
///
/// It is over when it is settled, or abandoned: when the last request that waited has been cancelled.
final class TokenFlight: Sendable {
    private struct State: Sendable {
        var result: Result<TokenKeeper.Credential, WaybillError>?
        /// How many requests want the result, from before they wait until they have it.
        var interest = 1
        var isAbandoned = false
        var isSourceDone = false
        var isReported = false
        var waiters: [UInt64: Suspension.Continuation] = [:]
        var lastWaiter: UInt64 = 0
        var tasks: [Task<Void, Never>] = []
    }

    /// Whose it is.
    let owner: ObjectIdentifier
    /// The token that was refused; nil at the first call.
    let refused: String?
    /// When the source was asked.
    let begun = ContinuousClock.now
    private let state = Locked(State())

    /// Begins with the interest of one request.
    init(owner: ObjectIdentifier, refused: String?) {
        self.owner = owner
        self.refused = refused
    }

    /// Whether the source is still at work, even if nobody waits for it.
    var isSourceAtWork: Bool { state.withLock { !$0.isSourceDone } }

    /// Whether somebody waits for the result.
    var isUnderWay: Bool { state.withLock { $0.result == nil && !$0.isAbandoned } }

    /// Lets one more request in.
    /// - Returns: False when it is over; the request needs another one then.
    func enter() -> Bool {
        state.withLock { state in
            guard state.result == nil, !state.isAbandoned else { return false }
            state.interest += 1
            return true
        }
    }

    /// Keeps a task that ends with the flight.
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

    /// Whether observers have still to be told how it ended: true once.
    func takeReport() -> Bool {
        state.withLock { state in
            defer { state.isReported = true }
            return !state.isReported
        }
    }

    /// Gives everybody the result; the first one counts.
    func settle(_ result: Result<TokenKeeper.Credential, WaybillError>) {
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

    /// Waits for the result, for a request that was let in.
    /// - Parameter memory: The request's; should somebody disconnect, it waits no longer.
    /// - Returns: The result.
    /// - Throws: `WaybillError`, or `CancellationError`.
    func value(for memory: RequestMemory) async throws -> TokenKeeper.Credential {
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
                    // Asked with the lock, so that `end` finds whoever waits all the same.
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

    /// Takes the result, if it has come; otherwise the last one to leave stops the source.
    private func leave() -> Result<TokenKeeper.Credential, WaybillError>? {
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
