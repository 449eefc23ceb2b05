/// Decides what a change of the network's path means for a connection of Network.framework.
///
/// The framework keeps a connection whose path is gone: it tells that the connection is not viable, and nothing else
/// happens until the path comes back. From Wi-Fi to a cellular network the path never comes back.
///
/// | state | not viable | viable | a better path | the grace period ends |
/// | --- | --- | --- | --- | --- |
/// | viable | wait for the grace period | nothing | nothing: what works is kept | nothing |
/// | not viable | nothing | viable again | lost: a new connection has a path | lost |
/// | lost | nothing | nothing | nothing | nothing |
package struct NetworkViability: Sendable {
    /// What follows.
    package enum Step: Hashable, Sendable {
        case nothing
        /// Call ``graceDidEnd(_:)`` with this number after ``NetworkViability/grace``.
        case wait(Int)
        /// The connection is lost.
        case fail
    }

    private enum State {
        case viable
        /// In the grace period of this number.
        case notViable(Int)
        case lost
    }

    /// How long a path may be gone before the connection counts as lost: 3 seconds.
    package static let grace = Duration.seconds(3)

    private var state = State.viable
    private var lastGrace = 0
    private var hasBetterPath = false

    package init() {}

    /// Notes whether data can be sent and received (`NWConnection.viabilityUpdateHandler`).
    package mutating func note(isViable: Bool) -> Step {
        switch state {
        case .viable where !isViable:
            if hasBetterPath { return lose() }
            lastGrace += 1
            state = .notViable(lastGrace)
            return .wait(lastGrace)
        case .notViable where isViable:
            state = .viable
            return .nothing
        case .viable, .notViable, .lost: return .nothing
        }
    }

    /// Notes whether a new connection would have a better path (`NWConnection.betterPathUpdateHandler`).
    package mutating func note(hasBetterPath: Bool) -> Step {
        self.hasBetterPath = hasBetterPath
        guard hasBetterPath, case .notViable = state else { return .nothing }
        return lose()
    }

    /// Notes that a grace period is over; one that is not the present one changes nothing.
    package mutating func graceDidEnd(_ number: Int) -> Step {
        guard case .notViable(number) = state else { return .nothing }
        return lose()
    }

    private mutating func lose() -> Step {
        state = .lost
        return .fail
    }
}
