import WireCore

/// Filters without a listener that the server may still have.
///
/// A filter stays here until the server has confirmed its UNSUBSCRIBE.
struct MQTTLeftFilters: Sendable {
    /// A left filter; the number tells two leaves of the same filter apart.
    struct Filter: Sendable {
        let text: String
        fileprivate let number: UInt64
    }

    /// The filters, in the order of leaving.
    private(set) var all: [Filter] = []
    private var lastNumber: UInt64 = 0
    private var isSaved = true
    private var isSaving = false

    /// - Parameter filters: The stored filters of an earlier process.
    init(_ filters: [String]) {
        for filter in filters { _ = add(filter) }
        isSaved = true
    }

    /// Adds a filter.
    mutating func add(_ filter: String) -> Filter {
        remove(filter)
        lastNumber += 1
        let left = Filter(text: filter, number: lastNumber)
        all.append(left)
        isSaved = false
        return left
    }

    /// Removes a filter that has a listener again.
    mutating func remove(_ filter: String) { remove { $0.text.hasSameBytes(as: filter) } }

    /// Removes filters, except those that were left again since.
    mutating func remove(_ gone: [Filter]) {
        let numbers = Set(gone.map(\.number))
        remove { numbers.contains($0.number) }
    }

    /// Removes all filters, because the server has none.
    mutating func removeAll() { remove { _ in true } }

    private mutating func remove(where isGone: (Filter) -> Bool) {
        let count = all.count
        all.removeAll(where: isGone)
        if all.count != count { isSaved = false }
    }

    // MARK: Storing

    /// Returns the filters to store; nil if they are stored, or while another thread stores.
    mutating func beginSaving() -> [String]? {
        guard !isSaved, !isSaving else { return nil }
        (isSaved, isSaving) = (true, true)
        return all.map(\.text)
    }

    /// Notes that the filters are stored.
    mutating func endSaving() { isSaving = false }
}
