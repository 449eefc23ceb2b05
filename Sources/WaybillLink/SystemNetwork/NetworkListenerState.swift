/// A listener of Network.framework: its start, decided by its reports, and its end.
///
/// | state | ready | waiting, failed, cancelled | time limit | close |
/// | --- | --- | --- | --- | --- |
/// | starting | → listening, with its port | → ended: fails | → ended: fails | → ended: fails |
/// | listening | nothing | → ended | nothing | → ended |
/// | ended | nothing | nothing | nothing | nothing |
package struct NetworkListenerState: Sendable {
    package enum Event: Hashable, Sendable {
        /// It listens on this port.
        case ready(port: UInt16)
        /// There is no network, or the port is taken.
        case waiting(LinkError)
        case failed(LinkError)
        case cancelled
        /// The time for its start is over.
        case timeLimit
        /// The caller closes it.
        case close
    }

    private enum State {
        case starting
        case listening
        case ended
    }

    private var state = State.starting
    /// The port, or the reason why it does not listen; nil before that is decided.
    package private(set) var outcome: Result<UInt16, LinkError>?

    package init() {}

    /// Whether new connections are accepted.
    package var accepts: Bool { state != .ended }

    /// Notes an event.
    ///
    /// - Returns: Whether the framework's listener must be cancelled now.
    package mutating func note(_ event: Event) -> Bool {
        switch (state, event) {
        case (.starting, .ready(let port)) where port > 0:
            state = .listening
            outcome = .success(port)
            return false
        case (.starting, .waiting(let error)), (.starting, .failed(let error)):
            outcome = .failure(error)
        case (.starting, .timeLimit): outcome = .failure(.timedOut)
        case (.starting, .ready), (.starting, .cancelled), (.starting, .close):
            outcome = .failure(.closed)
        case (.listening, .ready), (.listening, .timeLimit), (.ended, _): return false
        case (.listening, .waiting), (.listening, .failed), (.listening, .cancelled),
            (.listening, .close):
            break
        }
        state = .ended
        return true
    }
}
