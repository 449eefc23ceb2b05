import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Turns a value into a body: JSON, Protobuf, or whatever the service speaks.
public protocol BodyEncoder: Sendable {
    /// What the encoder makes, as in a content type header; nil to say nothing about it.
    var contentType: String? { get }

    /// Encodes a value.
    /// - Throws: Anything; the caller sees it as the cause of `encodingFailed`.
    func encode<Value: Encodable & Sendable>(_ value: Value) throws -> Payload
}

/// Turns the body of a message into a value.
public protocol BodyDecoder: Sendable {
    /// Whether the decoder is meant for such a content type, which may be absent.
    func accepts(contentType: String?) -> Bool

    /// Decodes a value.
    /// - Throws: Anything; the next decoder is tried then.
    func decode<Value: Decodable>(_ type: Value.Type, from message: Message) throws -> Value
}

/// JSON by `JSONEncoder`; keys are sorted by default, so that the same value gives the same bytes.
public struct JSONBodyEncoder: BodyEncoder {
    private let makeEncoder: @Sendable () -> JSONEncoder

    /// Says `application/json`.
    public var contentType: String? { "application/json" }

    /// One for all, and never changed: making one takes as long as encoding a small value.
    private static let shared: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }()

    /// Encodes with sorted keys.
    public init() {
        makeEncoder = { Self.shared }
    }

    /// Encodes with an encoder of one's own, made anew for each value.
    public init(_ makeEncoder: @escaping @Sendable () -> JSONEncoder) {
        self.makeEncoder = makeEncoder
    }

    /// Encodes a value.
    public func encode<Value: Encodable & Sendable>(_ value: Value) throws -> Payload {
        Payload(try makeEncoder().encode(value))
    }
}

/// JSON by `JSONDecoder`.
public struct JSONBodyDecoder: BodyDecoder {
    /// One for all messages, and never changed: making one takes a good part of what decoding takes.
    private let shared: JSONDecoder?
    private let makeDecoder: @Sendable () -> JSONDecoder

    /// Decodes with the defaults.
    public init() {
        shared = JSONDecoder()
        makeDecoder = { JSONDecoder() }
    }

    /// Decodes with a decoder of one's own, made anew for each value.
    public init(_ makeDecoder: @escaping @Sendable () -> JSONDecoder) {
        shared = nil
        self.makeDecoder = makeDecoder
    }

    /// Accepts JSON content types, and bodies that name none.
    public func accepts(contentType: String?) -> Bool {
        guard let contentType, contentType != "application/json" else { return true }
        let media = contentType.unicodeScalars.prefix { $0 != ";" && $0 != " " }
        let name = String(media).asciiLowercased
        return name == "application/json" || name.hasByteSuffix("+json")
    }

    /// Decodes a value.
    public func decode<Value: Decodable>(_ type: Value.Type, from message: Message) throws -> Value
    {
        try (shared ?? makeDecoder()).decode(type, from: message.body.data)
    }
}
