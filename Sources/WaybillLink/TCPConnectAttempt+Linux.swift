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

        private struct Contender: Sendable {
            var descriptor: Int32
            var registration: UInt64 = 0
        }

        private struct State: Sendable {
            var opening = Opening<any ByteStream, Suspension.Continuation>.pending
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

        /// Waits for the first address that connects.
        func stream() async throws(LinkError) -> any ByteStream {
            try await state.opened(\.opening) { fail(.cancelled) }
        }

        /// Starts the race of the addresses that were found.
        func begin(_ addresses: Result<[SocketAddress], LinkError>) {
            switch addresses {
            case .failure(let error): fail(error)
            case .success(let addresses):
                state.withLock { $0.race = AddressRace(addresses, family: \.family) }
                runRace(at: timers.now)
            }
        }

        /// Fails, unless the outcome was already decided.
        func fail(_ error: LinkError) {
            let (isFirst, waiter) = state.withLock { decide(.failure(error), &$0) }
            guard isFirst else { return }
            SharedEventLoop.release()
            waiter?.resume()
        }

        // MARK: The race

        /// Starts the attempts that are due, and waits for the next one.
        private func runRace(at now: WireInstant) {
            let error: LinkError? = state.withLock { state in
                // Before the decision the loop is registered; later it may be gone.
                guard !state.opening.isDecided else { return nil }
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
            var opened: Int32?
            do {
                let descriptor = try Socket.open(family: address.family)
                opened = descriptor
                Socket.disableDelay(descriptor)
                Socket.limitUnsent(descriptor)
                Socket.keepAlive(descriptor)
                let result = Socket.beginConnecting(descriptor, to: address)
                guard result == 0 || result == EINPROGRESS else {
                    Socket.release(descriptor)
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
                if let opened { Socket.release(opened) }
                guard case .system(let number, _) = error else { return .unreachable(0) }
                return Self.failure(number)
            }
        }

        private func socketIsReady(_ index: Int) {
            let (hasLost, waiter) = state.withLock { state -> (Bool, Suspension.Continuation?) in
                // After the decision none is left.
                guard let contender = state.contenders.removeValue(forKey: index) else {
                    return (false, nil)
                }
                loop.remove(contender.registration, descriptor: contender.descriptor)
                let error = Socket.pendingError(contender.descriptor)
                guard error == 0 else {
                    Socket.release(contender.descriptor)
                    state.race.noteFailure(Self.failure(error))
                    return (true, nil)
                }
                // Handed over and decided in one step, so that no other thread can decide in between.
                let stream = TCPStream(descriptor: contender.descriptor, loop: loop)
                return (false, decide(.success(stream), &state).waiter)
            }
            if hasLost { runRace(at: timers.now) }
            waiter?.resume()
        }

        /// Ends the race: closes the other sockets and tries no further address.
        private func decide(
            _ outcome: Result<any ByteStream, LinkError>,
            _ state: inout State
        ) -> (isFirst: Bool, waiter: Suspension.Continuation?) {
            let decision = state.opening.decide(outcome)
            guard decision.isFirst else { return decision }
            if state.timer != 0 { timers.cancelTimer(state.timer) }
            state.timer = 0
            for contender in state.contenders.valuesInKeyOrder {
                loop.remove(contender.registration, descriptor: contender.descriptor)
                Socket.release(contender.descriptor)
            }
            state.contenders = [:]
            return decision
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
