import WireCore

/// An option of a stored message: a name, and a value of one of four kinds.
public struct StoredOption: Sendable {
    /// The value of a stored option.
    public enum Value: Sendable {
        /// True or false.
        case flag(Bool)
        /// A number.
        case integer(Int64)
        /// A text.
        case text(String)
        /// Bytes.
        case bytes([UInt8])
    }

    /// The name of the option's key.
    public var name: String
    /// The value.
    public var value: Value

    /// Makes an option.
    public init(_ name: String, _ value: Value) {
        self.name = name
        self.value = value
    }
}

/// A value that a store can keep.
///
/// Flags, integers, texts and bytes can, and an enum whose raw values are one of these needs only to say so:
///
/// ```swift
/// enum Urgency: Int, StorableOptionValue { case low, high }
/// ```
public protocol StorableOptionValue: Hashable, Sendable {
    /// The value as it is stored.
    var storedValue: StoredOption.Value { get }

    /// Makes the value again; nil for what this program does not know: the message then stays in the store, unsent.
    ///
    /// - Parameter storedValue: What was stored, possibly by another version of the program.
    init?(storedValue: StoredOption.Value)
}

// MARK: Values

extension Bool: StorableOptionValue {
    /// A flag.
    public var storedValue: StoredOption.Value { .flag(self) }

    /// Takes a flag.
    public init?(storedValue: StoredOption.Value) {
        guard case .flag(let flag) = storedValue else { return nil }
        self = flag
    }
}

extension String: StorableOptionValue {
    /// A text.
    public var storedValue: StoredOption.Value { .text(self) }

    /// Takes a text.
    public init?(storedValue: StoredOption.Value) {
        guard case .text(let text) = storedValue else { return nil }
        self = text
    }
}

extension Array: StorableOptionValue where Element == UInt8 {
    /// Bytes.
    public var storedValue: StoredOption.Value { .bytes(self) }

    /// Takes bytes.
    public init?(storedValue: StoredOption.Value) {
        guard case .bytes(let bytes) = storedValue else { return nil }
        self = bytes
    }
}

extension StorableOptionValue where Self: FixedWidthInteger {
    /// An integer, with the bits of the value.
    ///
    /// A `UInt` or `UInt64` above `Int64.max` has the bits of a negative number. A key that once had a signed type must
    /// not get one of these types: a stored -1 would be read as the greatest number.
    public var storedValue: StoredOption.Value { .integer(Int64(truncatingIfNeeded: self)) }

    /// Takes an integer that the type can have.
    public init?(storedValue: StoredOption.Value) {
        guard case .integer(let integer) = storedValue else { return nil }
        self.init(truncatingIfNeeded: integer)
        // An integer of another type, such as 300 for eight bits.
        guard Int64(truncatingIfNeeded: self) == integer else { return nil }
    }
}

extension Int: StorableOptionValue {}
extension Int8: StorableOptionValue {}
extension Int16: StorableOptionValue {}
extension Int32: StorableOptionValue {}
extension Int64: StorableOptionValue {}
extension UInt: StorableOptionValue {}
extension UInt8: StorableOptionValue {}
extension UInt16: StorableOptionValue {}
extension UInt32: StorableOptionValue {}
extension UInt64: StorableOptionValue {}

extension StorableOptionValue where Self: RawRepresentable, RawValue: StorableOptionValue {
    /// The raw value.
    public var storedValue: StoredOption.Value { rawValue.storedValue }

    /// Takes a raw value that the type has.
    public init?(storedValue: StoredOption.Value) {
        guard let rawValue = RawValue(storedValue: storedValue) else { return nil }
        self.init(rawValue: rawValue)
    }
}

// MARK: Comparing, coding and showing

extension StoredOption: Hashable {
    /// Whether name and value are the same; texts compare by their bytes.
    public static func == (left: Self, right: Self) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value == right.value
    }

    /// Hashes what ``==(_:_:)`` compares.
    public func hash(into hasher: inout Hasher) {
        name.hashBytes(into: &hasher)
        hasher.combine(value)
    }
}

extension StoredOption.Value: Hashable {
    /// Whether kind and value are the same; texts compare by their bytes.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.flag(let left), .flag(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.text(let left), .text(let right)): left.hasSameBytes(as: right)
        case (.bytes(let left), .bytes(let right)): left == right
        default: false
        }
    }

    /// Hashes what ``==(_:_:)`` compares.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .flag(let flag): hasher.combine(flag)
        case .integer(let integer): hasher.combine(integer)
        case .text(let text): text.hashBytes(into: &hasher)
        case .bytes(let bytes): hasher.combine(bytes)
        }
    }
}

extension StoredOption: Codable {
    private enum CodingKeys: String, CodingKey {
        case name, flag, integer, text, bytes
    }

    /// Decodes the name, and the value under the name of its kind.
    ///
    /// - Throws: `DecodingError`, also for a kind that this version does not know.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        name = try values.decode(String.self, forKey: .name)
        if values.contains(.flag) {
            value = .flag(try values.decode(Bool.self, forKey: .flag))
        } else if values.contains(.integer) {
            value = .integer(try values.decode(Int64.self, forKey: .integer))
        } else if values.contains(.text) {
            value = .text(try values.decode(String.self, forKey: .text))
        } else {
            value = .bytes(try values.decode([UInt8].self, forKey: .bytes))
        }
    }

    /// Encodes the name, and the value under the name of its kind.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(name, forKey: .name)
        switch value {
        case .flag(let flag): try values.encode(flag, forKey: .flag)
        case .integer(let integer): try values.encode(integer, forKey: .integer)
        case .text(let text): try values.encode(text, forKey: .text)
        case .bytes(let bytes): try values.encode(bytes, forKey: .bytes)
        }
    }
}

extension StoredOption: ShownByDescription {
    /// The name alone: the value may be a secret.
    public var description: String { name.escaped }
}

extension StoredOption.Value: ShownByDescription {
    /// The kind alone: the value may be a secret.
    public var description: String {
        switch self {
        case .flag: "flag"
        case .integer: "integer"
        case .text: "text"
        case .bytes: "bytes"
        }
    }
}
