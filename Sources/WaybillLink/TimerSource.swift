public import WireCore

/// The current time, and calls at given times: the link's only clock.
///
/// The event loop implements it; tests use a manual clock.
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

    /// Removes a timer; a timer that is firing at this moment may still call its action.
    func cancelTimer(_ token: UInt64)

    /// Releases the resources that keep the clock running, when its owner no longer needs it.
    func invalidate()
}

extension TimerSource {
    /// Returns ``now``: most clocks have no other.
    package var preciseNow: WireInstant { now }

    package func invalidate() {}
}
