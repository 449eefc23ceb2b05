import Waybill
import WaybillSession
import WireCore

/// Whether a mock with a protocol has a connection.
enum MockLink: Sendable {
    case idle
    case connecting(MockAttempt)
    case connected
}

/// An attempt to connect, which several requests may wait for.
final class MockAttempt: Sendable {
    private final class Running: Sendable {
        let task = Locked<Task<Void, Never>?>(nil)

        func cancel() {
            task.withLock { $0 }?.cancel()
        }
    }

    let outcome: Promise<Receipt>
    private let running: Running

    init() {
        let running = Running()
        self.running = running
        // Nobody waits for it any longer.
        outcome = Promise(onAbandoned: { running.cancel() })
    }

    func start(_ body: @escaping @Sendable () async throws -> Receipt) {
        let task = Task { @concurrent [outcome] in
            do {
                outcome.resolve(.success(try await body()))
            } catch {
                outcome.resolve(.failure(error))
            }
        }
        running.task.withLock { $0 = task }
    }

    /// Those who wait fail with the error.
    func stop(because error: WaybillError) {
        outcome.resolve(.failure(error))
        running.cancel()
    }
}

extension MockTransport.State {
    /// The connection is over, and no other follows by itself.
    mutating func noteConnectionEnd(_ error: WaybillError) {
        restoration?.stop(because: error)
        restoration = nil
        if case .connecting(let attempt) = link { attempt.stop(because: error) }
        link = .idle
        greeting = nil
        deliveries.removeAll()
    }
}

// The connection of a mock with a protocol.
extension MockTransport {
    /// Refuses what makes sense over a connection only, where there is none.
    func checkConnection(for request: Request) throws(WaybillError) {
        guard needsConnection(request) else { return }
        guard case .connected = state.withLock({ $0.link }) else {
            throw WaybillError.noConnection.about(request)
        }
        // The next connection is told of an `unsubscribe`.
        if outage.isOn, request.command.kind != .unsubscribe {
            throw WaybillError.noConnection.about(request)
        }
    }

    /// Tells whether a request makes a connection where there is none.
    private func connectsOnDemand(for request: Request) -> Bool {
        switch request.command {
        case .send, .subscribe, .begin: rules.connectivity == .shared
        default: false
        }
    }

    /// Tells whether a request is refused where there is no connection.
    private func needsConnection(_ request: Request) -> Bool {
        switch request.command {
        case .ack, .nack, .unsubscribe, .commit, .abort: rules.connectivity == .shared
        default: false
        }
    }

    /// Makes the connection that a request needs, with a CONNECT that the request's interceptors adapt.
    func connectOnDemand(for request: Request) async throws {
        guard connectsOnDemand(for: request) else { return }
        let greeting = Request.connecting(for: request)
        let (attempt, isNew) = try state.withLock {
            state throws(WaybillError) -> (MockAttempt?, Bool) in
            guard !state.isShutDown else { throw Self.shutDown }
            switch state.link {
            case .connected: return (nil, false)
            case .connecting(let attempt): return (attempt, false)
            case .idle:
                guard !state.isLeft else { throw WaybillError.disconnectedByApp.about(request) }
                return (state.begin(greeting), true)
            }
        }
        guard let attempt else { return }
        if isNew { start(attempt, greeting, isExplicit: false) }
        _ = try await attempt.outcome.value()
    }

    /// Connects as an entry asks for it.
    func connect(_ request: Request) async throws -> Receipt {
        if outage.isOn {
            // Its interceptors take the place of the others.
            state.withLock { $0.greeting = request }
            _ = try note(request)
            return try await reconnect().outcome.value()
        }
        let attempt = try state.withLock { state throws(WaybillError) -> MockAttempt in
            guard !state.isShutDown else { throw Self.shutDown }
            guard case .idle = state.link else { throw WaybillError.alreadyConnected }
            state.isLeft = false
            return state.begin(request)
        }
        start(attempt, request, isExplicit: true)
        return try await attempt.outcome.value()
    }

