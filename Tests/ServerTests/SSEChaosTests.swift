#if os(Linux)
    import ChaosSupport
    import Testing
    import Waybill
    import WaybillSSE

    @Suite(
        "Event streams by nginx with nchan, through a network that breaks",
        .enabled(
            if: TestServers.port("NGINX") != nil && ChaosSettings.areWanted,
            "WAYBILL_CHAOS=1 Tests/Servers/with --install nginx -- swift test --no-parallel --filter 'ServerTests.*ChaosTests'"
        ),
        .timeLimit(.minutes(30))
    )
    struct SSEChaosTests {
        @Test("What is published arrives once and in order, whatever happens to the stream")
        func stream() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    let run = ChaosRun("event stream", messages: 100_000, faults: 1_000)
                    try await run { try await hear($0) }
                }
            )
        }

        @Test("Every send resolves once; what has succeeded is there, and nothing is there twice")
        func sends() async {
            ChaosRun.show(
                await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                    let run = ChaosRun("sends beside it", messages: 100_000, faults: 1_000)
                    try await run { try await say($0) }
                }
            )
        }
    }

    /// The server of these tests, reached directly and through a proxy.
    private struct Nchan {
        let channel = "chaos\(UInt64.random(in: 0 ... .max))"
        let proxy: ChaosProxy
        /// A client without the proxy.
        let direct: EventStreamClient
        /// A client through the proxy.
        let broken: EventStreamClient

        init(_ round: ChaosRun.Round, messagesOfBytes byteCount: Int) throws {
            let port = try #require(TestServers.port("NGINX"))
            proxy = try ChaosProxy(
                to: UInt16(port),
                seed: round.seed,
                plan: round.plan(messagesOfBytes: byteCount)
            )
            direct = try EventStreamClient("NGINX")
            broken = try EventStreamClient(url: "http://127.0.0.1:\(proxy.port)") {
                $0.reconnection.initialDelay = .milliseconds(1)
                // Longer than any stall. The server sends a ping every second.
                $0.timeouts.silence = .seconds(5)
                $0.timeouts.connect = .seconds(5)
                $0.timeouts.confirmation = .seconds(5)
            }
        }

        var listen: EventStreamEntry { .listen("/events/\(channel)") }

        func post(_ text: String) -> EventStreamEntry { .post(text, to: "/publish/\(channel)") }

        /// Closes the transports, and deletes the messages on the server.
        func close(
            _ name: String,
            _ round: ChaosRun.Round,
            _ ledger: NumberedLedger,
            since begin: ContinuousClock.Instant
        ) async throws -> ChaosReport {
            let time = ContinuousClock.now - begin
            await broken.transport.shutdown()
            try await direct.provider.request(.forget("/publish/\(channel)"))
            await direct.transport.shutdown()
            proxy.close()
            return ChaosReport(
                name,
                seed: round.seed,
                proxy.counts,
                ledger.verdict,
                reconnects: proxy.counts.connections - 1,
                time: time
            )
        }
    }

    /// Counts the messages of a stream up to the one with the text "end".
    private func count(_ messages: Messages<Message>, in ledger: NumberedLedger) async throws {
        defer { ledger.finish() }
        for try await message in messages {
            if message.text == "end" { return }
            ledger.arrived(message.text.flatMap { Int($0) })
        }
        Issue.record("the stream has ended by itself")
    }

    /// Publishes messages directly, and receives them through the proxy.
    private func hear(_ round: ChaosRun.Round) async throws -> ChaosReport {
        // `id: 1795224577:3`, `data: 12345` and an empty line.
        let nchan = try Nchan(round, messagesOfBytes: 34)
        let ledger = NumberedLedger(count: round.messages)
        round.whenStuck(tell: ledger, nchan.proxy)
        let begin = ContinuousClock.now
        let messages = try await nchan.broken.provider.messages(nchan.listen)
        async let counted: Void = count(messages, in: ledger)
        nchan.proxy.rage()
        for number in 0..<round.messages {
            ledger.began(number)
            try await nchan.direct.provider.request(nchan.post("\(number)"))
            ledger.succeeded(number)
            // The server keeps 20,000 messages.
            if number.isMultiple(of: 500) { await ledger.reached(number - 5_000) }
        }
        await ledger.reached(round.messages - 1)
        nchan.proxy.calm()
        try await nchan.direct.provider.request(nchan.post("end"))
        try await counted
        let report = try await nchan.close("event stream", round, ledger, since: begin)
        let verdict = report.verdict
        #expect(verdict.arrived == round.messages, "\(report.description)")
        #expect(verdict.lost == 0, "\(report.description)")
        #expect(verdict.twice == 0, "\(report.description)")
        #expect(verdict.outOfOrder == 0, "\(report.description)")
        #expect(verdict.unknown == 0, "\(report.description)")
        return report
    }

    /// Sends each message once through the proxy, from several tasks, and receives them directly.
    private func say(_ round: ChaosRun.Round) async throws -> ChaosReport {
        let nchan = try Nchan(round, messagesOfBytes: 350)
        let lanes = 8
        let ledger = NumberedLedger(count: round.messages, lanes: lanes)
        round.whenStuck(tell: ledger, nchan.proxy)
        let begin = ContinuousClock.now
        let messages = try await nchan.direct.provider.messages(nchan.listen)
        async let counted: Void = count(messages, in: ledger)
        nchan.proxy.rage()
        await round.send(in: lanes) { number in
            await send(number, nchan.post("\(number)"), nchan.broken, ledger)
        }
        nchan.proxy.calm()
        try await nchan.direct.provider.request(nchan.post("end"))
        try await counted
        let report = try await nchan.close("sends beside it", round, ledger, since: begin)
        let verdict = report.verdict
        #expect(verdict.successes + verdict.failures == round.messages, "\(report.description)")
        #expect(verdict.unresolved == 0, "\(report.description)")
        #expect(verdict.resolvedTwice == 0, "\(report.description)")
        #expect(verdict.lost == 0, "\(report.description)")
        #expect(verdict.twice == 0, "\(report.description)")
        #expect(verdict.unknown == 0, "\(report.description)")
        // Most calls must succeed.
        #expect(verdict.successes > round.messages / 2, "\(report.description)")
        return report
    }

    /// Makes one call and records its outcome.
    private func send(
        _ number: Int,
        _ entry: EventStreamEntry,
        _ client: EventStreamClient,
        _ ledger: NumberedLedger
    ) async {
        ledger.began(number)
        do {
            try await client.provider.request(entry)
            ledger.succeeded(number)
        } catch {
            ledger.failed(number, (error as? WaybillError)?.code.name ?? "\(error)")
            let code = (error as? WaybillError)?.code
            if code != .connectionLost && code != .connectionRefused { Issue.record(error) }
            // While the proxy refuses connections, each further number would fail at once.
            if code == .connectionRefused { try? await Task.sleep(for: .milliseconds(20)) }
        }
    }
#endif
