import WireCore

/// A record of numbered messages, their calls and their arrivals, in two bytes for each message.
///
/// The sending side reports ``began(_:)`` and then ``succeeded(_:)`` or ``failed(_:)`` for each call that sends a
/// number. The receiving side reports ``arrived(_:)`` for each message. Another call may send the same number again.
package final class NumberedLedger: Sendable {
    private struct State: Sendable {
        /// For each number: the count of open calls in the lower bits, and two bits for "a call has begun" and "a
        /// call has succeeded".
        var calls: [UInt8]
        /// How many times each number has arrived; 255 also stands for more.
        var arrivals: [UInt8]
        /// The highest number that has arrived in each lane.
        var highest: [Int]
        var verdict = Verdict()
        /// The tasks that wait for a number.
        var waiters: [(number: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var isFinished = false
    }

    /// The counts over all numbers.
    package struct Verdict: Sendable {
        /// Calls that were begun.
        package internal(set) var calls = 0
        /// Calls that have succeeded.
        package internal(set) var successes = 0
        /// Calls that have failed. Their message may have arrived or not.
        package internal(set) var failures = 0
        /// The reasons of the failures and how often each came.
        package internal(set) var reasons: [String: Int] = [:]
        /// Calls that have not ended.
        package internal(set) var unresolved = 0
        /// Calls that have ended more than once, or without having begun.
        package internal(set) var resolvedTwice = 0
        /// Different numbers that have arrived.
        package internal(set) var arrived = 0
        /// Numbers whose call has succeeded and that have not arrived.
        package internal(set) var lost = 0
        /// Numbers that have arrived more than once.
        package internal(set) var twice = 0
        /// Arrivals beyond the first of a number.
        package internal(set) var repeats = 0
        /// Numbers that arrived for the first time after a higher number of their lane.
        package internal(set) var outOfOrder = 0
        /// Messages without a number, or with one that no call has sent.
        package internal(set) var unknown = 0

        package init() {}

        /// Adds the counts of another run.
        package static func += (sum: inout Self, other: Self) {
            sum.reasons.merge(other.reasons, uniquingKeysWith: +)
            for field in fields { sum[keyPath: field] += other[keyPath: field] }
        }

        private static var fields: [WritableKeyPath<Self, Int>] {
            [
                \.calls, \.successes, \.failures, \.unresolved, \.resolvedTwice, \.arrived, \.lost,
                \.twice, \.repeats, \.outOfOrder, \.unknown,
            ]
        }

        package var description: String {
            let why = reasons.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            return """
                lost \(lost), twice \(twice), out of order \(outOfOrder), unknown \(unknown); \
                arrived \(arrived), repeats \(repeats); calls \(calls), succeeded \(successes), \
                failed \(failures) (\(why.joined(separator: ", "))), unresolved \(unresolved), \
                resolved twice \(resolvedTwice)
                """
        }
    }

    private static let success: UInt8 = 0x80
    private static let beginning: UInt8 = 0x40
    private static let openCalls: UInt8 = 0x3F

    /// The count of numbers, which start at zero.
    package let count: Int
    private let lanes: Int
    private let state: Locked<State>

    /// - Parameters:
    ///   - count: The count of numbers.
    ///   - lanes: The number of senders. Each sends the numbers with one remainder, in order.
    package init(count: Int, lanes: Int = 1) {
        self.count = count
        self.lanes = max(lanes, 1)
        state = Locked(
            State(
                calls: Array(repeating: 0, count: count),
                arrivals: Array(repeating: 0, count: count),
                highest: Array(repeating: -1, count: max(lanes, 1))
            )
        )
    }

    // MARK: Sending

    /// Records that a call begins to send the number.
    package func began(_ number: Int) {
        state.withLock { state in
            state.calls[number] = state.calls[number] + 1 | Self.beginning
            state.verdict.calls += 1
        }
    }

    /// Records that the call has succeeded: the message is acknowledged.
    package func succeeded(_ number: Int) {
        state.withLock { state in
            guard end(number, &state) else { return }
            state.calls[number] |= Self.success
            state.verdict.successes += 1
        }
    }

    /// Records that the call has failed.
    package func failed(_ number: Int, _ reason: String = "unknown") {
        state.withLock { state in
            guard end(number, &state) else { return }
            state.verdict.failures += 1
            state.verdict.reasons[reason, default: 0] += 1
        }
    }

    private func end(_ number: Int, _ state: inout State) -> Bool {
        guard state.calls[number] & Self.openCalls > 0 else {
            state.verdict.resolvedTwice += 1
            return false
        }
        state.calls[number] -= 1
        return true
    }

    // MARK: Arriving

    /// Records a message.
    ///
    /// - Parameter number: The number in the message; nil when it contains none.
    package func arrived(_ number: Int?) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard let number, (0..<count).contains(number), state.calls[number] > 0 else {
                state.verdict.unknown += 1
                return []
            }
            let times = state.arrivals[number]
            if times > 0 { state.verdict.repeats += 1 }
            if times == 1 { state.verdict.twice += 1 }
            if times < .max { state.arrivals[number] = times + 1 }
            guard times == 0 else { return [] }
            state.verdict.arrived += 1
            let lane = number % lanes
            if number < state.highest[lane] {
                state.verdict.outOfOrder += 1
            } else {
                state.highest[lane] = number
            }
            let due = state.waiters.filter { $0.number <= number }
            state.waiters.removeAll { $0.number <= number }
            return due.map(\.continuation)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Ends the run: resumes all tasks that wait for a number.
    package func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume() }
    }

    /// Waits until this number or a higher one has arrived. This keeps senders from running ahead without limit.
    package func reached(_ number: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                let highest = state.highest.max() ?? -1
                if state.isFinished || highest >= number { return true }
                state.waiters.append((number, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// The count of different numbers that have arrived so far.
    package var arrivedCount: Int { state.withLock { $0.verdict.arrived } }

    // MARK: Judging

    /// The counts so far.
    ///
    /// - Complexity: O(n).
    package var verdict: Verdict {
        state.withLock { state in
            var verdict = state.verdict
            for number in 0..<count {
                let calls = state.calls[number]
                verdict.unresolved += Int(calls & Self.openCalls)
                if calls & Self.success != 0, state.arrivals[number] == 0 { verdict.lost += 1 }
            }
            return verdict
        }
    }
}
