import WireCore

/// How things stand with a connection.
public enum ConnectionState: Sendable {
    /// Nothing was asked for yet.
    case idle
    /// A connection is being made; the attempt counts from 1.
    case connecting(attempt: Int)
    /// The peer has accepted the connection.
    case connected
    /// The connection was lost, and the next attempt comes after a while.
    case waiting(until: ContinuousClock.Instant, cause: WaybillError)
    /// The connection is over; the cause is nil when this side ended it.
    case disconnected(cause: WaybillError?)
}

extension ConnectionState {
    /// Whether requests go over a connection at once.
    public var isConnected: Bool {
        if case .connected = self { true } else { false }
    }
}

extension ConnectionState: Equatable {
    /// Compares the states, their attempts and times, and the code and message of their causes.
    public static func == (left: ConnectionState, right: ConnectionState) -> Bool {
        func isSame(_ one: WaybillError?, _ other: WaybillError?) -> Bool {
            one?.code == other?.code && one?.message == other?.message
                && one?.peerReason == other?.peerReason
        }
        switch (left, right) {
        case (.idle, .idle), (.connected, .connected): return true
        case (.connecting(let one), .connecting(let other)): return one == other
        case (.waiting(let one, let oneCause), .waiting(let other, let otherCause)):
            return one == other && isSame(oneCause, otherCause)
        case (.disconnected(let one), .disconnected(let other)): return isSame(one, other)
        default: return false
        }
    }
}

extension ConnectionState: CustomStringConvertible {
    /// The state in a word, with its attempt or cause.
    public var description: String {
        switch self {
        case .idle: "idle"
        case .connecting(let attempt): "connecting (attempt \(attempt))"
        case .connected: "connected"
        case .waiting(_, let cause): "waiting (\(cause))"
        case .disconnected(let cause?): "disconnected (\(cause))"
        case .disconnected(nil): "disconnected"
        }
    }
}

/// The states of a connection: the present one first, then each change once, in order.
///
/// Every iteration is an observer of its own. One that lags more than 64 changes behind misses the
/// oldest of them.
public struct ConnectionStates: AsyncSequence, Sendable {
    private let source: ConnectionStateSource

    init(_ source: ConnectionStateSource) {
        self.source = source
    }

    /// The present state.
    public var current: ConnectionState { source.current }

    /// Begins to observe.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(observation: source.observe())
    }

    /// One observer.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let observation: ConnectionStateSource.Observation
        private var batch: ArraySlice<ConnectionState> = []

        init(observation: ConnectionStateSource.Observation) {
            self.observation = observation
        }

        /// The next state; nil when the task is cancelled.
        public mutating func next() async -> ConnectionState? {
            while batch.isEmpty {
                guard let more = try? await observation.mailbox.take() else { return nil }
                batch = more[...]
            }
            return batch.popFirst()
        }

        /// As ``next()``, on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> ConnectionState?
        {
            await next()
        }
    }
}

/// Where a transport reports its states.
public final class ConnectionStateSource: Sendable {
    /// One observer's queue, which leaves the source when it goes.
    final class Observation: Sendable {
        let mailbox = Mailbox<ConnectionState>()
        private let source: ConnectionStateSource
        private let identifier: UInt64

        init(source: ConnectionStateSource, identifier: UInt64) {
            self.source = source
            self.identifier = identifier
        }

        deinit {
            source.leave(identifier)
        }
    }

    private struct State: Sendable {
        var current = ConnectionState.idle
        /// In the order in which they were added.
        var mailboxes: [(identifier: UInt64, mailbox: Mailbox<ConnectionState>)] = []
        var lastIdentifier: UInt64 = 0
    }

    private static let lagLimit = 64
    private let state = Locked(State())

    /// Begins as idle.
    public init() {}

    /// What observers iterate over.
    public var states: ConnectionStates { ConnectionStates(self) }

    /// The present state.
    public var current: ConnectionState { state.withLock { $0.current } }

    /// Reports a change.
    ///
    /// Calls made one after another are observed in that order.
    public func report(_ new: ConnectionState) {
        // Appending within the lock keeps one order for all; waking happens there, too, which only
        // schedules the waiting task.
        state.withLock { state in
            state.current = new
            for (_, mailbox) in state.mailboxes {
                mailbox.append { waiting in
                    if waiting.count >= Self.lagLimit { waiting.removeFirst() }
                    waiting.append(new)
                }
            }
        }
    }

    func observe() -> Observation {
        state.withLock { state in
            state.lastIdentifier += 1
            let observation = Observation(source: self, identifier: state.lastIdentifier)
            let current = state.current
            observation.mailbox.append { $0.append(current) }
            state.mailboxes.append((state.lastIdentifier, observation.mailbox))
            return observation
        }
    }

    private func leave(_ identifier: UInt64) {
        state.withLock { $0.mailboxes.removeAll { $0.identifier == identifier } }
    }
}
