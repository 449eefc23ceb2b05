/// An entry that was handed over without waiting: see ``Provider/enqueue(_:)``.
///
/// You need not keep it: the entry is sent all the same. If it fails and its outcome was never asked for, the event
/// `enqueuedFailed` tells of it.
public struct EnqueuedRequest: CancelHandle {
    let call: EnqueuedCall

    /// What the peer has confirmed, once it has.
    ///
    /// Any number of tasks may wait for it. Cancelling one of them ends its wait, and not the request.
    ///
    /// - Throws: As ``Provider/request(_:)-(Entry)``; `limitExceeded` if too much was enqueued; `CancellationError`
    ///   after ``cancel()``.
    public var receipt: Receipt {
        get async throws { try await call.receipt() }
    }

    /// Withdraws the entry.
    ///
    /// One that waits for its turn is not sent. One that was sent may arrive all the same; nothing waits for its
    /// confirmation any longer. Does nothing once there is an outcome.
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
    /// The entries of a provider and of its copies leave in the order of the calls: each passes the interceptors and
    /// is handed to the transport before the next one begins, and none waits for the confirmation of the one before.
    /// Where the transport has no connection, the first one makes it and the others follow. Over server-sent events,
    /// and over a transport of one's own, each one waits for the answer to the one before.
    ///
    /// - An entry that fails after it was handed over, and that an interceptor tries again, comes later than those
    ///   behind it.
    /// - Entries without an outcome are bounded, by ``ProviderConfiguration/maximumEnqueuedCount`` and
    ///   ``ProviderConfiguration/maximumEnqueuedByteCount``. What is beyond fails with `limitExceeded`.
    /// - Requests that are not enqueued do not wait for those that are.
    ///
    /// - Parameter entry: Any entry but a subscription. Its body is encoded at once.
    /// - Returns: A handle, to wait for the outcome or to cancel. Errors wait there, too, until they are asked for.
    @discardableResult
    public func enqueue(_ entry: Entry) -> EnqueuedRequest {
        let events = runner.interception.eventSource
        do {
            let request = try Request.making(entry, encoders: runner.configuration.encoders)
            try refuseSubscription(request)
            let call = EnqueuedCall(
                topic: request.topic,
                command: request.command.name,
                reportingTo: events
            )
            runner.queue.append(request, for: call, runner)
            return EnqueuedRequest(call: call)
        } catch {
            let call = EnqueuedCall(
                topic: entry.topic,
                command: entry.command.name,
                reportingTo: events
            )
            call.end(.failure(error))
            return EnqueuedRequest(call: call)
        }
    }

    /// Hands over an entry without waiting: see ``enqueue(_:)-(Entry)``.
    ///
    /// - Parameter typed: An entry without a reply.
    /// - Returns: A handle.
    @discardableResult
    public func enqueue(_ typed: TypedEntry<Entry, Void>) -> EnqueuedRequest {
        enqueue(typed.entry)
    }
}
