import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The state of all streams of a transport as one: the best that any of them is in.
final class SSEStates: Sendable {
    private struct State: Sendable {
        /// What each stream that lives has reported last, in the order of their first reports.
        private var streams: [(stream: ObjectIdentifier, state: ConnectionState)] = []

        var isEmpty: Bool { streams.isEmpty }

        /// The best state; of several that are as good, that of the stream that came first.
        var best: ConnectionState? {
            streams.max { SSEStates.rank($0.state) < SSEStates.rank($1.state) }?.state
        }

        mutating func note(_ new: ConnectionState, of stream: SSEStream) {
            let identifier = ObjectIdentifier(stream)
            if let index = streams.firstIndex(where: { $0.stream == identifier }) {
                streams[index].state = new
            } else {
                streams.append((identifier, new))
            }
        }

        mutating func remove(_ stream: SSEStream) {
            streams.removeAll { $0.stream == ObjectIdentifier(stream) }
        }
    }

    let source = ConnectionStateSource()
    private let state = Locked(State())

    /// Notes the state of a stream, and reports it if it is the best, and news.
    func report(_ new: ConnectionState, of stream: SSEStream) {
        state.withLock { state in
            let before = state.best
            state.note(new, of: stream)
            let after = state.best
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
            let before = state.best
            state.remove(stream)
            if let after = state.best {
                if Self.rank(before) != Self.rank(after) { source.report(after) }
            } else {
                reportDisconnected(cause)
            }
        }
    }

    /// Reports the end when no stream is left that would.
    func end() {
        state.withLock { state in
            if state.isEmpty { reportDisconnected(nil) }
        }
    }

    /// Reports the end once, with what it came from; called with the lock held.
    private func reportDisconnected(_ cause: WaybillError?) {
        if case .disconnected = source.current { return }
        source.report(.disconnected(cause: cause))
    }

    private static let connectedRank = 3

    private static func rank(_ state: ConnectionState?) -> Int {
        switch state {
        case .connected: connectedRank
        case .connecting: 2
        case .waiting: 1
        case .idle, .disconnected, nil: 0
        }
    }
}
