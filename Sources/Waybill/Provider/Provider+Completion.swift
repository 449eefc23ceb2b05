public import Dispatch
import WireCore

/// Ends what was begun with a completion handler.
public protocol CancelHandle: Sendable {
    /// Ends it; the handler is not called any more. Calling it twice does nothing.
    func cancel()
}

// Handlers are asynchronous, so that one may be isolated to an actor, or wait. A plain closure is one, too.
extension Provider {
    // MARK: Any entry, with a value

    /// The completion-handler form: for a request the handler is called once; for a subscription once for
    /// each message, and once more if the subscription fails.
    ///
    /// A command without a reply, such as `connect`, gives the type's equivalent of nothing: an empty `String`,
    /// `Data` or `[UInt8]`. Any other type then fails with `decodingFailed`.
    ///
    /// - Parameters:
    ///   - type: What the reply or each message is; `String`, `Data` and `[UInt8]` take the body as it is.
    ///   - entry: Any entry.
    ///   - handler: Called in order, and never before the call before has returned; on the package's own threads unless
    ///     it is isolated to an actor, as in `{ @MainActor result in … }`.
    /// - Returns: What ends it.
    @discardableResult
    public func request<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> any CancelHandle {
        perform(of: type, entry, HandlerCall(handler))
    }

    /// The same with a handler on a queue; see ``request(of:entry:_:)-(Value.Type,_,_)``.
    ///
    /// - Parameters:
    ///   - type: What the reply or each message is.
    ///   - entry: Any entry.
    ///   - queue: Where the handler is called, such as `.main`. After a `cancel()` on a serial queue the handler is not
    ///     called on it any more.
    ///   - handler: Called in order, and never at the same time as itself.
    /// - Returns: What ends it.
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
        HandlerTask(call) {
            guard case .subscribe = entry.command else {
                return await call(.success(try await value(of: type, entry)))
            }
            try await forEach(try await messages(entry, as: type), call)
        }
    }

    // MARK: Messages as they are

    /// The completion-handler form for raw messages; see ``request(of:entry:_:)-(Value.Type,_,_)``.
    ///
    /// - Parameters:
    ///   - type: `Message`.
    ///   - entry: Any entry; one without a reply gives an empty message with its topic.
    ///   - handler: Called in order.
    /// - Returns: What ends it.
    @discardableResult
    public func request(
        of type: Message.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Message, any Error>) async -> Void
    ) -> any CancelHandle {
        performRaw(entry, HandlerCall(handler))
    }

    /// The same with a handler on a queue.
    ///
    /// - Parameters:
    ///   - type: `Message`.
    ///   - entry: Any entry.
    ///   - queue: Where the handler is called.
    ///   - handler: Called in order.
    /// - Returns: What ends it.
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
        HandlerTask(call) {
            guard case .subscribe = entry.command else {
                return await call(.success(try await message(of: entry)))
            }
            try await forEach(try await messages(entry), call)
        }
    }

    // MARK: Without a value

    /// The completion-handler form for requests whose receipt is enough.
    ///
    /// - Parameters:
    ///   - entry: Any entry but a subscription.
    ///   - handler: Called once.
    /// - Returns: What ends it.
    @discardableResult
    public func request(
        entry: Entry,
        _ handler: @escaping @Sendable (Result<Receipt, any Error>) async -> Void
    ) -> any CancelHandle {
        let call = HandlerCall(handler)
        return HandlerTask(call) { await call(.success(try await request(entry))) }
    }

    /// The same with a handler on a queue.
    ///
    /// - Parameters:
    ///   - entry: Any entry but a subscription.
    ///   - queue: Where the handler is called.
    ///   - handler: Called once.
    /// - Returns: What ends it.
    @discardableResult
    public func request(
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> any CancelHandle {
        let call = HandlerCall(on: queue, handler)
        return HandlerTask(call) { await call(.success(try await request(entry))) }
    }

    // MARK: Values

    /// The reply to an entry, or what stands for none where its command has none.
    private func value<Value: Decodable & Sendable>(
        of type: Value.Type,
        _ entry: Entry
    ) async throws -> Value {
        if entry.command.hasReply { return try await request(entry, as: type) }
        return try decoding.decode(type, from: try await message(of: entry))
    }

    private func message(of entry: Entry) async throws -> Message {
        if entry.command.hasReply { return try await request(entry, as: Message.self) }
        let receipt = try await request(entry)
        return Message(topic: receipt.topic ?? "", headers: receipt.headers)
    }

    private func forEach<Value>(
        _ messages: Messages<Value>,
        _ call: HandlerCall<Result<Value, any Error>>
    ) async throws {
        for try await result in messages.results { await call(result.mapError { $0 }) }
    }
}
