/// A box that keeps a value out of line, so that its owners share one copy.
///
/// A configuration has some 800 bytes. Copies in each part and closure would take most of an idle connection's memory.
/// An optional box is for a value that most connections do not have.
package final class Shared<Value: Sendable>: Sendable {
    /// The value.
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
