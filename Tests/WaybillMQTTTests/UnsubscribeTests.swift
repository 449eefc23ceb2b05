import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

@Suite(
    "MQTT transport: what UNSUBSCRIBE and CONNECT carry",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct UnsubscribeTests {
    private struct Log: WireLogger {
        let lines = LineLog()

        func log(_ record: WireRecord) { lines.append(record.line) }
    }

    @Test("Headers of an unsubscribe are its user properties (MQTT 5, 3.10.2.1.2)")
    func headers() async throws {
        let script = ScriptedByteStream(
            .skip(27),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("A2 0D 0001 07 26 0001 6E 0001 76 0001 74" as Hex).bytes),
            .reply(("B0 04 0001 00 00" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5)
        try await provider.request(.connect)
        let entry = MQTTEntry.command(.unsubscribe, topic: "t", headers: ["n": "v"])
        try await provider.request(entry)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A confirmation ends the streams although the caller no longer waits")
    func cancelled() async throws {
        let log = Log()
        let script = ScriptedByteStream.subscribed(
            .new,
            .expect(("A2 05 0002 0001 74" as Hex).bytes),
            // The server confirms nothing before this message.
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reply(("B0 02 0002" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script]) {
            $0.session.cleanStart = false
            $0.wireLogger = log
        }
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        let task = Task { try await provider.request(.command(.unsubscribe, topic: "t")) }
        try await waitUntil { log.lines.count("UNSUBSCRIBE") == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await provider.request(.send("y", to: "x"))
        for try await _ in messages { Issue.record("no message was sent") }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("An unsubscribe with headers needs a connection: the next one would not carry them")
    func headersWhileAway() async throws {
        let fixture = try Fixture()
        let transport = try fixture.transport { $0.reconnection = ReconnectionPolicy() }
        let provider = Provider<MQTTEntry>(transport: transport)
        try await provider.request(.connect)
        await fixture.broker.stop()
        try await waitUntil { "\(transport.states.current)" != "connected" }
        await expectError(.notConnected) {
            try await provider.request(
                .command(.unsubscribe, topic: "t", headers: ["n": "v"])
            )
        }
        await transport.shutdown()
    }

    @Test("The identifier that the server assigns is in the receipt and in each reconnection")
    func assignedIdentifier() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider {
            $0.clientIdentifier = ""
            $0.reconnection = ReconnectionPolicy()
            $0.reconnection.initialDelay = .zero
        }
        let receipt = try await provider.request(.connect)
        let identifier = try #require(receipt.clientIdentifier)
        #expect(identifier.hasPrefix("loopback-"))
        for round in 1...2 {
            fixture.broker.dropConnections()
            try await waitUntil { fixture.lines.count("CONNACK") > round }
            #expect(fixture.lines.count("← CONNECT client=\(identifier) ") == round)
        }
        await fixture.end(transport)
    }

    @Test("The client's own identifier is in the receipt, too", arguments: versions)
    func ownIdentifier(version: MQTTConfiguration.Version) async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider(version) { $0.clientIdentifier = "ada" }
        #expect(try await provider.request(.connect).clientIdentifier == "ada")
        await fixture.end(transport)
    }
}
