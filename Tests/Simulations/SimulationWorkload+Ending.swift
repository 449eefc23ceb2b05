import Waybill
import WaybillTesting

// The checks that must succeed after all faults are over.
extension SimulationWorkload {
    /// Checks that all apps can receive and send, even when only one host is left.
    func probe(
        _ clients: [SimulatedClient],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: SimulationLedger
    ) async throws {
        let first = SimulationLedger.firstProbe
        try await publish(first, clients, broker, world, ledger)
        for host in broker.hosts.dropLast() { broker.setReachable(false, at: host) }
        broker.restart(keepingState: true)
        try await publish(first + 1, clients, broker, world, ledger)
        for host in broker.hosts { broker.setReachable(true, at: host) }
        await withTaskGroup(of: Void.self) { group in
            for client in clients { group.addTask { await client.sendProbes() } }
        }
        // The last answers may still be in transit.
        try await Task.sleep(for: .seconds(10))
    }

    private func publish(
        _ number: Int,
        _ clients: [SimulatedClient],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: SimulationLedger
    ) async throws {
        for client in clients {
            for (topic, qos) in client.listensTo {
                broker.publish(Payload("\(number)"), to: service.brokerTopic(topic), qos: qos)
            }
        }
        try await world.wait(for: "every client receives \(number)", within: .seconds(180)) {
            clients.allSatisfy { client in
                client.listensTo.allSatisfy { topic, qos in
                    (qos == .exactlyOnce && ledger.isInForeignSession(client.name))
                        || ledger.hasArrived(number, at: topic)
                }
            }
        }
    }

    /// Checks that neither side has unfinished work.
    func checkNothingIsLeft(
        _ clients: [SimulatedClient],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld
    ) {
        world.expect(
            broker.loopback.isIdle || clients.contains(where: \.hasFailedMessage),
            "something is still under way at the broker"
        )
        for session in broker.loopback.sessions {
            world.expect(
                session.queuedMessageCount == 0,
                "\(session.queuedMessageCount) messages to \(session.clientIdentifier) have got stuck"
            )
        }
        for client in clients {
            guard let store = client.transport.store else { continue }
            let count = store.messages().count
            world.expect(count == 0, "\(client.name) still stores \(count) messages")
            let filters = store.pendingUnsubscribes()
            world.expect(filters.isEmpty, "\(client.name) still has to leave \(filters)")
        }
    }
}
