import WireCore

/// The name of an option: what errors show, and what ``UnsupportedPolicy`` takes.
///
/// Two names are equal if they are the same object: a name that is spelled alike in another module is another one.
///
/// It is `@unchecked Sendable`, because its properties never change, and its one subclass adds none. The compiler checks no
/// class that has subclasses.
public class OptionName: Hashable, CustomStringConvertible, @unchecked Sendable {
    let text: String
    /// Whether ``UnsupportedPolicy`` may leave the option out.
    let canBeOmitted: Bool
    /// How the value is stored with a message; nil for an option that is not stored.
    let coding: OptionCoding?

    package init(_ text: String, canBeOmitted: Bool = true) {
        self.text = text
        self.canBeOmitted = canBeOmitted
        coding = nil
    }

    fileprivate init(_ text: String, canBeOmitted: Bool, _ coding: OptionCoding) {
        self.text = text
        self.canBeOmitted = canBeOmitted
        self.coding = coding
    }

    /// Whether both are the same object.
    public static func == (left: OptionName, right: OptionName) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// The name as an app writes it.
    public var description: String { text }
}

/// The key to the value of an option.
///
/// Declare it once, as a static constant, beside the option that takes its name:
///
/// ```swift
/// extension OptionName { static let priority = OptionKey<Int>("priority") }
/// extension SendOption { static func priority(_ level: Int) -> Self { Self(.priority, level) } }
/// ```
///
/// An interceptor reads, sets and removes the option with ``EntryCommand/subscript(_:)``. A transport that does not know
/// it refuses it.
///
/// It is `@unchecked Sendable`, because it has no property beside those of ``OptionName``.
public final class OptionKey<Value: Hashable & Sendable>: OptionName, @unchecked Sendable {
    /// Makes a key.
    ///
    /// - Parameters:
    ///   - name: The name as an app writes it.
    ///   - canBeOmitted: Whether ``UnsupportedPolicy`` may leave the option out; false where the app relies on it.
    public override init(_ name: String, canBeOmitted: Bool = true) {
        super.init(name, canBeOmitted: canBeOmitted)
    }

    private override init(_ name: String, canBeOmitted: Bool, _ coding: OptionCoding) {
        super.init(name, canBeOmitted: canBeOmitted, coding)
    }

    /// Makes the key of an option that belongs to the message: a store keeps it, so that a later process sends the
    /// message with it.
    ///
    /// Other options concern the caller and the present connection, and are not stored.
    ///
    /// A store keeps the name, so a name in use must not change. No two stored keys of a program, with those of the modules,
    /// have the same one: a send with such an option fails with `invalidEntry` before it is stored.
    ///
    /// A later process knows the option once it has used the key. A static constant is made at its first use, and a
    /// transport looks at its store when it connects, before any send. An interceptor that reads the option after
    /// `guard request.command.kind == .send` is too late for that. So use the key before the transport connects:
    /// `_ = OptionName.priority`. Until then the message stays in the store, `sendFailed` reports it once, and it is not
    /// sent; the next connection looks again. So it is if the provider that connects has no interceptor that takes the
    /// option out.
    ///
    /// - Parameters:
    ///   - name: The name as an app writes it.
    ///   - canBeOmitted: Whether ``UnsupportedPolicy`` may leave the option out; false where the app relies on it.
    public convenience init(stored name: String, canBeOmitted: Bool = true)
    where Value: StorableOptionValue {
        self.init(name, canBeOmitted: canBeOmitted, OptionCoding(Value.self))
        StoredKeys.add(self)
    }
}

/// Converts the value of an option to what is stored, and back.
struct OptionCoding: Sendable {
    /// The value of a box that was made with the coding's key.
    let value: @Sendable (OptionBox) -> StoredOption.Value
    /// A box for the coding's key; nil if the value is none of the key's.
    let box: @Sendable (_ key: OptionName, StoredOption.Value) -> OptionBox?

    fileprivate init<Value: StorableOptionValue>(_ type: Value.Type) {
        // A key has the coding of its own type, and a box the type of its key.
        value = { unsafeDowncast($0, to: TypedBox<Value>.self).value.storedValue }
        box = { key, stored in
            let key = unsafeDowncast(key, to: OptionKey<Value>.self)
            return Value(storedValue: stored).map { TypedBox(key, $0) }
        }
    }
}

/// An option with its value.
///
/// It is `@unchecked Sendable`, because its properties never change, and the one of its subclass is of a sendable type. The
/// compiler checks no class that has subclasses.
class OptionBox: @unchecked Sendable {
    let name: OptionName

    fileprivate init(_ name: OptionName) { self.name = name }

    fileprivate func hasSameValue(as other: OptionBox) -> Bool { false }

    fileprivate func hashValue(into hasher: inout Hasher) {}

    /// Whether its value holds options of its own.
    var holdsOptions: Bool { false }

    /// The option without another one that its value may hold; nil if it is itself the one to omit.
    func omitting(_ name: OptionName) -> OptionBox? { name === self.name ? nil : self }

    /// An upper estimate of the memory that the option takes, in bytes.
    var memoryByteCount: Int { 0 }

    static func holding<Value>(_ value: Value, for key: OptionKey<Value>) -> OptionBox {
        TypedBox(key, value)
    }

    /// The value, if the option is the one of the key.
    @inline(__always)
    func value<Value>(of key: OptionKey<Value>) -> Value? {
        guard name === key else { return nil }
        // A box is made with a key and a value of the key's type, so the same key means the same type.
        return unsafeDowncast(self, to: TypedBox<Value>.self).value
    }
}

/// It is `@unchecked Sendable`, because its one property never changes and is of a sendable type.
private final class TypedBox<Value: Hashable & Sendable>: OptionBox, @unchecked Sendable {
    let value: Value

    init(_ key: OptionKey<Value>, _ value: Value) {
        self.value = value
        super.init(key)
    }

    override func hasSameValue(as other: OptionBox) -> Bool {
        guard name === other.name else { return false }
        let other = unsafeDowncast(other, to: TypedBox<Value>.self).value
        // Two texts that look alike may differ for a peer.
        if let own = value as? String, let other = other as? String {
            return own.hasSameBytes(as: other)
        }
        if let own = value as? Set<String>, let other = other as? Set<String> {
            return Set(own.map(WireName.init)) == Set(other.map(WireName.init))
        }
        return value == other
    }

    override func hashValue(into hasher: inout Hasher) { hasher.combine(value) }

    override var memoryByteCount: Int {
        // Two allocations, each with a header and the allocator's rounding.
        let own = 128 + MemoryLayout<Value>.size
        return switch value {
        case let text as String: own + text.utf8.count
        case let bytes as [UInt8]: own + bytes.count
        case let numbers as [UInt32]: own + 4 * numbers.count
        default: own
        }
    }

    override var holdsOptions: Bool { Value.self is any OptionHolder.Type }

    override func omitting(_ name: OptionName) -> OptionBox? {
        guard name !== self.name, var holder = value as? any OptionHolder else {
            return super.omitting(name)
        }
        holder.omit(name)
        guard let left = holder as? Value else { return self }
        // A box is made with a key of its value's type.
        return TypedBox(unsafeDowncast(self.name, to: OptionKey<Value>.self), left)
    }
}

extension OptionBox: Hashable {
    static func == (left: OptionBox, right: OptionBox) -> Bool {
        left === right || left.hasSameValue(as: right)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hashValue(into: &hasher)
    }
}
