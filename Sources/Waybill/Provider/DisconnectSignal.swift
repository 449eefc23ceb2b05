import WireCore

/// Tells the requests of a provider and its copies that a `disconnect` was requested.
///
/// A request that still waits for a token or for its next attempt must not open the connection again.
final class DisconnectSignal: Sendable {
    private struct State: Sendable {
        var count = 0
        var handlers: [Int: @Sendable () -> Void] = [:]
        var lastHandler = 0
    }

    private let state = Locked(State())
    /// The source for the events of its requests; nil in the test of an interceptor.
    let events: TransportEventSource?

    init(_ events: TransportEventSource? = nil) {
        self.events = events
    }

    /// The number of disconnects so far.
    var count: Int { state.withLock { $0.count } }

    func send() {
        let handlers = state.withLock { state in
            state.count += 1
            defer { state.handlers = [:] }
            return state.handlers.valuesInKeyOrder
        }
        for handler in handlers { handler() }
    }

    /// Adds a handler that is called once at the next disconnect.
    ///
    /// - Parameters:
    ///   - count: The number of disconnects that the caller has seen; if there were more, the handler is not added.
    ///   - handler: The handler.
    /// - Returns: The handler's number for ``remove(_:)``; nil if it was not added.
    func add(since count: Int, _ handler: @escaping @Sendable () -> Void) -> Int? {
        state.withLock { state in
            guard state.count == count else { return nil }
            state.lastHandler += 1
            state.handlers[state.lastHandler] = handler
            return state.lastHandler
        }
    }

    func remove(_ handler: Int?) {
        guard let handler else { return }
        state.withLock { _ = $0.handlers.removeValue(forKey: handler) }
    }
}
