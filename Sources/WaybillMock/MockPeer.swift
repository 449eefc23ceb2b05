import Waybill
import WaybillSession
import WireCore

/// The other end of a mock's connection: takes requests, and answers as its script says.
final class MockPeer: Sendable {
    private struct State: Sendable {
        var script = MockScript()
        /// The requests that are not answered.
        var unanswered: [UInt64: Promise<Receipt>] = [:]
        var lastNumber: UInt64 = 0
        var isShutDown = false
    }

    /// No answer has come in time.
    private struct Late: Error {}

    let rules: any MockRules
    let clock: any Clock<Duration>
    let reporter = MockReporter()
    private let state = Locked(State())

    init(rules: any MockRules, clock: any Clock<Duration>) {
        self.rules = rules
        self.clock = clock
    }

    // MARK: The script

    var script: MockScript { state.withLock { $0.script } }

    func expect(
        _ command: EntryCommand.Kind,
        topic: String?,
        _ outcomes: [MockTransport.Outcome]
    ) {
        state.withLock { $0.script.expect(command, topic: topic, outcomes) }
    }

    /// Records a request and finds its outcome.
    func record(_ request: Request) throws(WaybillError) -> MockTransport.Outcome {
        try state.withLock { state throws(WaybillError) in
            guard !state.isShutDown else { throw .shutDown }
            return try state.script.record(request)
        }
    }

    func recordConnect(_ request: Request) {
        state.withLock { $0.script.recordConnect(request) }
    }

    // MARK: Answers

    /// Carries out an outcome within the time that the request has.
    func answer(
        _ outcome: MockTransport.Outcome,
        _ request: Request
    ) async throws -> Receipt {
        let limit = request.command[.timeout] ?? rules.timeout(of: request)
        do {
            return try await answer(outcome, request, within: limit)
        } catch is Late {
            // A connection ends also when the peer does not answer its DISCONNECT.
            if rules.connectivity != .assumed, request.command.kind == .disconnect {
                return Receipt()
            }
            throw WaybillError(.timedOut, "the server did not acknowledge in time").about(request)
        }
    }

    private func answer(
        _ outcome: MockTransport.Outcome,
        _ request: Request,
        within limit: Duration?
    ) async throws -> Receipt {
        switch outcome {
        case .receipt(var receipt):
            receipt.topic = receipt.topic ?? request.topic
            return receipt
        case .failure(let error): throw error
        case .answer(let decide): return try await answer(decide(request), request, within: limit)
        case .after(let delay, let outcome):
            do {
                try await clock.sleep(for: min(delay, limit ?? delay))
            } catch {
                throw CancellationError()
            }
            if let limit, delay > limit { throw Late() }
            return try await answer(outcome, request, within: limit.map { $0 - delay })
        case .silence: return try await keepWaiting(within: limit)
        }
    }

    private func keepWaiting(within limit: Duration?) async throws -> Receipt {
        let answer = Promise<Receipt>()
        let number = try state.withLock { state in
            if state.isShutDown { throw CancellationError() }
            state.lastNumber += 1
            state.unanswered[state.lastNumber] = answer
            return state.lastNumber
        }
        defer { state.withLock { _ = $0.unanswered.removeValue(forKey: number) } }
        return try await answer.value(within: limit, by: clock, orElse: Late())
    }

    /// Fails the requests that are not answered.
    func failUnanswered(_ error: WaybillError) {
        let unanswered = state.withLock { state in
            defer { state.unanswered = [:] }
            return state.unanswered.valuesInKeyOrder
        }
        for answer in unanswered { answer.resolve(.failure(error)) }
    }

    func shutDown() {
        state.withLock { $0.isShutDown = true }
        failUnanswered(.shutDown)
    }

    // MARK: Opening

    /// Sends CONNECT, and again after a refusal if the interceptors say so.
    ///
    /// - Parameters:
    ///   - greeting: The request that CONNECT is made of; nil for a plain one.
    ///   - isReconnection: True after a lost connection.
    ///   - isExplicit: True when an entry has asked for the connection, so that the CONNECT counts as a request.
    /// - Returns: The receipt of the CONNECT that was accepted.
    /// - Throws: The error that the interceptors do not retry; `CancellationError`.
    func connect(
        _ greeting: Request?,
        isReconnection: Bool = false,
        isExplicit: Bool = false
    ) async throws -> Receipt {
        let greeting = greeting ?? Request(topic: nil, command: .connect)
        return try await open(greeting, isReconnection: isReconnection) { connect in
            let outcome = isExplicit ? try self.record(connect) : self.outcomeByRule(connect)
            self.reporter.events.report(.connecting(to: nil))
            let begun = self.reporter.events.timestamp
            do {
                let receipt = try await self.answer(outcome, connect)
                self.reporter.events.report(
                    .connected(to: nil, since: begun, isResumed: receipt[.sessionPresence] ?? false)
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

    /// Asks for an event stream once more.
    func reopen(_ request: Request) async throws {
        _ = try await open(request, isReconnection: true) { request in
            try await self.answer(self.outcomeByRule(request), request)
        }
    }

    /// The outcome of a request that the mock makes by itself: success when no rule covers it.
    private func outcomeByRule(_ request: Request) -> MockTransport.Outcome {
        state.withLock { $0.script.takeOutcome(of: request) } ?? .success
    }

    /// Has the interceptors adapt a request, and tries it until it succeeds or they give up.
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
            recordConnect(adapted)
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

extension Promise {
    /// Waits for the value, or for an error after a time by a clock.
    func value(
        within limit: Duration?,
        by clock: any Clock<Duration>,
        orElse error: any Error
    ) async throws -> Value {
        let timer = limit.map { limit in
            Task {
                if (try? await clock.sleep(for: limit)) != nil { resolve(.failure(error)) }
            }
        }
        defer { timer?.cancel() }
        return try await value()
    }
}
