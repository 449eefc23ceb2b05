#if os(Linux)
    import CWaybillLinux
    import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// An attempt to connect: it resolves the name, then the addresses race, each with a socket of its own.
    ///
    /// The first event decides the outcome: a connected socket, the failure of the last one, a timer or a cancelled
    /// task. The deciding thread also closes the remaining sockets in the same step.
    final class TCPConnectAttempt: Sendable {
        typealias Outcome = Result<any ByteStream, LinkError>

        /// The event handler of one socket.
        private final class Runner: EventLoop.Handler {
            let index: Int
            let attempt: TCPConnectAttempt

            init(_ index: Int, of attempt: TCPConnectAttempt) {
                self.index = index
                self.attempt = attempt
            }

            func descriptorIsReady(_ events: UInt32) {
                attempt.socketIsReady(index)
            }
        }

        private struct Contender {
            var descriptor: Int32
            var registration: UInt64 = 0
        }

        private struct State {
            var continuation: Suspension.Continuation?
            var outcome: Outcome?
            var race = AddressRace<SocketAddress>([], family: \.family)
            /// The sockets that are connecting, by the index of their address.
            var contenders: [Int: Contender] = [:]
            /// The timer for the next address; zero for none.
            var timer: UInt64 = 0
        }

        private let state = Locked(State())
        private let loop: EventLoop
        private let timers: any TimerSource

        /// Takes over one use of the loop.
        init(loop: EventLoop, timers: any TimerSource) {
            self.loop = loop
            self.timers = timers
        }

        /// The outcome, after it was decided.
        ///
        /// It is read under the lock, so that the resumed task sees all earlier writes.
        var outcome: Outcome? { state.withLock { $0.outcome } }

        /// Starts, and resumes the continuation when the outcome is decided.
        ///
        /// - Parameters:
        ///   - continuation: Resumed once.
        ///   - resolve: Finds the addresses and returns them once.
        func begin(
            _ continuation: Suspension.Continuation,
            resolve: (@escaping @Sendable (Result<[SocketAddress], LinkError>) -> Void) -> Void
        ) {
            let isDecided = state.withLock { state in
                if state.outcome == nil { state.continuation = continuation }
                return state.outcome != nil
            }
            if isDecided { return continuation.resume() }
            resolve { [self] result in
                switch result {
                case .failure(let error): fail(error)
                case .success(let addresses):
                    state.withLock { $0.race = AddressRace(addresses, family: \.family) }
                    runRace(at: timers.now)
                }
            }
        }

        /// Fails, unless the outcome was already decided.
        func fail(_ error: LinkError) {
            let (isFirst, continuation) = state.withLock {
                state -> (Bool, Suspension.Continuation?) in
                guard state.outcome == nil else { return (false, nil) }
                decide(.failure(error), &state)
                return (true, state.continuation.take())
            }
            guard isFirst else { return }
            SharedEventLoop.release()
            continuation?.resume()
        }

        // MARK: The race

        /// Starts the attempts that are due, and waits for the next one.
        private func runRace(at now: WireInstant) {
            let error: LinkError? = state.withLock { state in
                // Before the decision the loop is registered; later it may be gone.
                guard state.outcome == nil else { return nil }
                while let (index, address) = state.race.takeDue(at: now) {
                    let failure = connect(index, to: address, &state)
                    if let failure { state.race.noteFailure(failure) }
                }
                rearm(&state)
                return state.race.failure.map { Self.error($0) }
            }
            if let error { fail(error) }
        }

        private func rearm(_ state: inout State) {
            if state.timer != 0 { timers.cancelTimer(state.timer) }
            state.timer = 0
            guard let deadline = state.race.deadline else { return }
            state.timer = timers.scheduleTimer(at: deadline) { [self] in
                // The coarse clock may be behind the deadline that has just passed.
                runRace(at: max(timers.now, deadline))
            }
        }

        /// Starts to connect to an address.
        ///
        /// - Returns: The failure if it failed at once; nil if the connection is in progress.
        private func connect(
            _ index: Int,
            to address: SocketAddress,
            _ state: inout State
        ) -> AddressRace<SocketAddress>.Failure? {
            var contender: Contender?
            do {
                let descriptor = try Socket.open(family: address.family)
                contender = Contender(descriptor: descriptor)
                Socket.disableDelay(descriptor)
                Socket.keepAlive(descriptor)
                let result = Socket.connect(descriptor, to: address)
                guard result == 0 || result == EINPROGRESS else {
                    Socket.close(descriptor)
                    return Self.failure(result)
                }
                let registration = try loop.add(
                    Runner(index, of: self),
                    descriptor: descriptor,
                    interest: EPOLLOUT.rawValue
                )
                state.contenders[index] = Contender(
                    descriptor: descriptor,
                    registration: registration
                )
                return nil
            } catch {
                if let contender { Socket.close(contender.descriptor) }
                guard case .system(let number, _) = error else { return .unreachable(0) }
                return Self.failure(number)
            }
        }

        private func socketIsReady(_ index: Int) {
            let (hasLost, continuation) = state.withLock {
                state -> (Bool, Suspension.Continuation?) in
                guard state.outcome == nil, let contender = state.contenders[index] else {
                    return (false, nil)
                }
                state.contenders[index] = nil
                loop.remove(contender.registration, descriptor: contender.descriptor)
                let error = Socket.pendingError(contender.descriptor)
                guard error == 0 else {
                    Socket.close(contender.descriptor)
                    state.race.noteFailure(Self.failure(error))
                    return (true, nil)
                }
                // Handed over and decided in one step, so that no other thread can decide in between.
                decide(.success(TCPStream(descriptor: contender.descriptor, loop: loop)), &state)
                return (false, state.continuation.take())
            }
            if hasLost { runRace(at: timers.now) }
            continuation?.resume()
        }

        /// Ends the race: closes the other sockets and tries no further address.
        private func decide(_ outcome: Outcome, _ state: inout State) {
            state.outcome = outcome
            if state.timer != 0 { timers.cancelTimer(state.timer) }
            state.timer = 0
            for contender in state.contenders.valuesInKeyOrder {
                loop.remove(contender.registration, descriptor: contender.descriptor)
                Socket.close(contender.descriptor)
            }
            state.contenders = [:]
        }

        private static func failure(_ number: Int32) -> AddressRace<SocketAddress>.Failure {
            switch number {
            case ECONNREFUSED: .refused
            case ETIMEDOUT: .timedOut
            default: .unreachable(number)
            }
        }

        private static func error(_ failure: AddressRace<SocketAddress>.Failure) -> LinkError {
            switch failure {
            case .refused: .refused
            case .timedOut: .timedOut
            // A shortage of this process or machine says nothing about the host.
            case .unreachable(let number) where LinkError.isOutOfDescriptors(number):
                .system(errorNumber: number, call: "socket")
            case .unreachable(let number): .unreachable(errorNumber: number)
            }
        }
    }
#endif
