import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The filters that a connection restores, and those that it has the server forget.
extension MQTTSubscriptions {
    /// Restores every filter over a connection, one after another if ``WaybillSession/SubscriptionSuspicion`` says so.
    ///
    /// A filter that the server refuses now ends its streams with the refusal; the others go on.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - hasSession: Whether the server has kept the session.
    ///   - isInDoubt: Whether that may be another session, in which nothing was subscribed to.
    /// - Throws: `WaybillError` when the connection is lost meanwhile; `CancellationError`.
    func resume(over connection: MQTTConnection, hasSession: Bool, isInDoubt: Bool) async throws {
        var requests: [MQTTFilterRequest] = []
        change { table, _ in
            requests = table.resume(hasSession: hasSession, isInDoubt: isInDoubt)
            return []
        }
        let (ordered, isAlone) = state.withLock { [requests] state in
            (state.suspicion.begin(requests, \.filter), state.suspicion.isAlone)
        }
        try await withThrowingTaskGroup { group in
            let left = state.withLock { $0.table.left.all }
            let (limits, stated) = (connection.driver.limits, configuration.limits.filtersPerPacket)
            var window = MQTTPacketWindow()
            let leaving = stated ?? MQTTPacketWindow.leastQuota
            for batch in left.batches(of: leaving, within: limits, \.text) {
                try await window.waitForRoom(in: &group)
                group.addTask { try await self.unsubscribe(batch, over: connection) }
            }
            if isAlone { try await group.waitForAll() }
            let packets =
                isAlone ? ordered.map { [$0] } : ordered.packets(within: limits, stated: stated)
            for batch in packets {
                try await window.waitForRoom(in: &group)
                if isAlone { state.withLock { $0.suspicion.noteSent(batch[0].filter) } }
                let isAnswered = restore(batch, over: connection)
                group.addTask { try await isAnswered.value() }
                if isAlone { try await group.waitForAll() }
            }
            try await group.waitForAll()
        }
        pressure.attach(connection.reading)
        connection.driver.endOpening()
        // The connection may have ended meanwhile: then the pressure must not keep it.
        if state.withLock({ $0.connection !== connection }) { pressure.detach() }
    }

    /// Notes the end of a connection, before ``detach(_:)``.
    ///
    /// - Returns: What the end says about the filters, for ``note(_:_:)``.
    func noteEnd(
        of connection: MQTTConnection,
        _ end: ReplaySuspicion.End
    ) -> SubscriptionSuspicion.Verdict {
        state.withLock { $0.connection === connection ? $0.suspicion.noteEnd(end) : .none }
    }

    /// Ends the filter that the server answers by ending each connection.
    func note(_ verdict: SubscriptionSuspicion.Verdict, _ cause: WaybillError?) {
        guard case .proven(let filter) = verdict else { return }
        change { table, _ in
            table.refused(filter, .rejectedSubscription(to: filter, after: cause))
        }
    }

    func restore(
        _ requests: [MQTTFilterRequest],
        over connection: MQTTConnection
    ) -> Promise<Void> {
        let (lossTime, awaited) = state.withLock { state in
            let awaited = state.table.awaited(among: requests)
            let kept = Set(awaited.map { WireName($0.filter) })
            for one in requests where !kept.contains(one.filter) {
                state.suspicion.noteAnswered(one.filter)
            }
            return (state.lossTime, awaited)
        }
        let request = MQTTSubscribeMapping.request(awaited.first?.filter)
        return ask(awaited, request, nil, since: lossTime, over: connection)
    }

    /// Has the server forget filters, and waits for that.
    private func unsubscribe(
        _ left: [MQTTLeftFilters.Filter],
        over connection: MQTTConnection
    ) async throws {
        let left = state.withLock { $0.table.left.present(among: left) }
        guard !left.isEmpty else { return }
        do {
            let request = MQTTSubscribeMapping.request(left.first?.text)
            _ = try await connection.driver.unsubscribe(left.map(\.text), request) { _ in }
        } catch let error as WaybillError where !error.leavesRequestOpen {
            // A filter that the server refuses, or that cannot be sent, must not keep the others.
            if left.count > 1 {
                for one in left { try await unsubscribe([one], over: connection) }
            }
        }
        forget(left)
    }

    /// Forgets filters that the server has forgotten.
    func forget(_ left: [MQTTLeftFilters.Filter]) {
        change { table, _ in
            table.left.remove(left)
            return []
        }
    }
}
