#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What an entry sends: nothing, text, data, or a value and who encodes it.
///
/// Encoding happens when the request is made; what fails then reaches the caller as
/// `encodingFailed`, before anything is sent.
public struct EntryBody: Sendable {
    private enum Storage: Sendable {
        case ready(Payload, contentType: String?)
        case encoded(@Sendable () throws -> Payload, contentType: String?)
        case form([Headers.Header])
        case none
    }

    private let storage: Storage

    /// Nothing.
    public static let none = EntryBody(storage: .none)

    /// Text, as `text/plain; charset=utf-8`.
    public static func text(_ text: String) -> EntryBody {
        EntryBody(storage: .ready(Payload(text), contentType: "text/plain; charset=utf-8"))
    }

    /// Data of a kind of one's own.
    public static func data(_ data: Data, contentType: String? = nil) -> EntryBody {
        EntryBody(storage: .ready(Payload(data), contentType: contentType))
    }

    /// Bytes of a kind of one's own.
    public static func bytes(_ bytes: [UInt8], contentType: String? = nil) -> EntryBody {
        EntryBody(storage: .ready(Payload(bytes), contentType: contentType))
    }

    /// A value as JSON, encoded with `JSONEncoder`'s defaults and sorted keys.
    public static func json(_ value: some Encodable & Sendable) -> EntryBody {
        encoded(value, by: JSONBodyEncoder())
    }

    /// A value as JSON by an encoder of one's own.
    public static func json(
        _ value: some Encodable & Sendable,
        encoder: @escaping @Sendable @autoclosure () -> JSONEncoder
    ) -> EntryBody {
        encoded(value, by: JSONBodyEncoder(encoder))
    }

    /// A value by any encoder.
    public static func encoded(
        _ value: some Encodable & Sendable,
        by encoder: some BodyEncoder
    ) -> EntryBody {
        EntryBody(
            storage: .encoded({ try encoder.encode(value) }, contentType: encoder.contentType)
        )
    }

    /// Names and values as `application/x-www-form-urlencoded`, in order.
    public static func form(_ fields: Headers) -> EntryBody {
        EntryBody(storage: .form(Array(fields)))
    }

    /// Encodes.
    func encode() throws -> (Payload, contentType: String?) {
        switch storage {
        case .none: (Payload(), nil)
        case .ready(let payload, let contentType): (payload, contentType)
        case .encoded(let encode, let contentType): (try encode(), contentType)
        case .form(let fields):
            (Payload(FormEncoding.encode(fields)), "application/x-www-form-urlencoded")
        }
    }
}

/// The serializer of the URL Standard for forms (URL Standard, 5.2).
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
