import MQTTWire
import Waybill
import WaybillSession
import WireCore

extension MQTTSubscriptions {
    // MARK: Resuming

    /// Has the server know every filter again.
    ///
    /// A filter that the server no longer grants ends its streams with the refusal; the others go on.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - hasSession: Whether the server has kept the session.
    ///   - isInDoubt: Whether that may be another one, in which nothing was subscribed to.
    /// - Throws: `WaybillError` when the connection is lost meanwhile; `CancellationError`.
    func resume(over connection: MQTTConnection, hasSession: Bool, isInDoubt: Bool) async throws {
        let (entries, left) = state.withLock { state in
            if !hasSession || isInDoubt { state.router.forgetGrants() }
            if !hasSession { state.left.removeAll() }
            return (state.router.ungranted, state.left.all)
        }
        if !hasSession { manual.removeAll() }
        saveLeft()
        if !entries.isEmpty || !left.isEmpty { try await resume(entries, left, over: connection) }
        // Not before: held back, the server could not answer.
        pressure.attach(connection.reading)
        connection.endOpening()
        // The connection may have ended meanwhile: then the pressure must not keep it.
        if state.withLock({ $0.connection !== connection }) { pressure.detach() }
    }

    private func resume(
        _ entries: [MQTTSubscriptionEntry],
        _ left: [MQTTLeftFilters.Filter],
        over connection: MQTTConnection
    ) async throws {
        try await withThrowingTaskGroup { group in
            for batch in MQTTConnection.batches(of: left) {
                group.addTask { try await self.leave(batch, over: connection) }
            }
            for batch in connection.batches(of: entries) {
                group.addTask { try await self.resubscribe(batch, over: connection) }
            }
            try await group.waitForAll()
        }
    }

    /// Has the server forget filters.
    private func leave(
        _ left: [MQTTLeftFilters.Filter],
        over connection: MQTTConnection
    ) async throws {
        guard let first = left.first else { return }
        do {
            _ = try await connection.unsubscribe(left.map(\.text), Self.request(first.text))
        } catch let error as WaybillError where !Self.leavesOpen(error) {
            // One that the server refuses, or that cannot be sent, is not to keep the others.
            guard left.count == 1 else {
                for one in left { try await leave([one], over: connection) }
                return
            }
            // A filter without a listener may stay at the server.
        }
        forgetLeft(left)
    }

    /// Whether the server may have done what was asked for, or may do it yet, all the same.
    static func leavesOpen(_ error: WaybillError) -> Bool {
        [.connectionLost, .notConnected, .timedOut, .shutDown].contains(error.code)
    }

    private static func request(_ filter: String) -> Request {
        Request(topic: filter, command: .subscribe(SubscribeOptions()))
    }

    func resubscribe(
        _ entries: [MQTTSubscriptionEntry],
        over connection: MQTTConnection
    ) async throws {
        guard let first = entries.first else { return }
        let asked = state.withLock { state in entries.map { state.router.askAgain(for: $0) } }
        // Also where no SUBACK comes.
        defer { state.withLock { state in for one in asked { state.router.forget(one) } } }
        let answers = try await connection.subscribe(
            asked.map(\.subscription),
            identifier: entries.count == 1 ? first.identifier : nil,
            Self.request(first.subscription.filter),
            timeout: nil,
            didAnswer: { [weak self] in self?.noteAnswer(of: asked, hasBacklog: $0) }
        )
        for (entry, answer) in zip(entries, answers) {
            let filter = entry.subscription.filter
            switch answer {
            case .success(let granted):
                let isWanted = state.withLock { state in
                    let isAgain = state.router.isEstablished(filter)
                    state.router.grant(filter, granted)
                    // Everybody may have left meanwhile.
                    guard state.router.isEstablished(filter) else { return false }
                    events.report(
                        .subscribed(
                            topic: filter,
                            since: state.lossTime,
                            qos: granted,
                            isAgain: isAgain
                        )
                    )
                    return true
                }
                if !isWanted { connection.leave(filter) {} }
            case .failure(let error):
                let sources = state.withLock { state in
                    if let entry = state.router[filter], entry.established == nil {
                        events.report(
                            .subscriptionRefused(topic: filter, since: nil, error: error)
                        )
                    }
                    return remove(filter, from: &state, because: error)
                }
                entry.answer.resolve(.failure(error))
                for source in sources {
                    source.finish(throwing: error)
                    pressure.forget(source)
                }
            }
        }
    }
}
