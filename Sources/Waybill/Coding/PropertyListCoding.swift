import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Encodes property lists with `PropertyListEncoder`, in the binary format by default.
///
/// The keys of a dictionary may come in any order. A value that is neither a dictionary nor an array is no property
/// list on its own, and fails with `encodingFailed`.
public struct PropertyListBodyEncoder: BodyEncoder {
    private let makeEncoder: @Sendable () -> PropertyListEncoder

    /// The content type `application/x-plist`, for each format.
    public var contentType: String? { "application/x-plist" }

    /// Encodes to the binary format.
    public init() {
        makeEncoder = {
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            return encoder
        }
    }

    /// Encodes with a custom encoder; the closure is called for each value.
    public init(_ makeEncoder: @escaping @Sendable () -> PropertyListEncoder) {
        self.makeEncoder = makeEncoder
    }

    /// Encodes a value that is `Encodable`; nil for any other.
    public func encode<Value: Sendable>(_ value: Value) throws -> Payload? {
        guard let encodable = value as? any Encodable else { return nil }
        return Payload(try makeEncoder().encode(encodable))
    }
}

/// Decodes property lists with `PropertyListDecoder`, which finds out the format by itself.
public struct PropertyListBodyDecoder: BodyDecoder {
    private let makeDecoder: @Sendable () -> PropertyListDecoder

    /// Decodes with the defaults.
    public init() {
        makeDecoder = { PropertyListDecoder() }
    }

    /// Decodes with a custom decoder; the closure is called for each message.
    public init(_ makeDecoder: @escaping @Sendable () -> PropertyListDecoder) {
        self.makeDecoder = makeDecoder
    }

    /// Accepts `application/x-plist`, with any parameters; a message without a content type is left to other decoders
    /// first.
    public func accepts(contentType: String?) -> Bool {
        contentType.map { $0.mediaType.hasSameBytes(as: "application/x-plist") } ?? false
    }

    /// Whether the type is `Decodable`, and its conformance belongs to no actor.
    public func decodes(_ type: Any.Type) -> Bool { FreeDecodable.includes(type) }

    /// Decodes a value whose type is `Decodable`; nil for any other type.
    ///
    /// Call it only for a type for which ``decodes(_:)`` is true: a conformance of an actor is not looked for again.
    public func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value? {
        func decoded<Known: Decodable>(_ type: Known.Type) throws -> Value? {
            try makeDecoder().decode(type, from: message.body.data) as? Value
        }
        guard let decodable = type as? any Decodable.Type else { return nil }
        return try decoded(decodable)
    }
}

extension String {
    /// The media type of a content type, in lower case and without parameters (RFC 9110, 8.3.1).
    var mediaType: String {
        String(unicodeScalars.prefix { $0 != ";" && $0 != " " }).asciiLowercased
    }
}
