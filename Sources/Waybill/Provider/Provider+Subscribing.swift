public import Dispatch

extension Provider {
    /// Subscribes, and calls a handler with the confirmation, each message, and the end.
    ///
    /// - Parameters:
    ///   - type: The type of each message, as in ``messages(_:as:)``.
    ///   - entry: An entry with the command `subscribe`.
    ///   - handler: Called in order, each call after the one before has returned; see ``SubscriptionUpdate``.
    /// - Returns: A handle that ends the subscription.
    @discardableResult
    public func subscribe<Value: Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Value>) async -> Void
    ) -> RequestHandle {
        subscribe(of: type, entry, HandlerCall(handler))
    }

    /// Subscribes, and calls a handler on a queue, such as `.main`; otherwise as ``subscribe(of:entry:_:)``.
    @discardableResult
    public func subscribe<Value: Sendable>(
        of type: Value.Type,
        entry: Entry,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (SubscriptionUpdate<Value>) -> Void
    ) -> RequestHandle {
        subscribe(of: type, entry, HandlerCall(on: queue, handler))
    }

    private func subscribe<Value: Sendable>(
        of type: Value.Type,
        _ entry: Entry,
        _ call: HandlerCall<SubscriptionUpdate<Value>>
    ) -> RequestHandle {
        HandlerTask(call, subscribing: { try await messages(entry, as: type) }).handle
    }
}
