import MQTTWire
import WireCore

/// The filters that the server may still have and that have no listener: it is told until it has confirmed that.
package struct MQTTLeftFilters: Sendable {
    /// A filter that was left, perhaps not for the first time.
    package struct Filter: Hashable, Sendable {
        package let text: String
        /// Counts what is left.
        package let number: UInt64
    }

    /// Whether the store has the list.
    private enum Storage: Sendable {
        case saved
        case changed
        case saving
        /// The list has changed while it is saved.
        case savingChanged
    }

    /// In the order of leaving.
    package private(set) var all: [Filter] = []
    private var lastNumber: UInt64 = 0
    private var storage = Storage.saved

    /// - Parameter filters: The filters that an earlier process has left and stored.
    init(_ filters: [String]) {
        for filter in filters { _ = add(filter) }
        storage = .saved
    }

    /// Adds a filter.
    mutating func add(_ filter: String) -> Filter {
        remove(filter)
        lastNumber += 1
        let left = Filter(text: filter, number: lastNumber)
        all.append(left)
        noteChange()
        return left
    }

    /// Removes a filter that has a listener again.
    ///
    /// - Returns: Whether it was there.
    @discardableResult
    mutating func remove(_ filter: String) -> Bool {
        remove { $0.text.hasSameBytes(as: filter) }
    }

    /// Removes filters, unless they were left once more since.
    mutating func remove(_ gone: [Filter]) {
        let numbers = Set(gone.map(\.number))
        remove { numbers.contains($0.number) }
    }

    /// Those of some filters that were not confirmed meanwhile, and have no listener again.
    func present(among filters: [Filter]) -> [Filter] { all.filter(Set(filters).contains) }

    /// Whether one of them matches a topic.
    func matches(_ topic: String) -> Bool {
        guard !all.isEmpty else { return false }
        var trie = MQTTTopicTrie<Bool>()
        for filter in all {
            for pattern in MQTTRouter.patterns(of: filter.text) { trie[pattern] = true }
        }
        var isMatch = false
        trie.forEachMatch(of: topic) { _ in isMatch = true }
        return isMatch
    }

    /// Removes all of them, as the server has none.
    mutating func removeAll() { remove { _ in true } }

    @discardableResult
    private mutating func remove(where isGone: (Filter) -> Bool) -> Bool {
        let count = all.count
        all.removeAll(where: isGone)
        guard all.count != count else { return false }
        noteChange()
        return true
    }

    // MARK: Storing

    private mutating func noteChange() {
        switch storage {
        case .saved, .changed: storage = .changed
        case .saving, .savingChanged: storage = .savingChanged
        }
    }

    /// The list to be stored; nil when it is, or is being stored.
    mutating func beginSaving() -> [String]? {
        guard case .changed = storage else { return nil }
        storage = .saving
        return all.map(\.text)
    }

    /// Notes that the list is stored as it was.
    mutating func endSaving() {
        if case .savingChanged = storage { storage = .changed } else { storage = .saved }
    }
}
