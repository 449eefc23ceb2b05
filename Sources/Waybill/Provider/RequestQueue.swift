import WireCore

/// The enqueued entries of a provider, in the order of the calls.
///
/// One task hands them over one by one, as long as there are any.
final class RequestQueue: Sendable {
    private struct Item: Sendable {
        let call: EnqueuedCall
        let request: Request
    }

    private struct State: Sendable {
        var waiting: [Item] = []
        var isDraining = false
        /// The number of requests without an outcome, whether handed over or not.
        var count = 0
        var byteCount = 0
    }

    private let state = Locked(State())
    private let maximumCount: Int
    private let maximumByteCount: Int

    init(_ configuration: ProviderConfiguration) {
        maximumCount = configuration.maximumEnqueuedCount
        maximumByteCount = configuration.maximumEnqueuedByteCount
    }

    /// Adds an entry at the end.
    ///
    /// - Returns: The call, which has failed if the entry cannot be sent.
    func append(_ entry: some EntryType, _ runner: RequestRunner) -> EnqueuedCall {
        let events = runner.interception.eventSource
        let request: Request
        do throws(WaybillError) {
            request = try Request.making(entry, encoders: runner.configuration.encoders)
        } catch {
            let command = entry.command.name
            let call = EnqueuedCall(topic: entry.topic, command: command, reportingTo: events)
            call.end(.failure(error))
            return call
        }
        let command = request.command.name
        let call = EnqueuedCall(topic: request.topic, command: command, reportingTo: events)
        append(request, for: call, runner)
        return call
    }

    private func append(_ request: Request, for call: EnqueuedCall, _ runner: RequestRunner) {
        let byteCount = request.body.count
        let begins = state.withLock { state -> Bool? in
            let isTooMuch = state.count > 0 && state.byteCount + byteCount > maximumByteCount
            guard state.count < maximumCount, !isTooMuch else { return nil }
            state.count += 1
            state.byteCount += byteCount
            state.waiting.append(Item(call: call, request: request))
            defer { state.isDraining = true }
            return !state.isDraining
        }
        guard let begins else {
            return call.end(
                .failure(
                    WaybillError(
                        .limitExceeded,
                        "too many entries are enqueued and have no outcome yet",
                        topic: request.topic,
                        command: request.command.name
                    )
                )
            )
        }
        call.enter(self, byteCount)
        if begins { Task { @concurrent in await self.drain(runner) } }
    }

    /// Removes a request that has its outcome.
    func leave(_ byteCount: Int) {
        state.withLock { state in
            state.count -= 1
            state.byteCount -= byteCount
        }
    }

    private func takeAll() -> [Item] {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isDraining = false
                return []
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    private func drain(_ runner: RequestRunner) async {
        var turn = Turn()
        while true {
            let items = takeAll()
            if items.isEmpty { return }
            for item in items where !item.call.isOver {
                if turn.endIfOver() { await Turn.giveWay() }
                turn.advance()
                if await runner.handOverNow(item.request, to: item.call) { continue }
                // In a separate task, which can be cancelled wherever it waits.
                let handingOver = Task { @concurrent in
                    await runner.handOver(item.request, to: item.call)
                }
                item.call.follow(handingOver)
                await handingOver.value
            }
        }
    }
}

/// An enqueued entry.
///
/// It lives until it has its outcome and its handle is gone.
final class EnqueuedCall: RequestOutcome {
    private struct State: Sendable {
        var result: Result<Receipt, any Error>?
        var withdraw: (@Sendable () -> Void)?
        var handingOver: Task<Void, Never>?
        var queue: RequestQueue?
        var byteCount = 0
        var isAsked = false
        var waiters: [UInt64: Suspension.Continuation] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let state = Locked(State())
    private let topic: String?
    private let command: String
    private let events: TransportEventSource

    init(topic: String?, command: String, reportingTo events: TransportEventSource) {
        self.topic = topic
        self.command = command
        self.events = events
    }

    deinit {
        let failure = state.withLock { state -> WaybillError? in
            guard !state.isAsked, case .failure(let error)? = state.result else { return nil }
            return error as? WaybillError
        }
        guard let failure else { return }
        events.report(.enqueuedFailed(command: command, topic: topic, error: failure))
    }

    var isOver: Bool { state.withLock { $0.result != nil } }

    /// Counts the request in a queue until it has an outcome.
    func enter(_ queue: RequestQueue, _ byteCount: Int) {
        let isOver = state.withLock { state in
            guard state.result == nil else { return true }
            state.queue = queue
            state.byteCount = byteCount
            return false
        }
        if isOver { queue.leave(byteCount) }
    }

    func track(_ withdraw: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            guard state.result == nil else { return true }
            state.withdraw = withdraw
            return false
        }
        if isOver { withdraw() }
    }

    /// Keeps the task that hands the request over.
    func follow(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            guard state.result == nil else { return true }
            state.handingOver = task
            return false
        }
        if isOver { task.cancel() }
    }

    func end(_ result: Result<Receipt, any Error>) {
        _ = finish(result)
    }

    /// Ends the call without the peer's answer.
    func cancel() {
        guard let before = finish(.failure(CancellationError())) else { return }
        before.handingOver?.cancel()
        before.withdraw?()
    }

    /// Sets the outcome, if there is none yet.
    ///
    /// - Returns: The state before; nil if there was an outcome.
    private func finish(_ result: Result<Receipt, any Error>) -> State? {
        let (before, isFirst) = state.withLock { state in
            let before = state
            guard state.result == nil else { return (before, false) }
            state.result = result
            state.withdraw = nil
            state.handingOver = nil
            state.queue = nil
            state.waiters = [:]
            return (before, true)
        }
        guard isFirst else { return nil }
        before.queue?.leave(before.byteCount)
        Suspension.resume(before.waiters.valuesInKeyOrder)
        return before
    }

    func receipt() async throws -> Receipt {
        let number = state.withLock { state in
            state.isAsked = true
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await Suspension.wait(for: "the receipt of an enqueued entry") { continuation in
            let mustWait = state.withLock { state in
                guard state.result == nil, !Task.isCancelled else { return false }
                state.waiters[number] = continuation
                return true
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }
}
