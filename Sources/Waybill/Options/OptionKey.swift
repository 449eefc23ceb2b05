/// The name of an option: what errors show, and what ``UnsupportedPolicy`` takes.
///
/// Two names are equal if they are the same object: a name that is spelled alike in another module is another one.
///
/// It is `@unchecked Sendable`, because its properties never change, and its one subclass adds none. The compiler checks no
/// class that has subclasses.
public class OptionName: Hashable, CustomStringConvertible, @unchecked Sendable {
    private let text: String
    /// Whether ``UnsupportedPolicy`` may leave the option out.
    let canBeOmitted: Bool

    package init(_ text: String, canBeOmitted: Bool = true) {
        self.text = text
        self.canBeOmitted = canBeOmitted
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
            return own.utf8.elementsEqual(other.utf8)
        }
        return value == other
    }

    override func hashValue(into hasher: inout Hasher) { hasher.combine(value) }

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
