extension Dictionary where Key: Comparable {
    /// The values in the order of their keys.
    ///
    /// For keys that are numbers given in the order of arrival. The order of a dictionary's own changes from process to
    /// process, and must never decide who goes first.
    /// - Complexity: O(n log n); O(1) for one value or none.
    package var valuesInKeyOrder: [Value] {
        count < 2 ? Array(values) : sorted { $0.key < $1.key }.map(\.value)
    }
}
