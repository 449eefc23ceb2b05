public import WireCore

/// The one timer of a driver, which is set for the earliest deadline.
@usableFromInline
package struct DriverTimer: Sendable {
    /// The deadline for which the timer is set or being set.
    @usableFromInline package private(set) var deadline: WireInstant?
    private var token: UInt64?

    init() {}

    /// Whether the timer fires at or before a deadline.
    @inlinable
    package func covers(_ wanted: WireInstant) -> Bool {
        deadline.map { $0 <= wanted } ?? false
    }

    /// Makes the caller set a timer for a deadline, unless an earlier one is set.
    mutating func begin(_ wanted: WireInstant) -> Bool {
        guard !covers(wanted) else { return false }
        deadline = wanted
        return true
    }

    /// Notes the timer for a deadline.
    ///
    /// - Returns: A timer to cancel.
    mutating func note(_ token: UInt64, for deadline: WireInstant) -> UInt64? {
        guard self.deadline == deadline else { return token }
        defer { self.token = token }
        return self.token
    }

    mutating func noteFired(_ deadline: WireInstant) {
        if self.deadline == deadline { _ = end() }
    }

    /// Ends the timing.
    ///
    /// - Returns: The timer to cancel.
    mutating func end() -> UInt64? {
        deadline = nil
        return token.take()
    }
}
