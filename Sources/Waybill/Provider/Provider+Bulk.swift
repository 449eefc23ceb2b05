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
            guard await window.handOver(entry, by: runner, &turn) else {
                return await window.finish(stopCause: CancellationError())
            }
        }
        return await window.finish(stopCause: nil)
    }

    /// Sends the entries of an asynchronous sequence as they arrive; otherwise as the method for a plain sequence.
    ///
    /// An error of the sequence ends the sending and becomes the ``BulkResults/stopCause``.
    public func request<Entries: AsyncSequence>(
        contentsOf entries: Entries,
        window: Int = 64
    ) async -> BulkResults where Entries.Element == Entry {
        let window = BulkWindow(window)
        var turn = Turn()
        do {
            for try await entry in entries {
                guard await window.handOver(entry, by: runner, &turn) else {
                    throw CancellationError()
                }
            }
            try Task.checkCancellation()
        } catch {
            return await window.finish(stopCause: error)
        }
        return await window.finish(stopCause: nil)
    }
}
