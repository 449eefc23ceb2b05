import WireCore

/// What an app knows of its surroundings and a transport cannot.
public enum ConnectionHint: Hashable, Sendable {
    /// No connection is wanted for a while, as in the background: it is closed, and streams and what is under way
    /// wait for the next one.
    case pause
    /// The pause is over: what it has closed is connected again, at once.
    case resume
    /// There is hope for a connection, as when the network has come back or has changed: a wait before the next
    /// attempt is cut short.
    case retryNow
}

/// Tells transports of an app's surroundings.
///
/// ``ConnectionHints`` takes hints by hand; on Apple platforms `AppLifecycleHints` tells of background and
/// foreground, of sleep and waking, and transports look after the network themselves.
public protocol ConnectionHintSource: Sendable {
    /// Begins to tell hints, one at a time and in order; called once by each transport.
    ///
    /// - Parameter tell: Takes a hint; returns at once, and may be called from any thread.
    /// - Returns: What ends it, when the transport goes.
    func start(_ tell: @escaping @Sendable (ConnectionHint) -> Void) -> any CancelHandle
}

/// Hands on hints that are given by hand, to any number of transports.
///
/// ```swift
/// let hints = ConnectionHints()
/// configuration.hints = [hints]
/// // In the scene's delegate:
/// hints.send(.pause)
/// ```
public final class ConnectionHints: ConnectionHintSource {
    private struct State: Sendable {
        var listeners: [UInt64: @Sendable (ConnectionHint) -> Void] = [:]
        var lastListener: UInt64 = 0
    }

    private struct Listening: CancelHandle {
        weak var hints: ConnectionHints?
        let identifier: UInt64

        func cancel() { hints?.state.withLock { _ = $0.listeners.removeValue(forKey: identifier) } }
    }

    private let state = Locked(State())

    /// Nobody listens yet.
    public init() {}

    /// Hands a hint to every transport.
    public func send(_ hint: ConnectionHint) {
        let listeners = state.withLock { state in
            state.listeners.sorted { $0.key < $1.key }.map(\.value)
        }
        for listener in listeners { listener(hint) }
    }

    /// Begins to hand hints to a transport.
    public func start(
        _ tell: @escaping @Sendable (ConnectionHint) -> Void
    ) -> any CancelHandle {
        let identifier = state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = tell
            return state.lastListener
        }
        return Listening(hints: self, identifier: identifier)
    }
}
