public import Dispatch
import WireCore

/// Ends an operation that was started with a completion handler.
public protocol CancelHandle: Sendable {
    /// Ends the operation; the handler is not called again, and a second call does nothing.
    func cancel()
}

// Handlers are asynchronous, so that a handler may be isolated to an actor, or wait. A synchronous closure converts to
// one.
extension Provider {
    // MARK: Any entry, with a value

    /// Performs an entry and calls a handler with each result.
    ///
    /// For a request the handler is called once. For a subscription it is called once for each message, and once more
    /// if the subscription fails.
    ///
    /// A command without a reply, such as `connect`, gives an empty `String`, `Data` or `[UInt8]`. Any other type then
    /// fails with `decodingFailed`.
    ///
    /// - Parameters:
    ///   - type: The type of the reply or of each message; `String`, `Data` and `[UInt8]` take the body as it is.
    ///   - entry: Any entry.
    ///   - handler: Called in order, each call after the one before has returned. It runs on the package's own threads
    ///     unless it is isolated to an actor, as in `{ @MainActor result in … }`.
    /// - Returns: A handle that ends the operation.
    @discardableResult
    public func request<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> any CancelHandle {
        perform(of: type, entry, HandlerCall(handler))
    }

    /// Performs an entry and calls a handler on a queue, such as `.main`; otherwise as
    /// ``request(of:entry:_:)-(Value.Type,_,_)``.
    ///
    /// After a `cancel()` on a serial queue the handler is not called on it again.
    @discardableResult
    public func request<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) -> any CancelHandle {
        perform(of: type, entry, HandlerCall(on: queue, handler))
    }

    private func perform<Value: Decodable & Sendable>(
        of type: Value.Type,
        _ entry: Entry,
        _ call: HandlerCall<Result<Value, any Error>>
    ) -> any CancelHandle {
        HandlerTask(call, performing: entry) {
            if entry.command.hasReply { return try await request(entry, as: type) }
            return try decoding.decode(type, from: try await message(of: entry))
        } messages: {
            try await messages(entry, as: type)
        }
    }

    // MARK: Messages as they are

    /// Performs an entry and calls a handler with raw messages; otherwise as ``request(of:entry:_:)-(Value.Type,_,_)``.
    ///
    /// Without a reply, the handler gets an empty message with the entry's topic.
    @discardableResult
    public func request(
        of type: Message.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Message, any Error>) async -> Void
    ) -> any CancelHandle {
        performRaw(entry, HandlerCall(handler))
    }

    /// Performs an entry and calls a handler on a queue with raw messages; see
    /// ``request(of:entry:_:)-(Message.Type,_,_)``.
    @discardableResult
    public func request(
        of type: Message.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Result<Message, any Error>) -> Void
    ) -> any CancelHandle {
        performRaw(entry, HandlerCall(on: queue, handler))
    }

    private func performRaw(
        _ entry: Entry,
        _ call: HandlerCall<Result<Message, any Error>>
    ) -> any CancelHandle {
        HandlerTask(call, performing: entry) {
            try await message(of: entry)
        } messages: {
            try await messages(entry)
        }
    }

    // MARK: Without a value

    /// Performs an entry, which is no subscription, and calls a handler once with its receipt.
    @discardableResult
    public func request(
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Receipt, any Error>) async -> Void
    ) -> any CancelHandle {
        HandlerTask(HandlerCall(handler), value: { try await request(entry) })
    }

    /// Performs an entry, which is no subscription, and calls a handler once on a queue with its receipt.
    @discardableResult
    public func request(
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> any CancelHandle {
        HandlerTask(HandlerCall(on: queue, handler), value: { try await request(entry) })
    }

    /// The reply to an entry, or an empty message if its command has none.
    private func message(of entry: Entry) async throws -> Message {
        if entry.command.hasReply { return try await request(entry, as: Message.self) }
        let receipt = try await request(entry)
        return Message(topic: receipt.topic ?? "", headers: receipt.headers)
    }
}
