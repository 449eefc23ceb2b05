/// A name and its value: a header, or a user property.
///
/// One type for all layers, so that a list passes from the caller to the encoder without a conversion.
package struct NamedValue: Hashable, Sendable {
    package var name: String
    package var value: String

    /// Pairs are equal when the bytes of their names and values are.
    package static func == (left: NamedValue, right: NamedValue) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
    }

    package func hash(into hasher: inout Hasher) {
        name.hashBytes(into: &hasher)
        value.hashBytes(into: &hasher)
    }

    /// Pairs a name with a value.
    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
