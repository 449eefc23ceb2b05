extension Dictionary where Key: Comparable {
    /// The values in the order of their keys.
    ///
    /// Used for keys that are numbers in order of arrival. The order of a dictionary changes from process to process,
    /// and must never determine an order of service.
    ///
    /// - Complexity: O(n log n); O(1) for at most one value.
    package var valuesInKeyOrder: [Value] {
        count < 2 ? Array(values) : sorted { $0.key < $1.key }.map(\.value)
    }
}
