/// A box that shares one copy of a value between the parts of a transport.
///
/// A configuration has some 800 bytes. Copies in each part and closure would take most of an idle connection's memory.
package final class Shared<Value: Sendable>: Sendable {
    /// The value.
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
