import Waybill
import WaybillTesting

/// An app with a store on disk that is killed or ended, and started again, on a network that breaks and heals.
///
/// What a send is told holds: after an error that excludes an arrival nothing arrives, and after a clean end nothing is
/// sent again that was acknowledged.
///
/// What the broker has acknowledged, and what the store has at a kill, reaches the broker: in order, and at QoS 2 once.
/// What the broker publishes reaches the app; again only if the exchange was not over.
///
/// A broker that loses its sessions may get a message of QoS 2 again, and what it had for the app is gone.
struct RestartWorkload: Sendable {
    /// The topics, and the number of messages that are sent to each.
    struct Lanes: Sendable {
        var outgoing: [(topic: String, qos: QoS)] = [
            ("out-1", .atLeastOnce), ("out-2", .exactlyOnce),
        ]
        var incoming: [(topic: String, qos: QoS)] = [
            ("in-1", .atLeastOnce), ("in-2", .exactlyOnce),
        ]
        var length = 60
    }

    let service: SimulatedService
    /// Whether the broker loses its sessions now and then.
    let losesSessions: Bool
    var lanes = Lanes()
    /// The longest life of a process that is killed.
    var longestLife = Duration.seconds(20)

    init(service: SimulatedService, losesSessions: Bool = false) {
        self.service = service
        self.losesSessions = losesSessions
        guard service.isSTOMP else { return }
        // It has no session that would keep messages for the app, and nothing is sent exactly once.
        lanes.outgoing = [("out-1", .atLeastOnce), ("out-2", .atLeastOnce)]
        lanes.incoming = []
    }

    /// A short workload, of which a test run can have many.
    static func brief(_ service: SimulatedService, losesSessions: Bool = false) -> Self {
        var workload = Self(service: service, losesSessions: losesSessions)
        workload.lanes.length = 15
        workload.longestLife = .seconds(6)
        return workload
    }

    /// Runs the workload in a world.
    ///
    /// - Returns: The number of each outcome.
    @discardableResult
    func run(_ world: SimulatedWorld) async throws -> [String: Int] {
        let all = lanes.outgoing + lanes.incoming
        let ledger = RestartLedger(
            world,
            Dictionary(uniqueKeysWithValues: all.map { ($0.topic, $0.qos) }),
            hasSession: service.isMQTT
        )
        // Each process connects to its own, so that a killed one can be cut off.
        let broker = world.broker("p0", "p1", "p2", "p3", "p4", "p5") { configuration in
            configuration.observe = { Self.observe($0, world, ledger) }
        }
        var faults = SimulatedFaults.rough(until: longestLife * 6)
        faults.losses = nil
        world.faults = faults
        let disk = SimulatedDisk(world) { ledger.storedLoss() }
        var process: RestartProcess?
        let publisher = Task { await publish(broker, world, ledger) }
        let losses = losesSessions ? Task { await loseSessions(broker, world, ledger) } : nil
        for number in 0...world.size(of: "kills", 5) {
            if let killed = process {
                if world.chance(0.5) {
                    await killed.end()
                    ledger.settle()
                } else {
                    killed.kill()
                }
                disk.kill()
                ledger.left(disk.messages)
                let host = broker.hosts[killed.number]
                broker.setReachable(false, at: host)
                broker.breakConnections(at: host)
                await killed.clean()
                if world.chance(0.5) {
                    try? await Task.sleep(for: world.random(.zero ... .seconds(5)))
                }
            }
            let next = try RestartProcess(
                number,
                service,
                to: broker,
                at: broker.hosts[number],
                with: disk.open(),
                in: world,
                ledger,
                lanes
            )
            process = next
            next.start()
            if number == 0 {
                try await world.wait(for: "subscriptions", within: .seconds(600)) { next.listens }
            }
            if number < 5 { try? await Task.sleep(for: world.random(.zero...longestLife)) }
        }
        guard let process else { return [:] }
        await losses?.value
        await publisher.value
        let rest = faults.until - world.elapsed
        if rest > .zero { try? await Task.sleep(for: rest) }
        world.heal()
        try await world.wait(for: "all was sent", within: .seconds(1_800)) {
            process.finished == lanes.outgoing.count
        }
        // The system ends a dead connection after a quarter of an hour.
        let end = world.elapsed + .seconds(1_200)
        // The broker may never use the identifiers of a session again that it has lost.
        var isStoreEmpty: Bool {
            disk.messages.isEmpty && (ledger.hadForeignSession || disk.received.isEmpty)
        }
        while world.elapsed < end,
            !ledger.isComplete || !isStoreEmpty || !broker.loopback.isIdle
        {
            try await Task.sleep(for: .milliseconds(500))
        }
        world.expect(ledger.missing.isEmpty, "lost: \(ledger.missing.prefix(5))")
        world.expect(ledger.untaken.isEmpty, "never taken: \(ledger.untaken.prefix(5))")
        world.expect(
            isStoreEmpty,
            "still stored: \(disk.messages.count) messages, identifiers \(disk.received)"
        )
        world.expect(broker.loopback.isIdle, "something is still under way at the broker")
        await process.clean()
        return ledger.outcomes
    }

    private func publish(
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: RestartLedger
    ) async {
        guard !lanes.incoming.isEmpty else { return }
        // The broker keeps messages for a session that has subscribed.
        var isKept: Bool {
            broker.loopback.sessions.first?.filters.count == lanes.incoming.count
        }
        while !isKept {
            do { try await Task.sleep(for: .milliseconds(100)) } catch { return }
        }
        for number in 0..<lanes.length {
            let longest = longestLife * 5 / max(lanes.length, 1)
            try? await Task.sleep(for: world.random(.zero...longest))
            for (topic, qos) in lanes.incoming {
                ledger.published(number, topic, isKept: !losesSessions || isKept)
                broker.publish(Payload("\(number)"), to: topic, qos: qos)
            }
        }
    }

    private func loseSessions(
        _ broker: SimulatedBroker,
        _ world: SimulatedWorld,
        _ ledger: RestartLedger
    ) async {
        for _ in 0..<world.random(1...5) {
            try? await Task.sleep(for: world.random(.zero...longestLife * 2))
            broker.restart(keepingState: false)
            ledger.loseSessions()
        }
    }

    private static func observe(
        _ occurrence: LoopbackOccurrence,
        _ world: SimulatedWorld,
        _ ledger: RestartLedger
    ) {
        world.note("broker: \(occurrence)")
        switch occurrence {
        case .published(_, let topic, let payload, _):
            ledger.arrive(Int(String(decoding: payload, as: UTF8.self)), at: topic)
        case .connected(_, _, _, let sessionPresent):
            ledger.count("connected")
            if sessionPresent { ledger.resumed() }
        case .violation(let client, let text):
            world.fail("client \(client) has broken the protocol: \(text)")
        default: break
        }
    }
}
