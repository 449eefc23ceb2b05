import Waybill
import WaybillSession
import WireCore

// What becomes of a mock's requests.
extension MockTransport {
    /// Remembers a request that opens a connection.
    func noteConnect(_ request: Request) {
        var recorded = request
        recorded.chain = nil
        state.withLock { $0.connects.append(recorded) }
    }

    /// What becomes of a CONNECT, or of a request for a stream, that the mock makes by itself: success without a rule.
    func outcomeByRule(_ request: Request) -> Outcome {
        state.withLock { state in
            let index = state.rules.lastIndex { $0.covers(request) }
            return index.map { state.rules[$0].next() } ?? .success
        }
    }

    /// Remembers a request and finds what becomes of it.
    func note(_ request: Request) throws(WaybillError) -> Outcome {
        let outcome: Outcome? = try state.withLock { state throws(WaybillError) in
            if state.isShutDown { throw Self.shutDown }
            try checkSettlement(request, state.deliveries)
            // Without the interceptors, which may keep this transport alive.
            var recorded = request
            recorded.chain = nil
            state.requests.append(recorded)
            let index = state.rules.lastIndex { $0.covers(request) }
            if let index { return state.rules[index].next() }
            state.unexpected.append(recorded)
            return nil
        }
        if let outcome { return outcome }
        throw WaybillError(
            .rejected,
            "the mock was not told to expect this request",
            topic: request.topic,
            command: request.command.name
        )
    }

    /// Refuses what settles a message that does not wait, or a transaction that is not open.
    private func checkSettlement(
        _ request: Request,
        _ deliveries: MockDeliveries
    ) throws(WaybillError) {
        guard rules.connectivity != .assumed else { return }
        switch request.command {
        case .ack(let id, _), .nack(let id, _):
            if !deliveries.isWaiting(id) { throw WaybillError.messageNotWaiting.about(request) }
        default: break
        }
        try rules.check(request, against: deliveries.transactions)
    }

    /// Does what a rule says, within the time that the request has.
    func carryOut(_ outcome: Outcome, _ request: Request) async throws -> Receipt {
        let limit = request.statedTimeout ?? rules.timeout(of: request)
        do {
            return try await carryOut(outcome, request, within: limit)
        } catch is Late {
            // A connection that the peer does not help to close is closed all the same.
            if rules.connectivity != .assumed, case .disconnect = request.command {
                return Receipt()
            }
            throw WaybillError(.timedOut, "the server did not acknowledge in time").about(request)
        }
    }

    private func carryOut(
        _ outcome: Outcome,
        _ request: Request,
        within limit: Duration?
    ) async throws -> Receipt {
        switch outcome {
        case .receipt(var receipt):
            receipt.topic = receipt.topic ?? request.topic
            return receipt
        case .failure(let error): throw error
        case .answer(let decide): return try await carryOut(decide(request), request, within: limit)
        case .after(let delay, let outcome):
            do {
                try await clock.sleep(for: min(delay, limit ?? delay))
            } catch {
                throw CancellationError()
            }
            if let limit, delay > limit { throw Late() }
            return try await carryOut(outcome, request, within: limit.map { $0 - delay })
        case .silence:
            try await waitForEver(within: limit)
            throw CancellationError()
        }
    }

    /// No answer has come in time.
    private struct Late: Error {}

    private func waitForEver(within limit: Duration?) async throws {
        let identifier = makeIdentifier()
        let patience = limit.map { limit in
            Task {
                guard (try? await clock.sleep(for: limit)) != nil else { return }
                let waiting = state.withLock { state in
                    state.late.insert(identifier)
                    return state.silent.removeValue(forKey: identifier)
                }
                waiting?.resume(throwing: Late())
            }
        }
        defer {
            patience?.cancel()
            state.withLock { _ = $0.late.remove(identifier) }
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let end = state.withLock { state -> (any Error)? in
                    if Task.isCancelled || state.isShutDown { return CancellationError() }
                    // The time was over before this was waited for.
                    if state.late.contains(identifier) { return Late() }
                    state.silent[identifier] = continuation
                    return nil
                }
                if let end { continuation.resume(throwing: end) }
            }
        } onCancel: {
            let waiting = state.withLock { $0.silent.removeValue(forKey: identifier) }
            waiting?.resume(throwing: CancellationError())
        }
    }
}

extension Request {
    /// The time that the peer has to answer, as the entry states it.
    fileprivate var statedTimeout: Duration? {
        switch command {
        case .connect(let options): options.timeout
        case .send(let options): options.timeout
        case .subscribe(let options): options.timeout
        case .disconnect(let options): options.timeout
        default: nil
        }
    }
}
