import WireCore

/// The state of a connection.
public enum ConnectionState: Sendable {
    /// No connection was requested yet.
    case idle
    /// A connection is being opened; the attempt counts from 1.
    case connecting(attempt: Int)
    /// The peer has accepted the connection.
    case connected
    /// The connection was lost or could not be made, and the transport waits before the next attempt.
    ///
    /// The duration is that of the whole wait, from this state on. After ``disconnected(cause:)`` a request waits for the
    /// rest of the policy's interval.
    case waiting(for: Duration, cause: WaybillError)
    /// The connection is closed, and is made again at the end of the pause.
    case paused
    /// The connection ended; the cause is nil when this side ended it.
    case disconnected(cause: WaybillError?)
}

extension ConnectionState {
    /// Whether requests can be sent at once.
    public var isConnected: Bool {
        if case .connected = self { true } else { false }
    }
}

extension ConnectionState: Equatable {
    /// Compares the states with their attempts and times, and the code, message and peer's reason of their causes.
    public static func == (left: ConnectionState, right: ConnectionState) -> Bool {
        func isSame(_ one: WaybillError?, _ other: WaybillError?) -> Bool {
            one?.code == other?.code && one?.message == other?.message
                && one?.peerReason == other?.peerReason
        }
        switch (left, right) {
        case (.idle, .idle), (.connected, .connected), (.paused, .paused): return true
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
        case .paused: "paused"
        case .disconnected(let cause?): "disconnected (\(cause))"
        case .disconnected(nil): "disconnected"
        }
    }
}

/// The states of a connection: the present state first, then each change once, in order.
///
/// The sequence ends when the transport was shut down.
///
/// Every iteration observes separately. An iteration that lags more than 64 changes behind misses the oldest of them.
public struct ConnectionStates: AsyncSequence, Sendable {
    private let source: ConnectionStateSource

    init(_ source: ConnectionStateSource) {
        self.source = source
    }

    /// The present state.
    public var current: ConnectionState { source.current }

    /// Starts to observe.
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

        /// Returns the next state; nil after the last one, and when the task is cancelled.
        public mutating func next() async -> ConnectionState? {
            while batch.isEmpty {
                guard let more = try? await observation.mailbox.take() else { return nil }
                batch = more[...]
            }
            return batch.popFirst()
        }

        /// Does the same as ``next()``, on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> ConnectionState?
        {
            await next()
        }
    }
}

extension ConnectionStates {
    /// Waits for the connection that another request opens.
    ///
    /// - Returns: Whether there is a connection then.
    func reachConnection() async -> Bool {
        for await state in self {
            switch state {
            case .connected: return true
            case .connecting, .waiting, .paused: continue
            case .idle, .disconnected: return false
            }
        }
        return false
    }

    /// Waits until the transport does not connect again, or the task is cancelled.
    ///
    /// - Parameter endsWithConnection: False waits for the cancellation alone.
    /// - Throws: The cause of the end, if there is one.
    func waitForEnd(endsWithConnection: Bool) async throws {
        for await state in self {
            guard endsWithConnection, case .disconnected(let cause) = state else { continue }
            if let cause { throw cause }
            return
        }
    }
}

/// The source to which a transport reports the states of its connection.
public final class ConnectionStateSource: Sendable {
    /// One observer's queue; its deinit removes it from the source.
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
        /// In the order of adding.
        var mailboxes: [(identifier: UInt64, mailbox: Mailbox<ConnectionState>)] = []
        var lastIdentifier: UInt64 = 0
        var isOver = false
        /// How many connections of the transport seek theirs, where an open one hides them.
        var hiddenCount = 0
    }

    /// Tells a simulation of each source.
    ///
    /// An object, because a closure behind a lock would be wrapped again at each access.
    private final class Watch: Sendable {
        let didMake: @Sendable (ConnectionStateSource) -> Void

        init(_ didMake: @escaping @Sendable (ConnectionStateSource) -> Void) {
            self.didMake = didMake
        }
    }

    private static let watch = Locked<Watch?>(nil)

    /// Has a simulation told of each source that is made; once per process.
    package static func installWatch(
        _ didMake: @escaping @Sendable (ConnectionStateSource) -> Void
    ) {
        watch.withLock { $0 = $0 ?? Watch(didMake) }
    }

    private static let lagLimit = 64
    private let state = Locked(State())

    /// Makes a source in the state idle.
    public init() {
        Self.watch.withLock { $0 }?.didMake(self)
    }

    /// The sequence that observers iterate over.
    public var states: ConnectionStates { ConnectionStates(self) }

    /// The present state.
    public var current: ConnectionState { state.withLock { $0.current } }

    /// Whether the transport, or a part of it that the state does not show, connects or waits for its next attempt.
    package var isSeeking: Bool {
        state.withLock { state in
            switch state.current {
            case .connecting, .waiting: true
            case .idle, .connected, .paused, .disconnected: state.hiddenCount > 0
            }
        }
    }

    /// Notes how many connections the state does not show.
    package func noteHidden(_ count: Int) { state.withLock { $0.hiddenCount = count } }

    /// Reports a change.
    ///
    /// Observers see consecutive calls in that order.
    public func report(_ new: ConnectionState) {
        // Appended under the lock, so that all observers see one order. Waking an observer there only schedules its
        // task.
        state.withLock { state in
            guard !state.isOver else { return }
            state.current = new
            for (_, mailbox) in state.mailboxes {
                mailbox.append { waiting in
                    if waiting.count >= Self.lagLimit { waiting.removeFirst() }
                    waiting.append(new)
                }
            }
        }
    }

    /// Ends the sequence of each observer, because the transport was shut down.
    public func finish() {
        state.withLock { state in
            state.isOver = true
            for (_, mailbox) in state.mailboxes { mailbox.finish(.finished) }
        }
    }

    func observe() -> Observation {
        state.withLock { state in
            state.lastIdentifier += 1
            let observation = Observation(source: self, identifier: state.lastIdentifier)
            let current = state.current
            observation.mailbox.append { $0.append(current) }
            if state.isOver { observation.mailbox.finish(.finished) }
            state.mailboxes.append((state.lastIdentifier, observation.mailbox))
            return observation
        }
    }

    private func leave(_ identifier: UInt64) {
        state.withLock { $0.mailboxes.removeAll { $0.identifier == identifier } }
    }
}
