public import WireCore

/// Tells the time and calls back at a given time: the only clock that a link knows.
///
/// ``LinkEnvironment/clock`` is the one to use. A test puts a manual clock in its place. A timer that is no longer needed has
/// to be cancelled: on Linux the process keeps its thread for as long as one is set.
@usableFromInline
package protocol TimerSource: AnyObject, Sendable {
    /// The current time; it may lag by a few milliseconds, but never runs ahead or backwards.
    var now: WireInstant { get }

    /// The exact current time; reading it may take about 25 ns, where ``now`` takes a few.
    var preciseNow: WireInstant { get }

    /// Calls `action` once, at or after the deadline.
    ///
    /// - Returns: A token for ``cancelTimer(_:)``, never zero.
    func scheduleTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64

    /// Removes a timer. The action of one that fires at this moment may still be called.
    func cancelTimer(_ token: UInt64)
}

extension TimerSource {
    /// Returns ``now``: most clocks have no other.
    package var preciseNow: WireInstant { now }
}
