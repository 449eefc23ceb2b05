package import WireCore

/// Deadlines in order: a binary heap that removes cancelled timers lazily.
package struct TimerQueue {
    private struct Entry {
        var deadline: WireInstant
        var token: UInt64

        func isBefore(_ other: Entry) -> Bool {
            (deadline, token) < (other.deadline, other.token)
        }
    }

    private var heap: [Entry] = []
    private var actions: [UInt64: @Sendable () -> Void] = [:]
    private var lastToken: UInt64 = 0

    package init() {}

    /// The number of waiting timers.
    package var count: Int { actions.count }

    /// The deadline of the next timer.
    package var nextDeadline: WireInstant? {
        mutating get {
            while let first = heap.first, actions[first.token] == nil { removeFirst() }
            return heap.first?.deadline
        }
    }

    package mutating func add(at deadline: WireInstant, _ action: @escaping @Sendable () -> Void)
        -> UInt64
    {
        lastToken += 1
        actions[lastToken] = action
        heap.append(Entry(deadline: deadline, token: lastToken))
        siftUp(from: heap.count - 1)
        return lastToken
    }

    /// Removes a timer.
    package mutating func cancel(_ token: UInt64) {
        actions[token] = nil
        // Cancelled entries with late deadlines must not accumulate in a busy program.
        guard heap.count > 64, heap.count > 4 * actions.count else { return }
        let live = actions
        heap.removeAll { live[$0.token] == nil }
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(from: index) }
    }

    /// Takes the next action that is due.
    package mutating func takeDue(at now: WireInstant) -> (@Sendable () -> Void)? {
        takeDueToken(at: now).flatMap { take($0) }
    }

    /// Takes the tokens of all due timers, the earliest first.
    ///
    /// The actions stay until ``take(_:)``, so that one action can still cancel another. A timer that is added
    /// meanwhile is not included, however early its deadline is.
    package mutating func takeDueTokens(at now: WireInstant) -> [UInt64] {
        var tokens: [UInt64] = []
        while let token = takeDueToken(at: now) { tokens.append(token) }
        return tokens
    }

    /// Takes the action of a timer; nil if the timer was cancelled.
    package mutating func take(_ token: UInt64) -> (@Sendable () -> Void)? {
        actions.removeValue(forKey: token)
    }

    private mutating func takeDueToken(at now: WireInstant) -> UInt64? {
        guard let deadline = nextDeadline, deadline <= now, let first = heap.first else {
            return nil
        }
        removeFirst()
        return first.token
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        siftDown(from: 0)
    }

    private mutating func siftUp(from start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(from start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].isBefore(heap[least]) {
                least = child
            }
            guard least != parent else { return }
            heap.swapAt(least, parent)
            parent = least
        }
    }
}
