/// Deadlines by number, the earliest first; of equal ones the smaller number first.
///
/// A binary heap. An entry that was closed elsewhere stays until it comes to the top or until closed entries make up most of
/// the heap, so that nothing is ever searched for.
package struct DeadlineHeap: Sendable {
    package struct Entry: Sendable {
        package let time: WireInstant
        package let number: UInt64

        fileprivate static func < (left: Entry, right: Entry) -> Bool {
            (left.time, left.number) < (right.time, right.number)
        }
    }

    private var entries: [Entry] = []

    package init() {}

    /// The number of entries, closed ones included.
    package var count: Int { entries.count }

    /// The earliest entry.
    package var first: Entry? { entries.first }

    /// Adds an entry.
    /// - Complexity: O(log n).
    package mutating func add(_ number: UInt64, at time: WireInstant) {
        entries.append(Entry(time: time, number: number))
        siftUp()
    }

    /// Removes the earliest entry.
    /// - Complexity: O(log n).
    package mutating func removeFirst() {
        guard let last = entries.popLast(), !entries.isEmpty else { return }
        entries[0] = last
        siftDown()
    }

    /// Removes closed entries from the top, and all of them when they make up three quarters of the heap.
    ///
    /// - Parameters:
    ///   - openCount: The number of open entries.
    ///   - isOpen: Whether an entry is open.
    package mutating func removeClosed(openCount: Int, _ isOpen: (UInt64) -> Bool) {
        while let first, !isOpen(first.number) { removeFirst() }
        guard entries.count > 64, entries.count > 4 * openCount else { return }
        // A sorted array is a heap.
        entries = entries.filter { isOpen($0.number) }.sorted { $0 < $1 }
    }

    private mutating func siftUp() {
        var index = entries.count - 1
        while index > 0, entries[index] < entries[(index - 1) / 2] {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func siftDown() {
        var index = 0
        while true {
            var child = 2 * index + 1
            guard child < entries.count else { return }
            if child + 1 < entries.count, entries[child + 1] < entries[child] { child += 1 }
            guard entries[child] < entries[index] else { return }
            entries.swapAt(index, child)
            index = child
        }
    }
}
