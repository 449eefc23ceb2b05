/// Values by their keys: what only one protocol adds to a message or to a receipt.
///
/// The first value is kept without an array, since most that have any have one.
package struct KeyedValues: Sendable {
    private var first: OptionBox?
    private var others: [OptionBox] = []

    package init() {}

    package var isEmpty: Bool { first == nil && others.isEmpty }

    /// The value of a key; nil where it is absent.
    package subscript<Value>(key: OptionKey<Value>) -> Value? {
        get {
            if let value = first?.value(of: key) { return value }
            for box in others {
                if let value = box.value(of: key) { return value }
            }
            return nil
        }
        set {
            if first?.name === key { first = nil }
            others.removeAll { $0.name === key }
            guard let newValue else { return }
            let box = OptionBox.holding(newValue, for: key)
            if first == nil { first = box } else { others.append(box) }
        }
    }

    /// An upper estimate of the memory of the values, in bytes.
    var memoryByteCount: Int {
        others.reduce(first?.memoryByteCount ?? 0) { $0 + $1.memoryByteCount }
    }
}
