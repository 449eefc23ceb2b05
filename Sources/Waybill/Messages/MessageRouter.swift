import WireCore

/// Gives each message of a mixed subscription a type, by its event type or its topic.
///
/// A router is a value with one route per kind of message. The first route that matches decides.
///
/// ```swift
/// enum RoomEvent: Sendable {
///     case joined(User)
///     case said(ChatMessage)
///     case unknown(Message)
/// }
///
/// let router = MessageRouter<RoomEvent>()
///     .event("joined", RoomEvent.joined)
///     .event("said", RoomEvent.said)
///     .otherwise(RoomEvent.unknown)
///
/// let messages = try await provider.messages(.join(room: "lobby"))
/// for try await event in messages.routed(by: router) { … }
/// ```
///
/// No message is dropped silently. A message without a matching route goes to ``otherwise(_:)``. Without that, the
/// iteration throws `decodingFailed` in its place and can continue.
public struct MessageRouter<Value: Sendable>: Sendable {
    private struct Route: Sendable {
        let fits: @Sendable (Message) -> Bool
        let make: @Sendable (Message, ResponseDecoding) throws(WaybillError) -> Value
    }

    private var routes: [Route] = []
    private var fallback: (@Sendable (Message) -> Value)?

    /// Makes a router without routes.
    public init() {}

    /// Adds a route for a topic pattern.
    ///
    /// - Parameters:
    ///   - pattern: A topic; `+` matches any one level, and `#` at the end any further levels.
    ///   - make: Makes the value from the decoded body.
    /// - Returns: The same router with the route at the end.
    public func topic<Body: Decodable & Sendable>(
        _ pattern: String,
        _ make: @escaping @Sendable (Body) -> Value
    ) -> MessageRouter {
        let levels = Self.levels(pattern)
        return adding(make) { Self.fits($0.topic, levels) }
    }

    /// The same router with a default for messages without a matching route; it replaces an earlier default.
    public func otherwise(_ make: @escaping @Sendable (Message) -> Value) -> MessageRouter {
        var copy = self
        copy.fallback = make
        return copy
    }

    /// Adds a route for the messages that a condition names.
    package func adding<Body: Decodable & Sendable>(
        _ make: @escaping @Sendable (Body) -> Value,
        where fits: @escaping @Sendable (Message) -> Bool
    ) -> MessageRouter {
        var copy = self
        copy.routes.append(
            Route(fits: fits) { message, decoding throws(WaybillError) in
                make(try decoding.decode(Body.self, from: message))
            }
        )
        return copy
    }

    /// The value of a message.
    ///
    /// - Throws: `decodingFailed`, also if no route matches.
    func value(of message: Message, _ decoding: ResponseDecoding) throws(WaybillError) -> Value {
        if let route = routes.first(where: { $0.fits(message) }) {
            return try route.make(message, decoding)
        }
        if let fallback { return fallback(message) }
        let type = message[.streamEventType] ?? "message"
        throw WaybillError(
            .decodingFailed,
            "no route fits an event of the type \(type)",
            topic: message.topic
        )
    }

    // MARK: Topics

    private static func levels(_ topic: String) -> [String] {
        topic.split(atByte: "/").map { String($0) }
    }

    private static func fits(_ topic: String, _ pattern: [String]) -> Bool {
        let levels = levels(topic)
        let isOpen = pattern.last == "#"
        let fixed = isOpen ? pattern.dropLast() : pattern[...]
        guard isOpen ? levels.count >= fixed.count : levels.count == fixed.count else {
            return false
        }
        return zip(fixed, levels).allSatisfy { $0 == "+" || $0.hasSameBytes(as: $1) }
    }
}

extension Messages where Element == Message {
    /// Gives each message a type by a router.
    ///
    /// - Parameters:
    ///   - router: The routes.
    ///   - decoders: The decoders of bodies; nil for those of the provider that made the stream, or JSON where none did.
    /// - Returns: The same messages, each with the type of its route.
    public func routed<Value>(
        by router: MessageRouter<Value>,
        decoders: [any BodyDecoder]? = nil
    ) -> Messages<Value> {
        let decoding = ResponseDecoding(
            decoders: decoders ?? handle.decoders ?? [JSONBodyDecoder()]
        )
        return Messages<Value>(handle: handle, intercept: intercept) {
            message throws(WaybillError) in
            try router.value(of: message, decoding)
        }
    }
}
