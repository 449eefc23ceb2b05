import Waybill
import WaybillTesting

/// Apps and a broker for one protocol, on a network that breaks and heals.
struct SimulationWorkload: Sendable {
    let service: SimulatedService
    /// The duration of the faults.
    var faultTime = Duration.seconds(120)
    /// The time for which all apps are idle at the end.
    var idleTime = Duration.seconds(1_800)

    /// The number of messages that each lane of each client sends.
    var laneLength = 25
    /// The number of messages that the broker publishes to each client's topics.
    var publishedCount = 60

    init(service: SimulatedService) {
        self.service = service
    }

    /// A short workload, of which a test run can have many.
    static func brief(_ service: SimulatedService) -> Self {
        var workload = Self(service: service)
        workload.faultTime = .seconds(20)
        workload.idleTime = .seconds(30)
        workload.laneLength = 5
        workload.publishedCount = 8
        return workload
    }

    /// Runs the workload in a world.
    /// - Returns: The number of calls for each outcome.
    @discardableResult
    func run(_ world: SimulatedWorld) async throws -> [String: Int] {
        if service == .eventStream {
            var workload = EventStreamWorkload()
            workload.faultTime = faultTime
            workload.idleTime = min(idleTime, workload.idleTime)
            workload.publishedCount = publishedCount
            try await workload.run(world)
            return [:]
        }
        let ledger = SimulationLedger(world)
        let service = service
        ledger.keepsOrder = !service.isSTOMP
        let broker = world.broker("a", "b", "c") { configuration in
            configuration.authenticate = { _, password in
                SimulatedTokens.admits(password, in: world)
            }
            configuration.topicAliasMaximum = 2
            configuration.observe = { occurrence in
                Self.observe(occurrence, world, ledger)
            }
        }
        var faults = SimulatedFaults.rough(until: faultTime)
        // A broker that loses its state causes repetitions. They hide other mistakes, so only some seeds have them.
        if world.chance(0.2), service.isMQTT {
            faults.losses = .seconds(60)
            ledger.hasForgotten = true
        }
        world.faults = faults
        let count = world.size(of: "clients", 2)
        let clients = try (0..<count).map { number in
            try SimulatedClient(number, service, to: broker, in: world, ledger, laneLength)
        }
        await withTaskGroup(of: Void.self) { group in
            for client in clients {
                group.addTask {
                    do { try await client.run() } catch { world.fail("\(client.name): \(error)") }
                }
            }
            do { try await conduct(clients, broker, world, ledger) } catch {}
            for client in clients {
                client.isIdle = true
                client.isStopping = true
            }
        }
        ledger.checkEnd()
        return ledger.outcomes
    }

    /// Runs the broker during the faults. Then checks what must be true on a healthy network.
    private func conduct(
        _ clients: [SimulatedClient],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: SimulationLedger
    ) async throws {
        let published = try await publish(clients, broker, world, ledger)
        let rest = faultTime - world.elapsed
        if rest > .zero { try await Task.sleep(for: rest) }
        world.heal()
        let detection = clients.map(\.transport.detection).max() ?? .zero
        try await world.wait(
            for: "every client is connected after the network has healed",
            within: detection + SimulatedTransport.maximumDelay * 2 + .seconds(30)
        ) {
            clients.allSatisfy(\.isConnected)
        }
        try await world.wait(for: "everything has been sent", within: .seconds(1_800)) {
            clients.allSatisfy(\.hasSentAll)
        }
        // The system ends a dead connection after a quarter of an hour, and the messages on it are lost.
        let limit = Duration.seconds(1_800)
        while !ledger.hasForgotten, world.elapsed < faultTime + limit {
            if Self.missing(clients, published, ledger).isEmpty { break }
            try await Task.sleep(for: .milliseconds(500))
        }
        let missing = ledger.hasForgotten ? [] : Self.missing(clients, published, ledger)
        world.expect(
            missing.isEmpty,
            "published and never heard: \(missing.joined(separator: "; "))"
        )
        for client in clients { client.isIdle = true }
        // Time for the apps' last calls to end, and for every dead connection to be detected.
        try await Task.sleep(for: detection + .seconds(60))
        ledger.isWell = true
        try await probe(clients, broker, world, ledger)
        for client in clients {
            try await SimulatedListeners(client, broker, service, in: world).run()
        }
        checkNothingIsLeft(clients, broker, world)
        try await idle(clients, broker, world, ledger)
    }

