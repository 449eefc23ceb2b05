package import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The bytes of a body, stored in the form in which they were given.
///
/// Text, data and arrays are written to the wire without a conversion first. The description shows the length and never
/// the content.
public struct Payload: Sendable {
    enum Storage: Sendable {
        case bytes([UInt8])
        case data(Data)
        case text(String)
        /// Bytes that were received, in memory that other bodies may share.
        case shared(SharedBytes)

        var count: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .data(let data): data.count
            case .text(let text): text.utf8.count
            case .shared(let shared): shared.count
            }
        }
    }

    private let storage: Storage
    /// The number of bytes, unless it is too large for this field.
    ///
    /// Kept beside the storage, because asking the storage counts references.
    private let shortCount: UInt32

    private init(_ storage: Storage) {
        self.init(storage: storage, shortCount: UInt32(clamping: storage.count))
    }

    private init(storage: Storage, shortCount: UInt32) {
        self.storage = storage
        self.shortCount = shortCount
    }

    /// No bytes, as a constant.
    static var empty: Payload {
        @inline(__always) get { Payload(storage: .text(""), shortCount: 0) }
    }

    /// No bytes.
    public init() { self.init(.bytes([])) }

    /// The bytes of an array.
    public init(_ bytes: [UInt8]) { self.init(.bytes(bytes)) }

    /// The bytes of data.
    public init(_ data: Data) { self.init(.data(data)) }

    /// The UTF-8 of a text.
    public init(_ text: String) { self.init(.text(text)) }

    /// The bytes of a slice, whose memory stays alive as long as the payload.
    package init(sharing slice: ByteSlice) {
        self.init(SharedBytes(slice).map { .shared($0) } ?? .bytes(slice.bytes))
    }

    /// The number of bytes.
    public var count: Int { shortCount < .max ? Int(shortCount) : countOfStorage }

    private var countOfStorage: Int {
        @inline(never) get { storage.count }
    }

    /// Whether there are no bytes.
    public var isEmpty: Bool { count == 0 }

    /// The bytes as data.
    public var data: Data {
        switch storage {
        case .bytes(let bytes): Data(bytes)
        case .data(let data): data
        case .text(let text): Data(text.utf8)
        case .shared(let shared): shared.withUnsafeBytes { Data($0) }
        }
    }

    /// The bytes as an array.
    public var bytes: [UInt8] {
        switch storage {
        case .bytes(let bytes): bytes
        case .data(let data): [UInt8](data)
        case .text(let text): [UInt8](text.utf8)
        case .shared(let shared): shared.bytes
        }
    }

    /// The bytes as text; nil when they are not well-formed UTF-8.
    public var text: String? {
        switch storage {
        case .text(let text): text
        case .bytes(let bytes): Self.text(of: bytes)
        case .data(let data): Self.text(of: data)
        case .shared(let shared): shared.withUnsafeBytes { Self.text(of: $0) }
        }
    }

    private static func text(of bytes: some Collection<UInt8>) -> String? {
        // Decoding repairs invalid UTF-8; comparing the bytes finds text that was repaired.
        let text = String(decoding: bytes, as: UTF8.self)
        return text.utf8.elementsEqual(bytes) ? text : nil
    }

    /// Calls `body` with the bytes, which must not be used after it returns.
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        switch storage {
        case .bytes(let bytes): return try bytes.withUnsafeBytes(body)
        case .data(let data): return try data.withUnsafeBytes(body)
        case .shared(let shared): return try shared.withUnsafeBytes(body)
        case .text(var text):
            return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
        }
    }
}

extension Payload: Hashable {
    /// Compares the bytes, whatever form they are stored in.
    public static func == (left: Payload, right: Payload) -> Bool {
        left.count == right.count
            && left.withUnsafeBytes { one in right.withUnsafeBytes { one.elementsEqual($0) } }
    }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

extension Payload: ExpressibleByStringLiteral {
    /// The UTF-8 of a literal.
    public init(stringLiteral value: String) { self.init(value) }
}

extension Payload: CustomStringConvertible {
    /// The number of bytes.
    public var description: String { count == 1 ? "1 byte" : "\(count) bytes" }
}
