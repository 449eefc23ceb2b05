import WireCore

/// Accepts TCP connections on 127.0.0.1 with Network.framework: the server side of tests and demonstrations.
///
/// ``NetworkListenerState`` decides.
package final class NetworkListener<Listener: SystemListener>: Sendable {
    /// The time in which a new connection must be ready.
    private static var acceptance: Duration { .seconds(5) }

    /// An object, since reports reach the state before the listener is initialized.
    private final class Start: Sendable {
        let state = Locked(NetworkListenerState())
    }

    private let start: Start
    private let listener: Listener

    /// The port.
    package let port: UInt16

    /// Starts to listen, and waits until the port is known.
    ///
    /// - Parameters:
    ///   - listener: A listener that was not started.
    ///   - accept: Takes each new stream, connected and not started, on the stream's queue.
    /// - Throws: The error of the listener, for example if the port is in use.
    package init(
        _ listener: Listener,
        accept: @escaping @Sendable (any ByteStream) -> Void
    ) throws(LinkError) {
        let start = Start()
        let note: @Sendable (NetworkListenerState.Event) -> Void = { [weak listener] event in
            if start.state.withLock({ $0.note(event) }) { listener?.cancel() }
        }
        listener.start(note) { connection in
            guard start.state.withLock({ $0.accepts }) else { return connection.cancel() }
            let attempt = NetworkConnectAttempt(connection, accept: accept)
            attempt.start()
            connection.perform(after: Self.acceptance) { [weak attempt] in
                attempt?.fail(.timedOut)
            }
        }
        note(.timeLimit)
        let outcome = start.state.withLock { $0.outcome } ?? .failure(.timedOut)
        port = try outcome.get()
        self.listener = listener
        self.start = start
    }

    /// Stops listening.
    ///
    /// Accepted connections stay open.
    package func close() {
        if start.state.withLock({ $0.note(.close) }) { listener.cancel() }
    }
}
