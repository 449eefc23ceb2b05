/// An entry that was handed over without waiting; see ``Provider/enqueue(_:)``.
///
/// The entry is sent even if the app releases this value. If it then fails without its outcome having been read, the
/// event `enqueuedFailed` reports it.
public struct EnqueuedRequest: Sendable {
    let call: EnqueuedCall

    /// The receipt, after the peer has confirmed the request.
    ///
    /// Any number of tasks may wait for it. Cancelling one of them ends its wait and not the request.
    ///
    /// - Throws: As ``Provider/request(_:)-(Entry)``; `limitExceeded` if too many entries were enqueued;
    ///   `CancellationError`
    ///   after ``cancel()``.
    public var receipt: Receipt {
        get async throws { try await call.receipt() }
    }

    /// Withdraws the entry.
    ///
    /// An entry that still waits for its turn is not sent. An entry that was already sent may arrive, but nothing waits
    /// for its confirmation any more. After the outcome, the call does nothing.
    public func cancel() {
        call.cancel()
    }
}

extension Provider {
    /// Hands over an entry without waiting, in the order of the calls.
    ///
    /// ```swift
    /// for stroke in strokes { board.enqueue(.draw(stroke)) }   // leave in this order
    /// let last = board.enqueue(.finish)
    /// let receipt = try await last.receipt                     // if it matters
    /// ```
    ///
    /// The entries of a provider and of its copies are sent in the order of the calls. Each entry passes the
    /// interceptors and is handed to the transport before the next one starts; none waits for the confirmation of the
    /// one before. Without a connection, the first entry opens it and the others follow. Over server-sent events and
    /// custom transports, each entry waits for the answer to the one before.
    ///
    /// - An entry that fails after it was handed over, and that an interceptor retries, is sent after later entries.
    /// - ``ProviderConfiguration/maximumEnqueuedCount`` and ``ProviderConfiguration/maximumEnqueuedByteCount`` limit
    ///   the entries without an outcome. An entry beyond the limits fails with `limitExceeded`.
    /// - Other requests do not wait for enqueued entries.
    ///
    /// - Parameter entry: Any entry but a subscription. Its body is encoded at once.
    /// - Returns: A handle to wait for the outcome or to cancel. It keeps an error until the error is read.
    @discardableResult
    public func enqueue(_ entry: Entry) -> EnqueuedRequest {
        EnqueuedRequest(call: runner.queue.append(entry, runner))
    }

    /// Hands over an entry without a reply; see ``enqueue(_:)-(Entry)``.
    @discardableResult
    public func enqueue(_ typed: TypedEntry<Entry, Void>) -> EnqueuedRequest {
        enqueue(typed.entry)
    }
}
