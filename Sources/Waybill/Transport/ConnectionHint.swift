import WireCore

/// A hint from the app about its environment, which a transport cannot know.
public enum ConnectionHint: Hashable, Sendable {
    /// Closes the connection for now, for example in the background; streams and pending calls wait for the next
    /// connection.
    case pause
    /// Ends the pause: a connection that the pause closed is opened again at once.
    case resume
    /// Ends the wait before the next attempt, for example because the network is back or has changed.
    case retryNow
}

/// A source of hints about the app's environment.
///
/// ``ConnectionHints`` sends hints that the app gives. On Apple platforms `AppLifecycleHints` observes background and
/// foreground, sleep and waking. Transports observe the network themselves.
public protocol ConnectionHintSource: Sendable {
    /// Starts to pass hints, one at a time and in order; each transport calls it once.
    ///
    /// - Parameter tell: Takes a hint; it returns at once, and may be called from any thread.
    /// - Returns: A handle that ends the hints when the transport is gone.
    func start(_ tell: @escaping @Sendable (ConnectionHint) -> Void) -> RequestHandle
}

/// Passes the app's hints to any number of transports.
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

    private let state = Locked(State())

    /// Makes a source without listeners.
    public init() {}

    /// Passes a hint to every transport.
    public func send(_ hint: ConnectionHint) {
        let listeners = state.withLock { state in
            state.listeners.sorted { $0.key < $1.key }.map(\.value)
        }
        for listener in listeners { listener(hint) }
    }

    /// Starts to pass hints to a transport.
    public func start(
        _ tell: @escaping @Sendable (ConnectionHint) -> Void
    ) -> RequestHandle {
        let identifier = state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = tell
            return state.lastListener
        }
        return RequestHandle { [weak self] in
            self?.state.withLock { _ = $0.listeners.removeValue(forKey: identifier) }
        }
    }
}
