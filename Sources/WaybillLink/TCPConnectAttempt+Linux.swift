#if os(Linux)
    import CWaybillLinux
    import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// One try to connect: resolve, then one address after another until one accepts.
    ///
    /// The first to decide wins: the loop, a timer or a cancelled task.
    final class TCPConnectAttempt: EventLoop.Handler, Sendable {
        typealias Outcome = Result<any ByteStream, LinkError>

        private struct State {
            var continuation: CheckedContinuation<Void, Never>?
            var outcome: Outcome?
            var addresses: ArraySlice<SocketAddress> = []
            var descriptor: Int32 = -1
            var registration: UInt64 = 0
            var refusals = 0
            var lastError: Int32 = 0
            var tried = 0
        }

        private let state = Locked(State())
        private let endpoint: Endpoint
        private let loop: EventLoop

        /// Takes over one use of the loop.
        init(_ endpoint: Endpoint, loop: EventLoop) {
            self.endpoint = endpoint
            self.loop = loop
        }

        /// What came of it, once it is decided.
        ///
        /// Read with the lock, so that whoever is resumed sees all that was written before.
        var outcome: Outcome? { state.withLock { $0.outcome } }

        /// Starts, and resumes the continuation once the outcome is decided.
        func begin(_ continuation: CheckedContinuation<Void, Never>) {
            let isDecided = state.withLock { state in
                if state.outcome == nil { state.continuation = continuation }
                return state.outcome != nil
            }
            if isDecided { return continuation.resume() }
            NameResolver.resolve(endpoint) { [self] result in
                switch result {
                case .failure(let error): fail(error)
                case .success(let addresses):
                    let isOver = state.withLock { state in
                        state.addresses = addresses[...]
                        return state.outcome != nil
                    }
                    // Later the loop may be gone; as long as nothing is decided it is held.
                    if !isOver { tryNext() }
                }
            }
        }

        func descriptorIsReady(_ events: UInt32) {
            let descriptor = state.withLock { $0.descriptor }
            guard descriptor >= 0 else { return }
            let error = Socket.pendingError(descriptor)
            guard error == 0 else { return failed(error) }
            // Handed over and decided in one step, so that nobody else can decide in between.
            let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
                guard state.outcome == nil, state.descriptor >= 0 else { return nil }
                loop.remove(state.registration, descriptor: state.descriptor)
                let stream = TCPStream(descriptor: state.descriptor, loop: loop)
                state.descriptor = -1
                state.outcome = .success(stream)
                return state.continuation.take()
            }
            continuation?.resume()
        }

        /// Gives up, unless the outcome is decided already.
        func fail(_ error: LinkError) {
            let (isFirst, continuation) = state.withLock {
                state -> (Bool, CheckedContinuation<Void, Never>?) in
                guard state.outcome == nil else { return (false, nil) }
                state.outcome = .failure(error)
                closeSocket(&state)
                return (true, state.continuation.take())
            }
            guard isFirst else { return }
            SharedEventLoop.release()
            continuation?.resume()
        }

        private func tryNext() {
            let error: LinkError? = state.withLock { state in
                while state.outcome == nil {
                    guard let address = state.addresses.popFirst() else {
                        return failure(state)
                    }
                    state.tried += 1
                    if connect(to: address, &state) { return nil }
                }
                return nil
            }
            if let error { fail(error) }
        }

        private func failure(_ state: State) -> LinkError {
            if state.tried > 0, state.refusals == state.tried { return .refused }
            if state.lastError == ETIMEDOUT { return .timedOut }
            return .unreachable(errorNumber: state.lastError)
        }

        /// Whether a connection to the address is on its way.
        private func connect(to address: SocketAddress, _ state: inout State) -> Bool {
            do {
                let descriptor = try Socket.open(family: address.family)
                Socket.disableDelay(descriptor)
                state.descriptor = descriptor
                let result = Socket.connect(descriptor, to: address)
                guard result == 0 || result == EINPROGRESS else {
                    note(result, &state)
                    return false
                }
                state.registration = try loop.add(
                    self,
                    descriptor: descriptor,
                    interest: EPOLLOUT.rawValue
                )
                return true
            } catch {
                if case .system(let number, _) = error { note(number, &state) }
                return false
            }
        }

        private func failed(_ error: Int32) {
            state.withLock { note(error, &$0) }
            tryNext()
        }

        private func note(_ error: Int32, _ state: inout State) {
            state.lastError = error
            if error == ECONNREFUSED { state.refusals += 1 }
            closeSocket(&state)
        }

        private func closeSocket(_ state: inout State) {
            guard state.descriptor >= 0 else { return }
            if state.registration != 0 {
                loop.remove(state.registration, descriptor: state.descriptor)
            }
            Socket.close(state.descriptor)
            state.descriptor = -1
            state.registration = 0
        }
    }
#endif
