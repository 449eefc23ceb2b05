/// A name and its value: a header, or a user property.
///
/// One type for all rings, so that a list of them goes from the caller to the encoder without being made anew.
package struct NamedValue: Hashable, Sendable {
    /// The name.
    package var name: String
    /// The value.
    package var value: String

    /// Pairs a name with a value.
    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
