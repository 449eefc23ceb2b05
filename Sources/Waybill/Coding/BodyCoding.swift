import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Turns values into bodies: JSON, Protobuf, or another format that the service speaks.
///
/// An encoder decides which types it encodes. One encoder can serve a whole family of types, such as every type that
/// conforms to a protocol of a Protobuf library.
public protocol BodyEncoder: Sendable {
    /// The content type of the encoded bodies, as in a `content-type` header; nil to send none.
    var contentType: String? { get }

    /// Encodes a value.
    ///
    /// - Returns: The body; nil when the encoder does not encode values of this type, and the next encoder is asked.
    /// - Throws: Any error; it becomes the cause of `encodingFailed`.
    func encode<Value: Sendable>(_ value: Value) throws -> Payload?
}

/// Turns the bodies of messages into values.
///
/// A decoder decides which types it decodes. One decoder can serve a whole family of types:
///
/// ```swift
/// struct ProtobufDecoder: BodyDecoder {
///     func accepts(contentType: String?) -> Bool { contentType == "application/x-protobuf" }
///
///     func decodes(_ type: Any.Type) -> Bool { type is any SerializedMessage.Type }
///
///     func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value? {
///         guard let type = type as? any SerializedMessage.Type else { return nil }
///         return try type.init(serializedBytes: message.body.bytes) as? Value
///     }
/// }
/// ```
public protocol BodyDecoder: Sendable {
    /// Whether the decoder is meant for a content type; nil stands for a message without one.
    func accepts(contentType: String?) -> Bool

    /// Whether the decoder decodes values of this type.
    ///
    /// Called when a request or a subscription is made. A type that no decoder knows fails before anything is sent.
    /// Decoders run anywhere, so the answer is false for a type whose conformance to the format belongs to an actor.
    func decodes(_ type: Any.Type) -> Bool

    /// Decodes a value.
    ///
    /// - Returns: The value; nil when the decoder does not decode this type, and the next decoder is asked.
    /// - Throws: Any error; the next decoder is then tried.
    func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value?
}

/// Encodes JSON with `JSONEncoder`; keys are sorted by default, so the same value gives the same bytes.
public struct JSONBodyEncoder: BodyEncoder {
    private let makeEncoder: @Sendable () -> JSONEncoder

    /// The content type `application/json`.
    public var contentType: String? { "application/json" }

    /// Shared and never changed: making an encoder takes as long as encoding a small value.
    private static let shared: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }()

    /// Encodes with sorted keys.
    public init() {
        makeEncoder = { Self.shared }
    }

    /// Encodes with a custom encoder; the closure is called for each value.
    public init(_ makeEncoder: @escaping @Sendable () -> JSONEncoder) {
        self.makeEncoder = makeEncoder
    }

    /// Encodes a value that is `Encodable`; nil for any other.
    public func encode<Value: Sendable>(_ value: Value) throws -> Payload? {
        guard let encodable = value as? any Encodable else { return nil }
        return Payload(try makeEncoder().encode(encodable))
    }

    /// Encodes a value that the compiler knows to be `Encodable`.
    public func encode<Value: Encodable & Sendable>(_ value: Value) throws -> Payload {
        try encodeCodable(value)
    }

    /// Skips the look-up of whether the value is `Encodable`.
    func encodeCodable(_ value: some Encodable) throws -> Payload {
        Payload(try makeEncoder().encode(value))
    }
}

/// Decodes JSON with `JSONDecoder`.
public struct JSONBodyDecoder: BodyDecoder {
    /// Shared and never changed: making a decoder takes a good part of the time that decoding takes.
    private let shared: JSONDecoder?
    private let makeDecoder: @Sendable () -> JSONDecoder

    /// Decodes with the defaults.
    public init() {
        shared = JSONDecoder()
        makeDecoder = { JSONDecoder() }
    }

    /// Decodes with a custom decoder; the closure is called for each message.
    public init(_ makeDecoder: @escaping @Sendable () -> JSONDecoder) {
        shared = nil
        self.makeDecoder = makeDecoder
    }

    /// Accepts JSON content types, and messages without a content type.
    public func accepts(contentType: String?) -> Bool {
        guard let contentType, contentType != "application/json" else { return true }
        let name = contentType.mediaType
        return name == "application/json" || name.hasByteSuffix("+json")
    }

    /// Whether the type is `Decodable`, and its conformance belongs to no actor.
    public func decodes(_ type: Any.Type) -> Bool { FreeDecodable.includes(type) }

    /// Decodes a value whose type is `Decodable`; nil for any other type.
    ///
    /// Call it only for a type for which ``decodes(_:)`` is true: a conformance of an actor is not looked for again.
    public func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value? {
        // Cast within a generic function, so that a large value is not boxed.
        func decoded<Known: Decodable>(_ type: Known.Type) throws -> Value? {
            try decodeCodable(type, from: message) as? Value
        }
        guard let decodable = type as? any Decodable.Type else { return nil }
        return try decoded(decodable)
    }

    /// Decodes a value whose type the compiler knows to be `Decodable`.
    public func decode<Value: Decodable>(
        _ type: Value.Type,
        from message: Message
    ) throws -> Value {
        try decodeCodable(type, from: message)
    }

    /// Skips the look-up of whether the type is `Decodable`.
    func decodeCodable<Value: Decodable>(
        _ type: Value.Type,
        from message: Message
    ) throws -> Value {
        try (shared ?? makeDecoder()).decode(type, from: message.body.data)
    }
}
