public import Dispatch

extension Provider {
    /// Subscribes, and calls a handler with the confirmation, each message, and the end.
    ///
    /// - Parameters:
    ///   - type: The type of each message; `String`, `Data` and `[UInt8]` take the body as it is.
    ///   - entry: An entry with the command `subscribe`.
    ///   - handler: Called in order, each call after the one before has returned; see ``SubscriptionUpdate``.
    /// - Returns: A handle that ends the subscription.
    @discardableResult
    public func subscribe<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Value>) async -> Void
    ) -> any CancelHandle {
        HandlerTask(HandlerCall(handler), subscribing: { try await messages(entry, as: type) })
    }

    /// Subscribes, and calls a handler on a queue, such as `.main`; otherwise as
    /// ``subscribe(of:entry:_:)-(Value.Type,_,_)``.
    @discardableResult
    public func subscribe<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Value>) -> Void
    ) -> any CancelHandle {
        HandlerTask(
            HandlerCall(on: queue, handler),
            subscribing: { try await messages(entry, as: type) }
        )
    }

    /// Subscribes to raw messages; otherwise as ``subscribe(of:entry:_:)-(Value.Type,_,_)``.
    @discardableResult
    public func subscribe(
        of type: Message.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Message>) async -> Void
    ) -> any CancelHandle {
        HandlerTask(HandlerCall(handler), subscribing: { try await messages(entry) })
    }

    /// Subscribes to raw messages, and calls a handler on a queue; otherwise as
    /// ``subscribe(of:entry:_:)-(Value.Type,_,_)``.
    @discardableResult
    public func subscribe(
        of type: Message.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Message>) -> Void
    ) -> any CancelHandle {
        HandlerTask(HandlerCall(on: queue, handler), subscribing: { try await messages(entry) })
    }
}
