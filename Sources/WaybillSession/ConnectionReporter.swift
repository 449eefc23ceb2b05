import Waybill
import WireCore

/// Reports the events of a transport's connections to observers.
///
/// There is one connection at a time.
final class ConnectionReporter: Sendable {
    /// An attempt to connect to one host.
    struct Entry: Sendable {
        let host: String
        /// The number of the attempt, from 1.
        let attempt: Int
        let begun: ContinuousClock.Instant
    }

    /// The states, for observers.
    let states = ConnectionStateSource()
    private let events: TransportEventSource
    private struct State: Sendable {
        /// The host of the current connection, and the time of its acceptance.
        var connection: (host: String, since: ContinuousClock.Instant)?
        /// The number of accepted connections.
        var count = 0
    }

    private let state = Locked(State())

    /// - Parameter events: Receives the events.
    init(_ events: TransportEventSource) {
        self.events = events
    }

    /// The number of connections that a server has accepted.
    var connectionCount: Int { state.withLock { $0.count } }

    /// Reports the start of an attempt.
    func noteConnecting(to host: String, attempt: Int) -> Entry {
        let entry = Entry(host: host, attempt: attempt, begun: .now)
        events.report(.connecting(to: host, attempt: attempt))
        return entry
    }

    /// Reports that the peer has accepted.
    ///
    /// The state of the previous connection is restored next.
    func noteConnected(_ entry: Entry, isResumed: Bool?) {
        state.withLock { state in
            state.connection = (entry.host, .now)
            state.count += 1
        }
        events.report(
            .connected(
                to: entry.host,
                since: entry.begun,
                attempt: entry.attempt,
                isResumed: isResumed
            )
        )
    }

    /// Reports the end of a failed attempt, before or after the peer had accepted.
    ///
    /// - Parameters:
    ///   - entry: The attempt.
    ///   - error: The error; nil if this side stopped the attempt.
    ///   - reason: The reason for which this side stopped the attempt.
    func noteEnd(of entry: Entry, _ error: WaybillError?, stoppedBy reason: WaybillError) {
        guard state.withLock({ $0.connection == nil }) else { return noteDisconnected(error) }
        events.report(
            .connectionFailed(
                to: entry.host,
                since: entry.begun,
                attempt: entry.attempt,
                error: error ?? reason
            )
        )
    }

    /// Reports a new state of the connection.
    ///
    /// Called with the lock of the life cycle held.
    func note(_ change: ConnectionChange) {
        switch change {
        case .connecting(let attempt): states.report(.connecting(attempt: attempt))
        case .connected: states.report(.connected)
        case .ended(let cause): noteDisconnected(cause)
        case .disconnected(let cause): states.report(.disconnected(cause: cause))
        case .waiting(let delay, let attempt, let cause):
            // The end of a pause is unknown. A wait of some years stands for it.
            let longest = Duration.seconds(10 * 365 * 86_400)
            let instant = ContinuousClock.now + min(delay ?? longest, longest)
            events.report(.waiting(until: instant, attempt: attempt, cause: cause))
            states.report(delay.map { .waiting(for: $0, cause: cause) } ?? .paused)
        }
    }

    private func noteDisconnected(_ cause: WaybillError?) {
        guard let (host, since) = state.withLock({ $0.connection.take() }) else { return }
        events.report(.disconnected(from: host, since: since, cause: cause))
    }
}
