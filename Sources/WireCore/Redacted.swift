/// A value that is never shown: what prints, dumps or mirrors its owner sees that something is there, not what.
package struct Redacted<Value> {
    /// The value.
    package var value: Value

    /// Hides a value.
    package init(_ value: Value) {
        self.value = value
    }
}

extension Redacted: Sendable where Value: Sendable {}

extension Redacted: Equatable where Value: Equatable {}

extension Redacted: Hashable where Value: Hashable {}

extension Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A mark in the value's place.
    package var description: String { "<redacted>" }

    /// A mark in the value's place.
    package var debugDescription: String { description }

    /// Nothing.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
