#if os(Linux)
    import ChaosSupport
    import Testing
    import Waybill
    import WaybillMQTT

    @Suite(
        "Mosquitto through a network that breaks",
        .enabled(
            if: MosquittoServer.isRunning && ChaosSettings.areWanted,
            "WAYBILL_CHAOS=1 Tests/Servers/with --install mosquitto -- swift test --no-parallel --filter 'ServerTests.*ChaosTests'"
        ),
        // Each of these tests uses the whole machine.
        .serialized,
        .timeLimit(.minutes(30))
    )
    struct MQTTChaosTests {
        @Test("QoS 1 of MQTT 5: nothing is lost")
        func atLeastOnce() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    try await run("MQTT 5, QoS 1", .v5, .atLeastOnce, messages: 100_000)
                }
            )
        }

        @Test("QoS 2 of MQTT 5: nothing is lost, nothing comes twice")
        func exactlyOnce() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    try await run("MQTT 5, QoS 2", .v5, .exactlyOnce, messages: 100_000)
                }
            )
        }

        @Test("QoS 1 of MQTT 3.1.1: nothing is lost")
        func atLeastOnceOld() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    try await run("MQTT 3.1.1, QoS 1", .v3_1_1, .atLeastOnce, messages: 100_000)
                }
            )
        }

        @Test("QoS 2 of MQTT 3.1.1: nothing is lost, nothing comes twice")
        func exactlyOnceOld() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    try await run("MQTT 3.1.1, QoS 2", .v3_1_1, .exactlyOnce, messages: 100_000)
                }
            )
        }

        @Test("QoS 1, the broker killed 20 times: nothing is lost")
        func killedAtLeastOnce() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    try await run("MQTT 5, QoS 1, killed", .v5, .atLeastOnce, kills: 20)
                }
            )
        }

        @Test("QoS 2, the broker killed 20 times: nothing is lost, nothing comes twice")
        func killedExactlyOnce() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    try await run("MQTT 5, QoS 2, killed", .v5, .exactlyOnce, kills: 20)
                }
            )
        }
    }

    @Test(
        "A soak: nothing is lost, comes twice, or grows",
        .enabled(if: ChaosSettings.soakTime != nil, "WAYBILL_CHAOS_SOAK=600, in seconds")
    )
    func soak() async {
        ChaosRun.show(
            await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await run(
                    "soak",
                    .v5,
                    .exactlyOnce,
                    for: ChaosSettings.soakTime ?? .zero
                )
            }
        )
    }

    private func run(
        _ name: String,
        _ version: MQTTConfiguration.Version,
        _ qos: QoS,
        kills: Int = 0,
        messages: Int = 20_000,
        for time: Duration = .zero
    ) async throws {
        let run = ChaosRun(name, messages: messages, faults: messages / 100, for: time)
        try await run { round in
            let kills = (kills + ChaosRun.roundCount - 1) / ChaosRun.roundCount
            return try await flow(name, round, version, qos, kills: kills)
        }
    }

    /// Sends messages from a publisher to a subscriber. Both are behind the proxy.
    private func flow(
        _ name: String,
        _ round: ChaosRun.Round,
        _ version: MQTTConfiguration.Version,
        _ qos: QoS,
        kills: Int
    ) async throws -> ChaosReport {
        let broker = try await PersistentBroker()
        defer { broker.kill() }
        // A message takes about 32 bytes in each direction.
        let plan = round.plan(messagesOfBytes: 40)
        let relapses = BrokerRelapses()
        let proxy = try ChaosProxy(to: broker.port, seed: round.seed, plan: plan)
        func transport(_ identifier: String) throws -> MQTTTransport {
            var configuration = MQTTConfiguration(version: version)
            configuration.clientIdentifier = identifier
            configuration.session.cleanStart = false
            configuration.session.expiry = version == .v5 ? .seconds(3_600) : nil
            configuration.keepAlive.interval = .seconds(10)
            configuration.wireLogger = identifier == "subscriber" ? relapses : nil
            configuration.timeouts.connect = .seconds(5)
            configuration.timeouts.confirmation = .seconds(60)
            configuration.limits.inFlight = 100
            configuration.reconnection.initialDelay = .milliseconds(5)
            configuration.reconnection.maximumDelay = .milliseconds(100)
            return try MQTTTransport(
                url: "mqtt://127.0.0.1:\(proxy.port)",
                configuration: configuration
            )
        }
        let lanes = 50
        let ledger = NumberedLedger(count: round.messages, lanes: lanes)
        round.whenStuck(tell: ledger, proxy, then: broker.kill)
        let (subscriber, publisher) = (try transport("subscriber"), try transport("publisher"))
        let provider = Provider<WireEntry>(transport: publisher)
        let begin = ContinuousClock.now
        let messages = try await Provider<WireEntry>(transport: subscriber)
            .messages(.subscribe("numbers", qos))
        try await provider.request(.connect())
        async let counted: Void = count(messages, in: ledger)
        async let killed: Void = kill(broker, kills, behind: proxy, ledger)
        proxy.rage()
        await round.send(in: lanes) { number in
            await send(number, qos, provider, ledger)
        }
        proxy.calm()
        try await killed
        try await provider.request(.send("end", to: "numbers", qos))
        try await counted
        let time = ContinuousClock.now - begin
        for transport in [subscriber, publisher] { await transport.shutdown() }
        proxy.close()
        await broker.stop()
        let report = ChaosReport(
            name,
            seed: round.seed,
            proxy.counts,
            ledger.verdict,
            reconnects: proxy.counts.connections - 2,
            time: time
        )
        let verdict = report.verdict
        #expect(verdict.successes == round.messages, "\(report.description)")
        #expect(verdict.unresolved == 0, "\(report.description)")
        #expect(verdict.resolvedTwice == 0, "\(report.description)")
        #expect(verdict.lost == 0, "\(report.description)")
        #expect(verdict.outOfOrder == 0, "\(report.description)")
        #expect(verdict.unknown == 0, "\(report.description)")
        if qos == .exactlyOnce {
            let note: Comment = "\(report.description), the broker relapsed \(relapses.count) times"
            #expect(verdict.twice <= relapses.count, note)
        }
        return report
    }

    /// Counts the messages up to the one with the text "end".
    private func count(_ messages: Messages<Message>, in ledger: NumberedLedger) async throws {
        defer { ledger.finish() }
        for try await message in messages {
            if message.text == "end" { return }
            ledger.arrived(message.text.flatMap { Int($0) })
        }
        Issue.record("the stream has ended by itself")
    }

    /// Kills the broker several times while messages flow.
    private func kill(
        _ broker: PersistentBroker,
        _ times: Int,
        behind proxy: ChaosProxy,
        _ ledger: NumberedLedger
    ) async throws {
        for time in 0..<times {
            await ledger.reached(ledger.count * (time + 1) / (times + 1))
            try await broker.killAndRestart(behind: proxy)
        }
    }

    /// Sends one message with a call that outlives connections.
    private func send(
        _ number: Int,
        _ qos: QoS,
        _ provider: Provider<WireEntry>,
        _ ledger: NumberedLedger
    ) async {
        while true {
            ledger.began(number)
            do {
                try await provider.request(.send(.init("\(number)"), to: "numbers", qos))
                return ledger.succeeded(number)
            } catch {
                ledger.failed(number, (error as? WaybillError)?.code.name ?? "\(error)")
                let code = (error as? WaybillError)?.code
                // A message that was never sent may be sent again.
                guard code == .connectionRefused || code == .notConnected else { return }
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
    }
#endif
