import WireCore

/// The results of a bulk send: see ``Provider/request(contentsOf:window:)-(Sequence<Entry>,_)``.
///
/// There is one result for each entry that was handed over, in order. If ``stopCause`` is set, the entries after them
/// were not sent.
public struct BulkResults: RandomAccessCollection, Sendable {
    enum Place: Sendable {
        case pending(withdraw: (@Sendable () -> Void)?)
        case confirmed(Receipt)
        // Out of line: an error is large, and most entries succeed.
        indirect case failed(WaybillError)
    }

    private let places: [Place]
    /// The reason why the rest of the sequence was not sent; nil if all of it was.
    ///
    /// It is `CancellationError` if the task was cancelled, and otherwise the error of an asynchronous sequence of
    /// entries.
    public let stopCause: (any Error)?

    init(_ places: [Place], stopCause: (any Error)?) {
        self.places = places
        self.stopCause = stopCause
    }

    /// Zero.
    public var startIndex: Int { 0 }
    /// The number of entries that were handed over.
    public var endIndex: Int { places.count }

    /// The result of the entry at an index, from 0.
    ///
    /// It is `cancelled` for an entry that was handed over and not confirmed when the task was cancelled.
    public subscript(position: Int) -> Result<Receipt, WaybillError> {
        switch places[position] {
        case .confirmed(let receipt): .success(receipt)
        case .failed(let error): .failure(error)
        case .pending: .failure(Self.cancelled)
        }
    }

    static var cancelled: WaybillError {
        WaybillError(.cancelled, "cancelled before the peer has confirmed it")
    }

    /// Whether every entry of the sequence was sent and confirmed.
    public var isComplete: Bool {
        stopCause == nil
            && places.allSatisfy { place in
                if case .confirmed = place { true } else { false }
            }
    }

    /// The first error among the results, or the cause of the stop.
    public var firstError: (any Error)? {
        for case .failure(let error) in self { return error }
        return stopCause
    }
}

/// The pending entries of a bulk send, and the results of the others.
final class BulkWindow: Sendable {
    private struct State: Sendable {
        var places: [BulkResults.Place] = []
        var pendingCount = 0
        var isStopped = false
        /// The task that waits until at most `goal` entries are pending.
        var waiter: Suspension.Continuation?
        var goal = 0
    }

    private let state = Locked(State())
    private let size: Int

    init(_ size: Int) {
        self.size = Swift.max(size, 1)
    }

    /// One entry's place in the results.
    struct Place: RequestOutcome {
        let window: BulkWindow
        let number: Int

        func end(_ result: Result<Receipt, any Error>) { window.end(number, result) }

        func track(_ withdraw: @escaping @Sendable () -> Void) { window.track(number, withdraw) }
    }

    /// Hands over one entry when there is room.
    ///
    /// - Returns: False if the task was cancelled before.
    func handOver(
        _ entry: some EntryType,
        by runner: RequestRunner,
        _ turn: inout Turn
    ) async -> Bool {
        if turn.endIfOver() { await Turn.giveWay() }
        turn.advance()
        await waitForRoom()
        guard !Task.isCancelled else { return false }
        let place = begin()
        do {
            let request = try Request.making(entry, encoders: runner.configuration.encoders)
            if await runner.handOverNow(request, to: place) { return true }
            await runner.handOver(request, to: place)
        } catch {
            place.end(.failure(error))
        }
        return true
    }

    /// Adds a place for one more entry.
    private func begin() -> Place {
        let number = state.withLock { state in
            state.places.append(.pending(withdraw: nil))
            state.pendingCount += 1
            return state.places.count - 1
        }
        return Place(window: self, number: number)
    }

    /// Waits until there is room for one more entry.
    ///
    /// Once the window is full, it waits until half of it is free: one resumption serves many entries.
    private func waitForRoom() async {
        guard state.withLock({ $0.pendingCount >= size }) else { return }
        await wait(forAtMost: size / 2)
    }

    /// Waits until all entries have a result; when the task is cancelled, pending entries are withdrawn.
    func finish(stopCause: (any Error)?) async -> BulkResults {
        await wait(forAtMost: 0)
        let places = state.withLock { state in
            state.isStopped = true
            return state.places
        }
        var isCut = false
        for case .pending(let withdraw) in places {
            isCut = true
            withdraw?()
        }
        return BulkResults(places, stopCause: stopCause ?? (isCut ? CancellationError() : nil))
    }

    private func wait(forAtMost goal: Int) async {
        await Suspension.wait(for: "the results of a sequence of entries") { continuation in
            let mustWait = state.withLock { state in
                guard state.pendingCount > goal, !Task.isCancelled else { return false }
                state.waiter = continuation
                state.goal = goal
                return true
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            takeWaiter()?.resume()
        }
    }

    private func takeWaiter() -> Suspension.Continuation? {
        state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
    }

    private func end(_ number: Int, _ result: Result<Receipt, any Error>) {
        let waiter = state.withLock { state -> Suspension.Continuation? in
            guard !state.isStopped, case .pending = state.places[number] else { return nil }
            switch result {
            case .success(let receipt): state.places[number] = .confirmed(receipt)
            case .failure(let error as WaybillError): state.places[number] = .failed(error)
            case .failure: state.places[number] = .failed(BulkResults.cancelled)
            }
            state.pendingCount -= 1
            guard state.pendingCount <= state.goal else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    private func track(_ number: Int, _ withdraw: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            guard case .pending = state.places[number] else { return false }
            guard !state.isStopped else { return true }
            state.places[number] = .pending(withdraw: withdraw)
            return false
        }
        if isLate { withdraw() }
    }
}
