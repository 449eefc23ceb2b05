import WireCore

extension Provider {
    /// Sends the entries of a sequence in order, with at most `window` pending at a time.
    ///
    /// ```swift
    /// let results = await sensors.request(contentsOf: readings.lazy.map { .report($0) })
    /// if let error = results.firstError { throw error }
    /// ```
    ///
    /// Each entry passes the interceptors and is handed to the transport before the next one is taken from the
    /// sequence. One resumption of the task serves many confirmations, so this is faster than the same number of calls
    /// of ``request(_:)-(Entry)``.
    ///
    /// A cancellation of the task stops the sending. The results then show which entries were handed over and which of
    /// these were confirmed. An entry that an interceptor retries is sent after later entries.
    ///
    /// - Parameters:
    ///   - entries: The entries: any but subscriptions.
    ///   - window: The number of unconfirmed entries at a time, from 1. Server-sent events and custom transports have
    ///     one at a time.
    /// - Returns: A result for each entry that was handed over, in order. A failed entry does not stop the others.
    public func request(
        contentsOf entries: some Sequence<Entry>,
        window: Int = 64
    ) async -> BulkResults {
        let window = BulkWindow(window)
        var turn = Turn()
        for entry in entries {
            guard await handOver(entry, in: window, &turn) else {
                return await window.finish(stopCause: CancellationError())
            }
        }
        return await window.finish(stopCause: nil)
    }

    /// Sends the entries of an asynchronous sequence in order, as they arrive, with at most `window` pending at a time.
    ///
    /// Otherwise it works as the method for a plain sequence. An error of the sequence ends the sending and becomes the
    /// ``BulkResults/stopCause``.
    ///
    /// - Parameters:
    ///   - entries: The entries: any but subscriptions.
    ///   - window: The number of unconfirmed entries at a time, from 1.
    /// - Returns: A result for each entry that was handed over, in order.
    public func request<Entries: AsyncSequence>(
        contentsOf entries: Entries,
        window: Int = 64
    ) async -> BulkResults where Entries.Element == Entry {
        let window = BulkWindow(window)
        var turn = Turn()
        do {
            for try await entry in entries {
                guard await handOver(entry, in: window, &turn) else { throw CancellationError() }
            }
            try Task.checkCancellation()
        } catch {
            return await window.finish(stopCause: error)
        }
        return await window.finish(stopCause: nil)
    }

    /// Hands over one entry when there is room.
    ///
    /// - Returns: False if the task was cancelled before.
    private func handOver(
        _ entry: Entry,
        in window: BulkWindow,
        _ turn: inout Turn
    ) async -> Bool {
        if turn.endIfOver() { await Turn.giveWay() }
        turn.advance()
        await window.waitForRoom()
        guard !Task.isCancelled else { return false }
        let place = window.begin()
        do {
            let request = try Request.making(entry, encoders: runner.configuration.encoders)
            try refuseSubscription(request)
            if await runner.handOverNow(request, to: place) { return true }
            await runner.handOver(request, to: place)
        } catch {
            place.end(.failure(error))
        }
        return true
    }
}
