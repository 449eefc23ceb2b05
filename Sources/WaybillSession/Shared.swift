/// A value that many parts of a transport look at, kept once: a configuration of some 800 bytes, held by each part
/// and each closure for itself, would be most of what an idle connection takes.
package final class Shared<Value: Sendable>: Sendable {
    /// The value.
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
