/// Determines what a change of the network's path means for a connection of Network.framework.
///
/// The framework keeps a connection whose path is gone. It reports that the connection is not viable, and does nothing
/// else until the path comes back. After a change from Wi-Fi to a cellular network the path never comes back.
///
/// | state | not viable | viable | a better path | the grace period ends |
/// | --- | --- | --- | --- | --- |
/// | viable | wait for the grace period; lost if there is a better path | nothing | nothing: a working connection is kept | nothing |
/// | not viable | nothing | viable again | lost: a new connection has a path | lost |
/// | lost | nothing | nothing | nothing | nothing |
package struct NetworkViability: Sendable {
    /// The next action.
    package enum Step: Hashable, Sendable {
        case nothing
        /// Call ``graceDidEnd(_:)`` with this number after ``NetworkViability/grace``.
        case wait(Int)
        case fail
    }

    private enum State {
        case viable
        /// Within the grace period with this number.
        case notViable(Int)
        case lost
    }

    /// The time without a path after which the connection counts as lost: 3 seconds.
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

    /// Notes the end of a grace period; an outdated number has no effect.
    package mutating func graceDidEnd(_ number: Int) -> Step {
        guard case .notViable(number) = state else { return .nothing }
        return lose()
    }

    private mutating func lose() -> Step {
        state = .lost
        return .fail
    }
}
