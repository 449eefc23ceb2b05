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

    /// One that waits.
    private struct Waiting: Sendable {
        let call: any STOMPCall
        /// Where the request goes to: some servers name it in their refusal, and not the receipt.
        let destination: String?
    }

    private var calls: [UInt64: Waiting] = [:]
    /// Requests that were sent and withdrawn: the server has them all the same, so that they take places in the window until
    /// it answers or their time is up.
    private var withdrawn: Set<UInt64> = []
    /// The number of the last request that was sent; those beyond it wait for a place in the window.
    private var lastSent: UInt64 = 0
    /// How many requests were sent whose receipts have not come.
    package private(set) var inFlightCount = 0
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
        calls.sorted { $0.key < $1.key }.map(\.value.call)
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
    package mutating func add(
        _ call: any STOMPCall,
        to destination: String? = nil,
        deadline: WireInstant
    ) {
        let number = takeNumber()
        calls[number] = Waiting(call: call, destination: destination)
        numbers[ObjectIdentifier(call)] = number
        heap.append(Deadline(time: deadline, number: number))
        siftUp(heap.count - 1)
    }

    /// Notes that a request was sent; those are sent in the order of their numbers.
    package mutating func noteSent(_ number: UInt64) {
        lastSent = number
        if calls[number] != nil { inFlightCount += 1 }
    }

    /// Whether a call still waits for a receipt.
    package func isWaiting(_ number: UInt64) -> Bool { calls[number] != nil }

    /// Ends the wait for a receipt.
    /// - Returns: The call that waited; nil when none did. A call whose request was not sent waits on: such a receipt
    ///   answers nothing.
    package mutating func take(_ number: UInt64) -> (any STOMPCall)? {
        guard number <= lastSent else { return nil }
        if withdrawn.remove(number) != nil {
            inFlightCount -= 1
            removeAnswered()
        }
        guard let call = remove(number) else { return nil }
        removeAnswered()
        return call
    }

    private mutating func remove(_ number: UInt64) -> (any STOMPCall)? {
        guard let call = calls.removeValue(forKey: number)?.call else { return nil }
        numbers[ObjectIdentifier(call)] = nil
        if number <= lastSent { inFlightCount -= 1 }
        return call
    }

    /// Takes the calls whose requests were sent to one of some destinations, in the order of asking.
    package mutating func take(to isMeant: (String) -> Bool) -> [any STOMPCall] {
        let found = calls.filter { number, waiting in
            number <= lastSent && (waiting.destination.map(isMeant) ?? false)
        }
        return found.keys.sorted().compactMap { remove($0) }
    }

    /// Takes the calls whose time is up, in the order of their deadlines.
    package mutating func takeExpired(at now: WireInstant) -> [any STOMPCall] {
        var expired: [any STOMPCall] = []
        while let first = heap.first, first.time <= now {
            removeFirst()
            if withdrawn.remove(first.number) != nil { inFlightCount -= 1 }
            guard let call = remove(first.number) else { continue }
            expired.append(call)
        }
        removeAnswered()
        return expired
    }

    /// Forgets a call; its receipt, when it comes, is nobody's.
    /// - Complexity: O(1), now and then more.
    package mutating func forget(_ call: any STOMPCall) {
        guard let number = numbers[ObjectIdentifier(call)], remove(number) != nil else { return }
        if number <= lastSent {
            withdrawn.insert(number)
            inFlightCount += 1
        }
        removeAnswered()
    }

    /// Takes all calls, each group in the order of asking: those whose requests were sent, and the others.
    package mutating func takeAll() -> (sent: [any STOMPCall], unsent: [any STOMPCall]) {
        defer {
            calls = [:]
            numbers = [:]
            heap = []
            withdrawn = []
            inFlightCount = 0
        }
        let all = calls.sorted { $0.key < $1.key }
        let split = all.firstIndex { $0.key > lastSent } ?? all.endIndex
        return (all[..<split].map(\.value.call), all[split...].map(\.value.call))
    }

    // MARK: The heap

    /// Keeps an unanswered one at the top, and the heap not much larger than the table.
    private mutating func removeAnswered() {
        while let first = heap.first, !isOpen(first.number) { removeFirst() }
        guard heap.count > 64, heap.count > (calls.count + withdrawn.count) * 4 else { return }
        // A sorted array is a heap.
        heap = heap.filter { isOpen($0.number) }.sorted { isBefore($0, $1) }
    }

    private func isOpen(_ number: UInt64) -> Bool {
        calls[number] != nil || withdrawn.contains(number)
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
