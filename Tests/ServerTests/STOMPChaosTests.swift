#if os(Linux)
    import ChaosSupport
    import Testing
    import Waybill
    import WaybillSTOMP

    @Suite(
        "RabbitMQ through a network that breaks",
        .enabled(
            if: TestServers.port("RABBITMQ_STOMP") != nil && ChaosSettings.areWanted,
            "WAYBILL_CHAOS=1 Tests/Servers/with --install rabbitmq -- swift test --no-parallel --filter 'ServerTests.*ChaosTests'"
        ),
        .timeLimit(.minutes(30))
    )
    struct STOMPChaosTests {
        @Test("With receipts and client-individual acknowledgements nothing is lost")
        func nothingLost() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    let run = ChaosRun("STOMP", messages: 100_000, faults: 1_000)
                    try await run { try await flow($0) }
                }
            )
        }
    }

    /// Sends messages from a publisher, which repeats those without a receipt, to a subscriber.
    private func flow(_ round: ChaosRun.Round) async throws -> ChaosReport {
        let port = try #require(TestServers.port("RABBITMQ_STOMP"))
        // The size of SEND with its receipt, or of MESSAGE with its ACK.
        let plan = round.plan(messagesOfBytes: 330)
        let proxy = try ChaosProxy(to: UInt16(port), seed: round.seed, plan: plan)
        let queue = "/queue/waybill-chaos-\(UInt64.random(in: 0 ... .max))"
        func transport() throws -> STOMPTransport {
            var configuration = STOMPConfiguration()
            configuration.host = "/"
            configuration.userName = "guest"
            configuration.password = "guest"
            configuration.timeouts.connect = .seconds(5)
            configuration.reconnection.initialDelay = .milliseconds(5)
            configuration.reconnection.maximumDelay = .milliseconds(100)
            return try STOMPTransport(
                url: "stomp://127.0.0.1:\(proxy.port)",
                configuration: configuration
            )
        }
        let lanes = 50
        let ledger = NumberedLedger(count: round.messages, lanes: lanes)
        round.whenStuck(tell: ledger, proxy)
        let (subscriber, publisher) = (try transport(), try transport())
        let provider = Provider<FrameEntry>(transport: publisher)
        let begin = ContinuousClock.now
        let messages = try await Provider<FrameEntry>(transport: subscriber)
            .messages(.subscribe(queue, .clientIndividual, headers: ["prefetch-count": "500"]))
        try await provider.request(.connect)
        async let counted: Void = count(messages, in: ledger)
        proxy.rage()
        await round.send(in: lanes) { number in
            await send(number, queue, provider, ledger)
        }
        proxy.calm()
        // The broker delivers unacknowledged messages again, after the others in the queue.
        let limit = ContinuousClock.now + .seconds(30)
        while ledger.arrivedCount < round.messages, ContinuousClock.now < limit {
            try await Task.sleep(for: .milliseconds(20))
        }
        let time = ContinuousClock.now - begin
        for transport in [subscriber, publisher] { await transport.shutdown() }
        await counted
        proxy.close()
        let report = ChaosReport(
            "STOMP",
            seed: round.seed,
            proxy.counts,
            ledger.verdict,
            reconnects: proxy.counts.connections - 2,
            time: time
        )
        let verdict = report.verdict
        #expect(verdict.arrived == round.messages, "\(report.description)")
        #expect(verdict.successes == round.messages, "\(report.description)")
        #expect(verdict.unresolved == 0, "\(report.description)")
        #expect(verdict.resolvedTwice == 0, "\(report.description)")
        #expect(verdict.lost == 0, "\(report.description)")
        #expect(verdict.unknown == 0, "\(report.description)")
        return report
    }

    /// Counts the messages until the transport is shut down.
    private func count(_ messages: Messages<Message>, in ledger: NumberedLedger) async {
        defer { ledger.finish() }
        do {
            for try await message in messages { ledger.arrived(message.text.flatMap { Int($0) }) }
        } catch {
            if (error as? WaybillError)?.code != .shutDown { Issue.record(error) }
        }
    }

    /// Sends a message until a receipt confirms it.
    private func send(
        _ number: Int,
        _ queue: String,
        _ provider: Provider<FrameEntry>,
        _ ledger: NumberedLedger
    ) async {
        let retried: Set<WaybillError.Code> = [
            .connectionLost, .connectionRefused, .notConnected, .timedOut,
        ]
        while true {
            ledger.began(number)
            do {
                try await provider.request(
                    .send(.init("\(number)"), to: queue, headers: ["persistent": "true"])
                )
                return ledger.succeeded(number)
            } catch {
                ledger.failed(number, (error as? WaybillError)?.code.name ?? "\(error)")
                guard let error = error as? WaybillError, retried.contains(error.code) else {
                    Issue.record(error)
                    return
                }
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
    }
#endif
