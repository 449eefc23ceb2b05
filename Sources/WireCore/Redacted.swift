/// A value that is never shown: printing, dumping or mirroring its owner shows a mark in its place.
package struct Redacted<Value> {
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
    /// A mark in place of the value.
    package var description: String { "<redacted>" }

    /// A mark in place of the value.
    package var debugDescription: String { description }

    /// Empty: the value is never shown.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
