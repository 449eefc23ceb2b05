public import Waybill
import WireCore

extension MessageRouter {
    /// Adds a route for an event type; events that name no type have the type `message`.
    ///
    /// - Parameters:
    ///   - type: The event type; compared exactly.
    ///   - make: Makes the value from the decoded body; `String`, `Data` and `[UInt8]` take the body as it is.
    /// - Returns: The same router with the route at the end.
    public func event<Body: Decodable & Sendable>(
        _ type: String,
        _ make: @escaping @Sendable (Body) -> Value
    ) -> MessageRouter {
        adding(make) { ($0[.eventType] ?? "message").hasSameBytes(as: type) }
    }
}