    /// The published messages that have not arrived, in words.
    private static func missing(
        _ clients: [SimulatedClient],
        _ published: [String: Range<Int>],
        _ ledger: SimulationLedger
    ) -> [String] {
        clients.filter { !$0.hasDisconnected }.flatMap(\.listensTo).compactMap { topic, _ in
            let numbers = published[topic].map { ledger.missing(topic, $0) } ?? []
            return numbers.isEmpty ? nil : "\(numbers.prefix(5)) of \(topic)"
        }
    }

    /// Publishes numbers to all apps. Returns those that must arrive, by topic.
    private func publish(
        _ clients: [SimulatedClient],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: SimulationLedger
    ) async throws -> [String: Range<Int>] {
        var published: [String: Range<Int>] = [:]
        for number in 0..<world.size(of: "published", publishedCount) {
            try await Task.sleep(for: world.random(.zero ... .seconds(4)))
            for client in clients {
                for (topic, qos) in client.listensTo where client.hasBegunToListen(to: topic) {
                    ledger.publish(number, to: topic)
                    broker.publish(Payload("\(number)"), to: service.brokerTopic(topic), qos: qos)
                    published[topic] = (published[topic]?.lowerBound ?? number)..<number + 1
                }
            }
            let passing = service.brokerTopic(service.passingTopic("x\(world.random(0...2))"))
            broker.publish(Payload("\(number)"), to: passing, qos: .atLeastOnce)
        }
        return published
    }

    /// Expects that all clients stay connected while the apps are silent, and send only what that takes.
    private func idle(
        _ clients: [SimulatedClient],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: SimulationLedger
    ) async throws {
        let connections = ledger.outcomes["connected"]
        let before = clients.map { $0.log.sent }
        let begin = world.elapsed
        // A silent event stream would time out. An MQTT client that only receives must stay connected, too.
        let talks = service == .eventStream || (service.isMQTT && world.chance(0.5))
        while world.elapsed - begin < idleTime {
            // After half an hour, more messages show nothing new.
            let talks = talks && world.elapsed - begin < .seconds(1_800)
            try await Task.sleep(for: talks ? .seconds(1) : .seconds(60))
            guard talks else { continue }
            for client in clients {
                for (topic, _) in client.listensTo {
                    broker.publish(
                        Payload("\(SimulationLedger.idleNumber)"),
                        to: service.brokerTopic(topic)
                    )
                }
            }
        }
        world.expect(
            ledger.outcomes["connected"] == connections,
            "a client has connected again, although no fault occurred"
        )
        guard service.isMQTT else { return }
        for (client, before) in zip(clients, before) {
            let sent = client.log.sent
                .map { ($0.key, $0.value - before[$0.key, default: 0]) }
                .filter { $0.1 > 0 }
            let pings = sent.first { $0.0 == "PINGREQ" }?.1 ?? 0
            let due = (world.elapsed - begin) / client.transport.keepAlive
            world.expect(
                sent.allSatisfy { $0.0 == "PINGREQ" }
                    && Double(pings) > due * 0.99 - 1.5 && Double(pings) < due + 1.5,
                "\(client.name) has sent \(sent) while it was idle, \(pings) PINGREQ instead of \(due)"
            )
        }
    }

    private static func observe(
        _ occurrence: LoopbackOccurrence,
        _ world: SimulatedWorld,
        _ ledger: SimulationLedger
    ) {
        world.note("broker: \(occurrence)")
        switch occurrence {
        case .published(_, let topic, let payload, _):
            ledger.arrive(Int(String(decoding: payload, as: UTF8.self)), at: topic)
        case .connected(_, _, let clientIdentifier, let sessionPresent):
            ledger.count("connected")
            if let clientIdentifier {
                ledger.beginConnection(of: clientIdentifier, sessionPresent: sessionPresent)
            }
        case .violation(let client, let text):
            world.fail("client \(client) has broken the protocol: \(text)")
        default: break
        }
    }
}
