import WireCore

extension Provider {
    /// Sends the entries of a sequence in order, with so many under way at a time.
    ///
    /// ```swift
    /// let results = await sensors.request(contentsOf: readings.lazy.map { .report($0) })
    /// if let error = results.firstError { throw error }
    /// ```
    ///
    /// Each entry passes the interceptors and is handed to the transport before the next one is taken from the
    /// sequence. The task is resumed once for many confirmations, so that this takes less time than as many calls of
    /// ``request(_:)-(Entry)``.
    ///
    /// When the task is cancelled no further entry is taken. The results then tell which were handed over and which of
    /// them were confirmed. An entry that an interceptor tries again comes later than those behind it.
    ///
    /// - Parameters:
    ///   - entries: The entries: any but subscriptions.
    ///   - window: How many may be without confirmation at a time, from 1. Over server-sent events, and over a transport
    ///     of one's own, there is one at a time.
    /// - Returns: A result for each entry that was handed over, in order. An entry that fails does not stop the others.
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

    /// Sends the entries of an asynchronous sequence in order, as they come, with so many under way at a time.
    ///
    /// As for a sequence that is there at once. An error of the sequence ends the sending, and is the
    /// ``BulkResults/stopCause``.
    ///
    /// - Parameters:
    ///   - entries: The entries: any but subscriptions.
    ///   - window: How many may be without confirmation at a time, from 1.
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

    /// Hands over one entry, when there is room.
    /// - Returns: False when the task was cancelled before.
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
