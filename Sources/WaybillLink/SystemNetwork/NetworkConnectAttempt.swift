import WireCore

/// An attempt to open a connection of Network.framework, including TLS.
///
/// The first event decides the outcome: the connection, a timer or a cancelled task.
package final class NetworkConnectAttempt<Connection: SystemConnection>: Sendable {
    private struct State: Sendable {
        var opening = Opening<any ByteStream, Suspension.Continuation>.pending
        var progress = NetworkAttemptState()
    }

    private let state = Locked(State())
    private let connection: Connection
    private let accept: (@Sendable (any ByteStream) -> Void)?

    /// Takes over a connection that was not started.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - accept: Takes the stream on the connection's queue; nil where ``stream()`` takes it.
    package init(
        _ connection: Connection,
        accept: (@Sendable (any ByteStream) -> Void)? = nil
    ) {
        self.connection = connection
        self.accept = accept
    }

    /// Starts the connection.
    package func start() {
        // On the queue, so that a connection that was given up is not started afterwards.
        connection.perform { [self] in
            guard state.withLock({ !$0.opening.isDecided }) else { return }
            connection.report { [self] report in note(report) }
            connection.start()
        }
    }

    /// Starts, and waits for the stream.
    package func stream() async throws(LinkError) -> any ByteStream {
        start()
        return try await state.opened(\.opening) { fail(.cancelled) }
    }

    /// Fails, unless the outcome was already decided.
    package func fail(_ error: LinkError) {
        carryOut { $0.giveUp(error) }
    }

    private func note(_ report: NetworkReport) {
        carryOut { $0.note(report) }
    }

    private func carryOut(_ change: (inout NetworkAttemptState) -> NetworkAttemptState.Step) {
        // Handed over and decided in one step, so that no other thread can decide in between.
        let outcome = state.withLock {
            state -> (Result<any ByteStream, LinkError>, Suspension.Continuation?)? in
            let result: Result<any ByteStream, LinkError>
            switch change(&state.progress) {
            case .nothing: return nil
            case .succeed(let hasBetterPath):
                result = .success(NetworkStream(connection, hasBetterPath: hasBetterPath))
            case .fail(let error): result = .failure(error)
            }
            return (result, state.opening.decide(result).waiter)
        }
        guard let (result, waiter) = outcome else { return }
        switch result {
        case .success(let stream): accept?(stream)
        case .failure:
            connection.perform { [connection] in
                // The receiver of reports references the attempt, and the attempt the connection.
                connection.report(to: nil)
                connection.cancel()
            }
        }
        waiter?.resume()
    }
}
