public import Dispatch

extension Provider {
    /// Subscribes, and tells a handler when that is confirmed, each message, and the end.
    ///
    /// - Parameters:
    ///   - type: What each message is; `String`, `Data` and `[UInt8]` take the body as it is.
    ///   - entry: An entry with the command `subscribe`.
    ///   - handler: Called in order, and never before the call before has returned; see ``SubscriptionUpdate``.
    /// - Returns: What ends the subscription.
    @discardableResult
    public func subscribe<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Value>) async -> Void
    ) -> any CancelHandle {
        let call = HandlerCall(handler)
        return SubscriptionTask(call) { try await messages(entry, as: type) }
    }

    /// The same with a handler on a queue.
    ///
    /// - Parameters:
    ///   - type: What each message is.
    ///   - entry: An entry with the command `subscribe`.
    ///   - queue: Where the handler is called, such as `.main`.
    ///   - handler: Called in order.
    /// - Returns: What ends the subscription.
    @discardableResult
    public func subscribe<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Value>) -> Void
    ) -> any CancelHandle {
        let call = HandlerCall(on: queue, handler)
        return SubscriptionTask(call) { try await messages(entry, as: type) }
    }

    /// Subscribes to raw messages, and tells a handler of them; see ``SubscriptionUpdate``.
    ///
    /// - Parameters:
    ///   - type: `Message`.
    ///   - entry: An entry with the command `subscribe`.
    ///   - handler: Called in order.
    /// - Returns: What ends the subscription.
    @discardableResult
    public func subscribe(
        of type: Message.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Message>) async -> Void
    ) -> any CancelHandle {
        let call = HandlerCall(handler)
        return SubscriptionTask(call) { try await messages(entry) }
    }

    /// The same with a handler on a queue.
    ///
    /// - Parameters:
    ///   - type: `Message`.
    ///   - entry: An entry with the command `subscribe`.
    ///   - queue: Where the handler is called.
    ///   - handler: Called in order.
    /// - Returns: What ends the subscription.
    @discardableResult
    public func subscribe(
        of type: Message.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Message>) -> Void
    ) -> any CancelHandle {
        let call = HandlerCall(on: queue, handler)
        return SubscriptionTask(call) { try await messages(entry) }
    }
}
