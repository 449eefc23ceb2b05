public import WireCore

/// Tells the time and calls back at a given one: the only clock a link knows.
///
/// The event loop is one; a test puts a manual one in its place.
@usableFromInline
package protocol TimerSource: AnyObject, Sendable {
    /// The present. It may lag behind by a few milliseconds, but never runs ahead or backwards.
    var now: WireInstant { get }

    /// The present, exact. It may cost some 25 ns to read, where ``now`` costs a few.
    var preciseNow: WireInstant { get }

    /// Calls `action` once, at or after the deadline.
    /// - Returns: A token for ``cancelTimer(_:)``, never zero.
    func scheduleTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64

    /// Forgets a timer. One that is firing at this moment may still be heard.
    func cancelTimer(_ token: UInt64)

    /// Lets go of what keeps the clock running, when whoever made it is done with it.
    func invalidate()
}

extension TimerSource {
    /// ``now``: most clocks have no other.
    package var preciseNow: WireInstant { now }

    package func invalidate() {}
}
