import WireCore

/// Tells the requests of a provider and its copies that somebody disconnects.
///
/// What still waits for a token or for its next attempt must not bring the connection back.
final class DisconnectSignal: Sendable {
    private struct State: Sendable {
        var count = 0
        var handlers: [Int: @Sendable () -> Void] = [:]
        var lastHandler = 0
    }

    private let state = Locked(State())
    /// Where events of its requests are reported; nil in the test of an interceptor.
    let events: TransportEventSource?

    init(_ events: TransportEventSource? = nil) {
        self.events = events
    }

    /// How many times somebody has disconnected.
    var count: Int { state.withLock { $0.count } }

    /// Says that somebody disconnects.
    func send() {
        let handlers = state.withLock { state in
            state.count += 1
            defer { state.handlers = [:] }
            return state.handlers.valuesInKeyOrder
        }
        for handler in handlers { handler() }
    }

    /// Has a handler called once when somebody disconnects.
    ///
    /// - Parameters:
    ///   - count: How many times that has happened so far: if it is more by now, nothing is called.
    ///   - handler: The handler.
    /// - Returns: What ``remove(_:)`` takes.
    func add(since count: Int, _ handler: @escaping @Sendable () -> Void) -> Int? {
        state.withLock { state in
            guard state.count == count else { return nil }
            state.lastHandler += 1
            state.handlers[state.lastHandler] = handler
            return state.lastHandler
        }
    }

    /// Forgets a handler.
    func remove(_ handler: Int?) {
        guard let handler else { return }
        state.withLock { _ = $0.handlers.removeValue(forKey: handler) }
    }
}
