#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The body of an entry: nothing, text, data, or a value with its encoding.
///
/// Encoding happens when the request is made. A failure reaches the caller as `encodingFailed`, before anything is
/// sent.
public struct EntryBody: Sendable {
    private enum Storage: Sendable {
        case ready(Payload, contentType: String?)
        case encoded(@Sendable () throws -> Payload, contentType: String?)
        case value(type: Any.Type, @Sendable (any BodyEncoder) throws -> Payload?)
        case form([Headers.Header])
        case none
    }

    private let storage: Storage

    /// No body.
    public static let none = EntryBody(storage: .none)

    /// Text, as `text/plain; charset=utf-8`.
    public static func text(_ text: String) -> EntryBody {
        EntryBody(storage: .ready(Payload(text), contentType: "text/plain; charset=utf-8"))
    }

    /// Data with an optional content type.
    public static func data(_ data: Data, contentType: String? = nil) -> EntryBody {
        EntryBody(storage: .ready(Payload(data), contentType: contentType))
    }

    /// Bytes with an optional content type.
    public static func bytes(_ bytes: [UInt8], contentType: String? = nil) -> EntryBody {
        EntryBody(storage: .ready(Payload(bytes), contentType: contentType))
    }

    /// A value as JSON, encoded with `JSONEncoder`'s defaults and sorted keys.
    public static func json(_ value: some Encodable & Sendable) -> EntryBody {
        json(value, JSONBodyEncoder())
    }

    /// A value as JSON, by a custom encoder.
    public static func json(
        _ value: some Encodable & Sendable,
        encoder: @escaping @Sendable @autoclosure () -> JSONEncoder
    ) -> EntryBody {
        json(value, JSONBodyEncoder(encoder))
    }

    private static func json(
        _ value: some Encodable & Sendable,
        _ encoder: JSONBodyEncoder
    ) -> EntryBody {
        EntryBody(
            storage: .encoded(
                { try encoder.encodeCodable(value) },
                contentType: encoder.contentType
            )
        )
    }

    /// A value by any encoder.
    ///
    /// A value that the encoder does not encode fails with `encodingFailed`.
    public static func encoded(
        _ value: some Sendable,
        by encoder: some BodyEncoder
    ) -> EntryBody {
        EntryBody(
            storage: .encoded(
                {
                    guard let payload = try encoder.encode(value) else {
                        throw NoEncoderError(type: type(of: value))
                    }
                    return payload
                },
                contentType: encoder.contentType
            )
        )
    }

    /// A value, by the first of the provider's encoders that encodes it; see ``ProviderConfiguration/encoders``.
    ///
    /// The entry thus names the value, and the provider chooses the format. A value that no encoder encodes fails with
    /// `encodingFailed`.
    public static func value(_ value: some Sendable) -> EntryBody {
        EntryBody(storage: .value(type: type(of: value)) { try $0.encode(value) })
    }

    /// A value, by the first of the provider's encoders that encodes it; see ``value(_:)``.
    ///
    /// This overload is for `Encodable` types; it needs no look-up of the conformance.
    public static func value(_ value: some Encodable & Sendable) -> EntryBody {
        EntryBody(
            storage: .value(type: type(of: value)) { encoder in
                guard let json = encoder as? JSONBodyEncoder else {
                    return try encoder.encode(value)
                }
                return try json.encodeCodable(value)
            }
        )
    }

    /// Names and values as `application/x-www-form-urlencoded`, in order.
    public static func form(_ fields: Headers) -> EntryBody {
        EntryBody(storage: .form(Array(fields)))
    }

    /// Encodes the body.
    ///
    /// - Parameter encoders: The provider's encoders, for a body that leaves the format to the provider.
    /// - Returns: The bytes and their content type.
    /// - Throws: The error of the encoder.
    func encode(
        _ encoders: @autoclosure () -> [any BodyEncoder]
    ) throws -> (Payload, contentType: String?) {
        switch storage {
        case .none: (Payload(), nil)
        case .ready(let payload, let contentType): (payload, contentType)
        case .encoded(let encode, let contentType): (try encode(), contentType)
        case .form(let fields):
            (Payload(FormEncoding.encode(fields)), "application/x-www-form-urlencoded")
        case .value(let type, let encode): try Self.encode(type, encode, by: encoders())
        }
    }

    private static func encode(
        _ type: Any.Type,
        _ encode: (any BodyEncoder) throws -> Payload?,
        by encoders: [any BodyEncoder]
    ) throws -> (Payload, contentType: String?) {
        for encoder in encoders {
            if let payload = try encode(encoder) { return (payload, encoder.contentType) }
        }
        throw NoEncoderError(type: type)
    }
}

/// The cause of `encodingFailed` when no encoder encodes a type.
struct NoEncoderError: Error, CustomStringConvertible {
    let type: Any.Type

    var description: String {
        "no encoder encodes a \(type): make it Encodable, or add an encoder for it to ProviderConfiguration.encoders"
    }
}

/// The `application/x-www-form-urlencoded` serializer (URL Standard, 5.2).
enum FormEncoding {
    static func encode(_ fields: [Headers.Header]) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, field) in fields.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: "&")) }
            append(field.name, to: &bytes)
            bytes.append(UInt8(ascii: "="))
            append(field.value, to: &bytes)
        }
        return bytes
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "*"), UInt8(ascii: "-"),
                UInt8(ascii: "."), UInt8(ascii: "_"):
                bytes.append(byte)
            case UInt8(ascii: " "): bytes.append(UInt8(ascii: "+"))
            default:
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
    }
}
