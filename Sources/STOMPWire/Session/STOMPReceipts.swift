package import WireCore

/// Whoever waits for the outcome of a request: the core keeps it and gives it back with the outcome.
package protocol STOMPCall: AnyObject, Sendable {}

/// The receipts that were asked for and have not come, by their number.
///
/// Answers find their call by hashing. Deadlines stand in a heap; what was answered stays there until
/// it comes to the top or makes up most of the heap, so nothing is ever searched for.
package struct STOMPReceipts: Sendable {
    private struct Deadline: Sendable {
        let time: WireInstant
        let number: UInt64
    }

    private var calls: [UInt64: any STOMPCall] = [:]
    /// The other way round, for those who lose interest: thousands may at once.
    private var numbers: [ObjectIdentifier: UInt64] = [:]
    private var heap: [Deadline] = []

    /// The number of the next receipt to ask for.
    package private(set) var nextNumber: UInt64 = 1

    package init() {}

    /// The number of receipts that have not come.
    package var count: Int { calls.count }

    /// The number of deadlines that are kept, those of answered receipts included.
    package var deadlineCount: Int { heap.count }

    /// Who waits, in the order of asking.
    package var waiting: [any STOMPCall] {
        calls.sorted { $0.key < $1.key }.map(\.value)
    }

    /// When the next call has waited long enough; nil when none waits.
    package var earliestDeadline: WireInstant? { heap.first?.time }

    /// Takes the next number for a receipt that no call waits for.
    package mutating func takeNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    /// Remembers who waits for ``nextNumber``, and takes that number.
    /// - Complexity: O(log n).
    package mutating func add(_ call: any STOMPCall, deadline: WireInstant) {
        let number = takeNumber()
        calls[number] = call
        numbers[ObjectIdentifier(call)] = number
        heap.append(Deadline(time: deadline, number: number))
        siftUp(heap.count - 1)
    }

    /// Ends the wait for a receipt.
    /// - Returns: Who waited; nil when nobody did.
    package mutating func take(_ number: UInt64) -> (any STOMPCall)? {
        guard let call = calls.removeValue(forKey: number) else { return nil }
        numbers[ObjectIdentifier(call)] = nil
        removeAnswered()
        return call
    }

    /// Takes the calls whose time is up, in the order of their deadlines.
    package mutating func takeExpired(at now: WireInstant) -> [any STOMPCall] {
        var expired: [any STOMPCall] = []
        while let first = heap.first, first.time <= now {
            removeFirst()
            guard let call = calls.removeValue(forKey: first.number) else { continue }
            numbers[ObjectIdentifier(call)] = nil
            expired.append(call)
        }
        removeAnswered()
        return expired
    }

    /// Forgets a call; its receipt, when it comes, is nobody's.
    /// - Complexity: O(1), now and then more.
    package mutating func forget(_ call: any STOMPCall) {
        guard let number = numbers.removeValue(forKey: ObjectIdentifier(call)) else { return }
        calls[number] = nil
        removeAnswered()
    }

    /// Takes all calls, in the order of asking.
    package mutating func takeAll() -> [any STOMPCall] {
        defer {
            calls = [:]
            numbers = [:]
            heap = []
        }
        return waiting
    }

    // MARK: The heap

    /// Keeps an unanswered one at the top, and the heap not much larger than the table.
    private mutating func removeAnswered() {
        while let first = heap.first, calls[first.number] == nil { removeFirst() }
        guard heap.count > 64, heap.count > calls.count * 4 else { return }
        // A sorted array is a heap.
        heap = heap.filter { calls[$0.number] != nil }.sorted { isBefore($0, $1) }
    }

    private func isBefore(_ one: Deadline, _ other: Deadline) -> Bool {
        one.time == other.time ? one.number < other.number : one.time < other.time
    }

    private mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        siftDown()
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0, isBefore(heap[index], heap[(index - 1) / 2]) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func siftDown() {
        var index = 0
        while true {
            var child = 2 * index + 1
            guard child < heap.count else { return }
            if child + 1 < heap.count, isBefore(heap[child + 1], heap[child]) { child += 1 }
            guard isBefore(heap[child], heap[index]) else { return }
            heap.swapAt(index, child)
            index = child
        }
    }
}
