import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The state of all streams of a transport as one: the best that any of them is in.
final class SSEStates: Sendable {
    private struct State: Sendable {
        /// What each stream that lives has reported last.
        var streams: [ObjectIdentifier: ConnectionState] = [:]
    }

    let source = ConnectionStateSource()
    private let state = Locked(State())

    /// Notes the state of a stream, and reports it if it is the best, and news.
    func report(_ new: ConnectionState, of stream: SSEStream) {
        state.withLock { state in
            let before = Self.best(state.streams.values)
            state.streams[ObjectIdentifier(stream)] = new
            let after = Self.best(state.streams.values)
            // One more that is open changes nothing; another attempt, or a longer wait, does.
            let isNews = Self.rank(new) == Self.rank(after) && Self.rank(new) != Self.connectedRank
            if Self.rank(before) != Self.rank(after) {
                source.report(Self.rank(new) == Self.rank(after) ? new : after ?? new)
            } else if isNews {
                source.report(new)
            }
        }
    }

    /// Forgets a stream that is over; the last one's cause is the transport's.
    func remove(_ stream: SSEStream, _ cause: WaybillError?) {
        state.withLock { state in
            let before = Self.best(state.streams.values)
            state.streams[ObjectIdentifier(stream)] = nil
            if let after = Self.best(state.streams.values) {
                if Self.rank(before) != Self.rank(after) { source.report(after) }
            } else {
                reportDisconnected(cause)
            }
        }
    }

    /// Reports the end when no stream is left that would.
    func end() {
        state.withLock { state in
            if state.streams.isEmpty { reportDisconnected(nil) }
        }
    }

    /// Reports the end once, with what it came from; called with the lock held.
    private func reportDisconnected(_ cause: WaybillError?) {
        if case .disconnected = source.current { return }
        source.report(.disconnected(cause: cause))
    }

    private static let connectedRank = 3

    private static func best(_ states: some Sequence<ConnectionState>) -> ConnectionState? {
        states.max { rank($0) < rank($1) }
    }

    private static func rank(_ state: ConnectionState?) -> Int {
        switch state {
        case .connected: connectedRank
        case .connecting: 2
        case .waiting: 1
        case .idle, .disconnected, nil: 0
        }
    }
}
