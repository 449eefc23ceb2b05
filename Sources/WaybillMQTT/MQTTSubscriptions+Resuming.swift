import MQTTWire
import Waybill
import WaybillSession
import WireCore

extension MQTTSubscriptions {
    // MARK: Resuming

    /// Subscribes again to every filter that the server lacks.
    ///
    /// If the server refuses a filter, the messages of its listeners end with that error. Other filters continue.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - hasSession: Whether the server has kept the session.
    ///   - isInDoubt: Whether the kept session may be another one, without these subscriptions.
    /// - Throws: `WaybillError` if the connection is lost meanwhile; `CancellationError`.
    func resume(over connection: MQTTConnection, hasSession: Bool, isInDoubt: Bool) async throws {
        let (entries, left) = state.withLock { state in
            if !hasSession || isInDoubt { state.router.forgetGrants() }
            if !hasSession { state.left.removeAll() }
            return (state.router.ungranted, state.left.all)
        }
        if !hasSession { manual.removeAll() }
        saveLeft()
        if !entries.isEmpty || !left.isEmpty { try await resume(entries, left, over: connection) }
        // Attached last, because the server's answers could not be read while reading is stopped.
        pressure.attach(connection.reading)
        connection.endOpening()
        // If the connection has ended meanwhile, the pressure must not keep it alive.
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

    /// Unsubscribes filters.
    private func leave(
        _ left: [MQTTLeftFilters.Filter],
        over connection: MQTTConnection
    ) async throws {
        guard let first = left.first else { return }
        do {
            _ = try await connection.unsubscribe(left.map(\.text), Self.request(first.text))
        } catch let error as WaybillError where !Self.leavesOpen(error) {
            // A filter that the server refuses, or that cannot be sent, must not prevent the others.
            guard left.count == 1 else {
                for one in left { try await leave([one], over: connection) }
                return
            }
            // A filter without a listener may stay at the server.
        }
        forgetLeft(left)
    }

    /// Whether the server may carry out the request in spite of this error.
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
        // Also when no SUBACK arrives.
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
                    // All listeners may have left meanwhile.
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
