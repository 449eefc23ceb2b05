#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    /// An attempt to connect, including TLS.
    ///
    /// The first event decides the outcome: the connection, a timer or a cancelled task.
    final class NetworkConnectAttempt: Sendable {
        private struct State: Sendable {
            var opening = Opening<any ByteStream, Suspension.Continuation>.pending
            /// The reason why the connection waits for a better network.
            var hindrance: LinkError?
        }

        private let state = Locked(State())
        private let connection: NWConnection
        private let peer: NetworkPeer
        private let trust: ServerTrust?
        /// The queue of the connection, and later of the stream.
        private let queue = DispatchQueue(label: "waybill.connection")

        /// Takes over a connection that was not started.
        init(_ connection: NWConnection, to peer: NetworkPeer, trust: ServerTrust?) {
            self.connection = connection
            self.peer = peer
            self.trust = trust
        }

        /// Starts, and waits for the connection.
        func stream() async throws(LinkError) -> any ByteStream {
            queue.async { [self] in
                // On the queue, so that a connection that was given up is not started afterwards.
                guard state.withLock({ !$0.opening.isDecided }) else { return }
                connection.stateUpdateHandler = { [self] in stateDidChange($0) }
                connection.start(queue: queue)
            }
            return try await state.opened(\.opening) { fail(.cancelled) }
        }

        /// Fails, unless the outcome was already decided.
        func fail(_ error: LinkError) {
            let (isFirst, waiter) = state.withLock { state in
                // The reason for waiting says more than the timeout.
                let reason = error == .timedOut ? state.hindrance ?? error : error
                return state.opening.decide(.failure(reason))
            }
            guard isFirst else { return }
            queue.async { [connection] in
                // The handler references the attempt, and the attempt the connection.
                connection.stateUpdateHandler = nil
                connection.cancel()
            }
            waiter?.resume()
        }

        private func stateDidChange(_ new: NWConnection.State) {
            switch new {
            case .ready: succeed()
            case .failed(let error): fail(reason(error))
            case .waiting(let error):
                // The framework waits forever, even if waiting cannot help.
                if error.isFinal { return fail(reason(error)) }
                state.withLock { $0.hindrance = reason(error) }
            case .setup, .preparing, .cancelled: break
            @unknown default: break
            }
        }

        private func reason(_ error: NWError) -> LinkError {
            if case .tls = error, let fault = trust?.fault { return .tls(fault) }
            let reason = LinkError(error, of: peer)
            // Before the stream is secure, no data can be missing.
            return reason == .truncated ? .tls(.closed) : reason
        }

        private func succeed() {
            // Handed over and decided in one step, so that no other thread can decide in between.
            let waiter = state.withLock { state -> Suspension.Continuation? in
                guard !state.opening.isDecided else { return nil }
                let stream = NetworkStream(
                    connection,
                    to: peer,
                    tls: TLSAgreement(of: connection),
                    queue: queue
                )
                return state.opening.decide(.success(stream)).waiter
            }
            waiter?.resume()
        }
    }
#endif
