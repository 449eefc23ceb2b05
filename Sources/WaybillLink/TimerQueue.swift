package import WireCore

/// Timers in the order of their deadlines.
package struct TimerQueue {
    private var heap = DeadlineHeap()
    private var actions: [UInt64: @Sendable () -> Void] = [:]
    private var lastToken: UInt64 = 0

    package init() {}

    /// The number of waiting timers.
    package var count: Int { actions.count }

    /// When the next timer is due.
    package var nextDeadline: WireInstant? { heap.first?.time }

    /// Adds a timer.
    /// - Returns: Its token, which no other timer of this queue has.
    package mutating func add(at deadline: WireInstant, _ action: @escaping @Sendable () -> Void)
        -> UInt64
    {
        let token = makeToken()
        actions[token] = action
        heap.add(token, at: deadline)
        return token
    }

    /// Makes a token without a timer.
    mutating func makeToken() -> UInt64 {
        lastToken += 1
        return lastToken
    }

    /// Removes a timer.
    /// - Returns: False when its action was taken before.
    @discardableResult
    package mutating func cancel(_ token: UInt64) -> Bool {
        guard actions.removeValue(forKey: token) != nil else { return false }
        removeCancelled()
        return true
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
        guard let first = heap.first, first.time <= now else { return nil }
        heap.removeFirst()
        removeCancelled()
        return first.number
    }

    private mutating func removeCancelled() {
        heap.removeClosed(openCount: actions.count) { actions[$0] != nil }
    }
}
