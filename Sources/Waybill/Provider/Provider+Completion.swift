public import Dispatch
import WireCore

// Handlers are asynchronous, so that a handler may be isolated to an actor, or wait. A synchronous closure converts to
// one. The form with a queue has a synchronous handler: the compiler may leave out the change of executor that would
// run an asynchronous one on the queue.
extension Provider {
    /// Performs an entry and calls a handler with each result.
    ///
    /// For a request the handler is called once. For a subscription it is called once for each message, and once more
    /// if the subscription fails.
    ///
    /// A reply is awaited only with ``SendOption/expectsReply``, or where the confirmation is the reply (HTTP).
    /// Otherwise, and for a command without a reply, such as `connect`, the result is an empty `String`, `Data`,
    /// `[UInt8]` or `Message`. A type that a decoder makes then fails with `decodingFailed`.
    ///
    /// - Parameters:
    ///   - type: The type of the reply or of each message, as in ``request(_:as:)``. `Receipt` and `Void` ask for no
    ///     reply.
    ///   - entry: Any entry; with `Receipt` and `Void`, any but a subscription.
    ///   - handler: Called in order, each call after the one before has returned. It runs on the package's own threads
    ///     unless it is isolated to an actor, as in `{ @MainActor result in … }`.
    /// - Returns: A handle that ends the operation.
    @discardableResult
    public func request<Value: Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> RequestHandle {
        perform(of: type, entry, HandlerCall(handler))
    }

    /// Performs an entry and calls a handler on a queue, such as `.main`; otherwise as ``request(of:entry:_:)``.
    ///
    /// After a `cancel()` on a serial queue the handler is not called on it again.
    @discardableResult
    public func request<Value: Sendable>(
        of type: Value.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) -> RequestHandle {
        perform(of: type, entry, HandlerCall(on: queue, handler))
    }

    private func perform<Value: Sendable>(
        of type: Value.Type,
        _ entry: Entry,
        _ call: HandlerCall<Result<Value, any Error>>
    ) -> RequestHandle {
        // A receipt of a subscription is refused as it is by `request(_:)`.
        guard entry.command.code == .subscribe, !Receipt.answers(type) else {
            return HandlerTask(call, value: { try await value(of: entry, as: type) }).handle
        }
        return HandlerTask(call, messages: { try await messages(entry, as: type) }).handle
    }

    /// The outcome of an entry that is no subscription; what has no reply gives an empty message.
    private func value<Value: Sendable>(
        of entry: Entry,
        as type: Value.Type
    ) async throws -> Value {
        if Receipt.answers(type) { return try await self.request(entry, as: type) }
        let request = try makeRequest(entry, for: .receipt)
        try decoding.check(type, request)
        return try await runner.outcome(of: request) { message throws(WaybillError) in
            try decoding.decode(type, from: message)
        }
    }
}
