/// The opening of a connection of Network.framework, decided by its reports.
///
/// The framework waits for a better network without a limit. So the attempt ends where waiting cannot help.
///
/// | state | waiting, final | waiting | ready | failed | cancelled | better path | preparing, viable | given up |
/// | --- | --- | --- | --- | --- | --- | --- | --- | --- |
/// | opening | → decided: fails | keeps the reason | → decided: succeeds | → decided: fails | → decided: fails | keeps it for the stream | nothing | → decided: fails, after a time-out with the reason for waiting |
/// | decided | nothing | nothing | nothing | nothing | nothing | nothing | nothing | nothing |
package struct NetworkAttemptState: Sendable {
    /// The next action.
    package enum Step: Hashable, Sendable {
        case nothing
        /// Hand over the stream.
        case succeed(hasBetterPath: Bool)
        case fail(LinkError)
    }

    private enum State {
        case opening
        case decided
    }

    private var state = State.opening
    /// The reason why the connection waits for a better network.
    private var hindrance: LinkError?
    private var hasBetterPath = false

    package init() {}

    /// Notes a report of the connection.
    ///
    /// Whether the connection is viable counts from `ready` on only: before that it never is.
    package mutating func note(_ report: NetworkReport) -> Step {
        guard state == .opening else { return .nothing }
        switch report {
        case .preparing, .viable: return .nothing
        case .betterPath(let isThere): hasBetterPath = isThere
        case .waiting(let error, isFinal: true): return fail(error)
        case .waiting(let error, isFinal: false): hindrance = error.inHandshake
        case .failed(let error): return fail(error)
        case .cancelled: return fail(.closed)
        case .ready:
            state = .decided
            return .succeed(hasBetterPath: hasBetterPath)
        }
        return .nothing
    }

    /// Notes that a timer or a cancelled task ends the attempt.
    package mutating func giveUp(_ error: LinkError) -> Step {
        guard state == .opening else { return .nothing }
        // The reason for waiting says more than the time-out.
        return fail(error == .timedOut ? hindrance ?? error : error)
    }

    private mutating func fail(_ error: LinkError) -> Step {
        state = .decided
        return .fail(error.inHandshake)
    }
}

extension LinkError {
    /// The same error; before the stream is secure, no data can be missing.
    fileprivate var inHandshake: LinkError { self == .truncated ? .tls(.closed) : self }
}
