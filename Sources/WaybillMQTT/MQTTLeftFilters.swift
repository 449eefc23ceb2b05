import WireCore

/// Filters that the server may still have, and nobody listens to any longer: it is told until it has confirmed that.
struct MQTTLeftFilters: Sendable {
    /// One that was left, perhaps not for the first time.
    struct Filter: Sendable {
        let text: String
        fileprivate let number: UInt64
    }

    /// In the order of leaving.
    private(set) var all: [Filter] = []
    private var lastNumber: UInt64 = 0
    private var isSaved = true
    private var isSaving = false

    /// - Parameter filters: What an earlier process has left.
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

    /// Removes a filter that somebody wants again.
    mutating func remove(_ filter: String) { remove { $0.text.hasSameBytes(as: filter) } }

    /// Removes filters, unless they were left once more since.
    mutating func remove(_ gone: [Filter]) {
        let numbers = Set(gone.map(\.number))
        remove { numbers.contains($0.number) }
    }

    /// Removes all of them, as the server has none.
    mutating func removeAll() { remove { _ in true } }

    private mutating func remove(where isGone: (Filter) -> Bool) {
        let count = all.count
        all.removeAll(where: isGone)
        if all.count != count { isSaved = false }
    }

    // MARK: Storing

    /// What is to be stored; nil when it is, or somebody else stores.
    mutating func beginSaving() -> [String]? {
        guard !isSaved, !isSaving else { return nil }
        (isSaved, isSaving) = (true, true)
        return all.map(\.text)
    }

    /// Notes that it is stored.
    mutating func endSaving() { isSaving = false }
}
