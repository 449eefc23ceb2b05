import Waybill
import WaybillTesting

/// Apps that listen to event streams and post, on a network that breaks and heals.
struct EventStreamWorkload: Sendable {
    /// The duration of the faults.
    var faultTime = Duration.seconds(120)
    /// The time for which all apps are idle at the end.
    var idleTime = Duration.seconds(300)

    /// The number of events of each topic during the faults.
    var publishedCount = 60

    func run(_ world: SimulatedWorld) async throws {
        let reconnectionTime = world.pick(
            nil,
            nil,
            Duration.zero,
            Duration.milliseconds(500),
            Duration.seconds(8)
        )
        let ledger = EventStreamLedger(world, reconnectionTime: reconnectionTime)
        let hosts = world.chance(0.5) ? ["a"] : ["a", "b"]
        let configure: (inout LoopbackBroker.Configuration) -> Void = { configuration in
            configuration.eventStreamRetry = reconnectionTime
            configuration.eventMemory = 10_000
            configuration.authenticate = { _, token in
                if SimulatedTokens.admits(token, in: world) { return true }
                if let token { ledger.refuse(token) }
                return false
            }
            configuration.log = { ledger.note($0) }
            configuration.observe = { Self.observe($0, world, ledger) }
        }
        let broker =
            hosts.count == 1
            ? world.broker("a", configure: configure) : world.broker("a", "b", configure: configure)
        world.faults = .rough(until: faultTime)
        let apps = try (0..<world.size(of: "clients", 2)).map { number in
            try EventStreamApp(number, to: broker, in: world, ledger)
        }
        await withTaskGroup(of: Void.self) { group in
            for app in apps { group.addTask { await app.run() } }
            group.addTask { await self.misbehave(broker, world) }
            do { try await conduct(apps, broker, world, ledger) } catch {}
            for app in apps { app.stop() }
        }
        // A server without anything to write may never learn that a client has gone.
        broker.restart(keepingState: true)
        ledger.checkEnd()
    }

    /// Makes the broker fail in several ways.
    private func misbehave(_ broker: SimulatedBroker, _ world: SimulatedWorld) async {
        while world.elapsed < world.faults.until {
            try? await Task.sleep(for: world.random(.zero ... .seconds(20)))
            var faults = LoopbackFaults()
            switch world.random(0...5) {
            case 0: faults.withholdsReceipts = true
            case 1: faults.withholdsEvents = true
            case 2: faults.dropsStreamsAfter = world.random(0...5)
            case 3: faults.refusesConnections = .serverUnavailable
            case 4:
                let answer = world.pick(
                    LoopbackFaults.Answer(503, headers: ["Retry-After": "7"]),
                    LoopbackFaults.Answer(429, headers: ["Retry-After": "2"]),
                    LoopbackFaults.Answer(503, body: Payload("sorry")),
                    LoopbackFaults.Answer(500)
                )
                faults.answers = Array(repeating: answer, count: world.random(1...5))
            default: break
            }
            guard world.elapsed < world.faults.until else { break }
            world.note("the broker's faults: \(faults)")
            broker.loopback.faults = faults
            try? await Task.sleep(for: world.random(.zero ... .seconds(10)))
            broker.loopback.faults = LoopbackFaults()
        }
        broker.loopback.faults = LoopbackFaults()
    }

    /// Publishes during the faults. Then checks what must be true on a healthy network.
    private func conduct(
        _ apps: [EventStreamApp],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: EventStreamLedger
    ) async throws {
        for _ in 0..<world.size(of: "published", publishedCount) {
            try await Task.sleep(for: world.random(.zero ... .seconds(4)))
            for _ in 0..<world.pick(1, 1, 1, 10) { publish(apps, broker, ledger) }
            publish(to: "x\(world.random(0...2))", broker, ledger)
        }
        let rest = faultTime - world.elapsed
        if rest > .zero { try await Task.sleep(for: rest) }
        world.heal()
        broker.loopback.faults = LoopbackFaults()
        try await world.wait(
            for: "everything has been sent",
            within: .seconds(1_800)
        ) { apps.allSatisfy { $0.hasSentAll || $0.isStopping } }
        // One more event makes the broker send the events that it held back.
        publish(apps, broker, ledger)
        try await world.wait(
            for: "everything that was published has arrived",
            within: .seconds(900)
        ) { apps.allSatisfy { $0.hasHeardAll || $0.isStopping } }
        try await idle(apps, broker, world, ledger)
    }

    private func publish(
        _ apps: [EventStreamApp],
        _ broker: SimulatedBroker,
        _ ledger: EventStreamLedger
    ) {
        for topic in apps.flatMap(\.topics) where ledger.isKnown(topic) {
            publish(to: topic, broker, ledger)
        }
    }

    /// Publishes the topic's next number, as an event of the type that belongs to it.
    private func publish(
        to topic: String,
        _ broker: SimulatedBroker,
        _ ledger: EventStreamLedger
    ) {
        let number = ledger.takeNumber(topic)
        let type = EventReader.type(of: number)
        broker.publish(
            Payload("\(number)"),
            to: topic,
            headers: type == "message" ? [:] : ["event": type]
        )
    }

    /// Expects that every stream stays open while there are no faults.
    private func idle(
        _ apps: [EventStreamApp],
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: EventStreamLedger
    ) async throws {
        for app in apps { app.isIdle = true }
        // Events to the end, since a silent stream would time out.
        let events = Task {
            while !Task.isCancelled {
                try await Task.sleep(for: .seconds(1))
                publish(apps, broker, ledger)
            }
        }
        defer { events.cancel() }
        // Time for the apps' last actions to end, and for dead streams to be detected.
        try await Task.sleep(for: min(.seconds(90), idleTime))
        let openedCount = ledger.streamCount
        let begin = world.elapsed
        while world.elapsed - begin < idleTime - .seconds(90) {
            try await Task.sleep(for: .seconds(1))
            for app in apps where !app.isStopping {
                world.expect(app.isConnected, "\(app.name) is not connected, though all is well")
            }
        }
        for app in apps where !app.isStopping { await app.sendLast() }
        world.expect(
            ledger.streamCount == openedCount,
            "a stream was opened again, though nothing went wrong"
        )
    }

    private static func observe(
        _ occurrence: LoopbackOccurrence,
        _ world: SimulatedWorld,
        _ ledger: EventStreamLedger
    ) {
        switch occurrence {
        case .published(_, let topic, let payload, _):
            ledger.arrive(Int(String(decoding: payload, as: UTF8.self)), at: topic)
        case .violation(let client, let text):
            world.fail("client \(client) has broken the protocol: \(text)")
        default: break
        }
    }
}