    private func start(_ attempt: MockAttempt, _ greeting: Request, isExplicit: Bool) {
        reporter.states.report(.connecting(attempt: 1))
        attempt.start { [self] in
            do {
                let receipt = try await dial(greeting, isExplicit: isExplicit)
                let isWanted = state.withLock { state in
                    guard case .connecting(let current) = state.link, current === attempt else {
                        return false
                    }
                    state.link = .connected
                    return true
                }
                guard isWanted else { throw Self.disconnected }
                reporter.states.report(.connected)
                return receipt
            } catch {
                let isCurrent = state.withLock { state in
                    guard case .connecting(let current) = state.link, current === attempt else {
                        return false
                    }
                    state.link = .idle
                    state.greeting = nil
                    return true
                }
                if isCurrent {
                    reporter.states.report(.disconnected(cause: error as? WaybillError))
                }
                throw error
            }
        }
    }

    /// Begins to have a lost connection back, unless that is under way.
    func reconnect() -> MockAttempt {
        let (attempt, isNew) = state.withLock { state in
            if let attempt = state.restoration { return (attempt, false) }
            let attempt = MockAttempt()
            state.restoration = attempt
            return (attempt, true)
        }
        guard isNew else { return attempt }
        reporter.states.report(.connecting(attempt: 1))
        attempt.start { [self] in
            do {
                let receipt = try await restored()
                let isWanted = state.withLock { state in
                    guard state.restoration === attempt else { return false }
                    state.restoration = nil
                    state.link = .connected
                    state.isLeft = false
                    return true
                }
                guard isWanted else { throw Self.disconnected }
                reporter.states.report(.connected)
                outage.end { try note($0) }
                return receipt
            } catch {
                let isCurrent = state.withLock { state in
                    guard state.restoration === attempt else { return false }
                    state.restoration = nil
                    return true
                }
                if isCurrent { noteFailedRestoration(WaybillError(reporting: error)) }
                throw error
            }
        }
        return attempt
    }

    private func noteFailedRestoration(_ error: WaybillError) {
        if error.isRetryable {
            reporter.states.report(.waiting(until: .now + .seconds(1), cause: error))
        } else {
            dropConnection(error)
        }
    }

    private func restored() async throws -> Receipt {
        guard rules.connectivity == .perStream else {
            let greeting =
                state.withLock { $0.greeting } ?? Request(topic: nil, command: .connect)
            return try await dial(greeting, isReconnection: true)
        }
        let streams = state.withLock { $0.streams.sorted { $0.key < $1.key } }
        for (number, stream) in streams {
            do {
                _ = try await open(stream.request, isReconnection: true) { request in
                    try await self.carryOut(self.outcomeByRule(request), request)
                }
            } catch let error as WaybillError where !error.isRetryable {
                let isThere = state.withLock { $0.streams.removeValue(forKey: number) != nil }
                if isThere { end([stream], throwing: error) }
            }
        }
        return Receipt()
    }

    /// Sends CONNECT, and again after a refusal if the interceptors say so.
    private func dial(
        _ greeting: Request,
        isReconnection: Bool = false,
        isExplicit: Bool = false
    ) async throws -> Receipt {
        try await open(greeting, isReconnection: isReconnection) { connect in
            let outcome = isExplicit ? try self.note(connect) : self.outcomeByRule(connect)
            self.reporter.events.report(.connecting(to: nil))
            let begun = self.reporter.events.timestamp
            do {
                let receipt = try await self.carryOut(outcome, connect)
                self.reporter.events.report(
                    .connected(to: nil, since: begun, isResumed: receipt.isSessionPresent)
                )
                return receipt
            } catch {
                let cause = WaybillError(reporting: error)
                self.reporter.events.report(
                    .connectionFailed(to: nil, since: begun, error: cause)
                )
                throw error
            }
        }
    }

    /// Has the interceptors adapt a request that opens a connection, and tries it until they give up.
    private func open(
        _ request: Request,
        isReconnection: Bool,
        _ attempt: (Request) async throws -> Receipt
    ) async throws -> Receipt {
        var occasion = ConnectOccasion(
            isReconnection: isReconnection,
            isUnattended: isReconnection
        )
        while true {
            let adapted = try await occasion.adapted(request, askingAt: nil)
            try rules.check(adapted)
            noteConnect(adapted)
            do {
                let receipt = try await attempt(adapted)
                occasion.noteSuccess()
                return receipt
            } catch let error as WaybillError {
                try await occasion.goOn(
                    after: error,
                    canReplaceCredentials: false,
                    wasAccepted: false
                )
            }
        }
    }
}

extension MockTransport.State {
    /// Begins an attempt to connect, with the lock held.
    mutating func begin(_ greeting: Request) -> MockAttempt {
        let attempt = MockAttempt()
        link = .connecting(attempt)
        self.greeting = greeting
        return attempt
    }
}
