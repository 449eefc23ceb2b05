import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Numbers of the app's choice beside those of the transport.
@Suite(
    "MQTT transport: subscription identifiers of the app",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct SubscriptionIdentifierTests {
    private static func subscribe(_ topic: String, _ number: UInt32) -> AnyEntry {
        .subscribe(topic: topic, qos: .atLeastOnce, .subscriptionIdentifier(.number(number)))
    }

    @Test("An automatic number is taken for filters with a common topic, and free for others")
    func automatic() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("82 0B 0001 02 0B 01 0003 612F23 01" as Hex).bytes),
            .reply(("90 04 0001 00 01" as Hex).bytes),
            .expect(("82 0B 0002 02 0B 02 0003 612F62 01" as Hex).bytes),
            .reply(("90 04 0002 00 01" as Hex).bytes),
            // A copy for each of the two (MQTT 5, 3.3.4).
            .reply(("30 09 0003 612F62 02 0B 01 78" as Hex).bytes),
            .reply(("30 09 0003 612F62 02 0B 02 78" as Hex).bytes),
            .expect(("82 09 0003 02 0B 01 0001 62 01" as Hex).bytes),
            .reply(("90 04 0003 00 01" as Hex).bytes),
            .reply(("30 09 0003 612F63 02 0B 01 79" as Hex).bytes),
            .reply(("30 07 0001 62 02 0B 01 7A" as Hex).bytes)
        )
        let (transport, _) = try scripted([script], version: .v5) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        let wide = try await provider.messages(.subscribe(topic: "a/#", qos: .atLeastOnce))
        await expectError(.invalidEntry) {
            try await provider.messages(Self.subscribe("a/b", 1))
        }
        let narrow = try await provider.messages(Self.subscribe("a/b", 2))
        let apart = try await provider.messages(Self.subscribe("b", 1))
        var wideTexts = wide.makeAsyncIterator()
        #expect(try await wideTexts.next()?.text == "x")
        #expect(try await wideTexts.next()?.text == "y")
        var narrowTexts = narrow.makeAsyncIterator()
        #expect(try await narrowTexts.next()?.text == "x")
        var apartTexts = apart.makeAsyncIterator()
        #expect(try await apartTexts.next()?.text == "z")
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A message of the number's former subscription does not reach the new one")
    func usedAgain() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("82 09 0001 02 0B 07 0001 61 01" as Hex).bytes),
            .reply(("90 04 0001 00 01" as Hex).bytes),
            .expect(("A2 06 0002 00 0001 61" as Hex).bytes),
            .expect(("82 09 0003 02 0B 07 0001 62 01" as Hex).bytes),
            // The server has sent it before it read UNSUBSCRIBE.
            .reply(("30 07 0001 61 02 0B 07 78" as Hex).bytes),
            .reply(("B0 04 0002 00 00" as Hex).bytes),
            .reply(("90 04 0003 00 01" as Hex).bytes),
            .reply(("30 07 0001 62 02 0B 07 79" as Hex).bytes)
        )
        let (transport, _) = try scripted([script], version: .v5) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        let first = try await provider.messages(Self.subscribe("a", 7))
        first.cancel()
        let second = try await provider.messages(Self.subscribe("b", 7))
        var iterator = second.makeAsyncIterator()
        let message = try await iterator.next()
        #expect(message?.topic == "b")
        #expect(message?[.subscriptionIdentifiers] == [7])
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("Nor does it reach one whose number the transport has taken: that is another one")
    func usedByTransport() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("82 09 0001 02 0B 01 0001 61 01" as Hex).bytes),
            .reply(("90 04 0001 00 01" as Hex).bytes),
            .expect(("A2 06 0002 00 0001 61" as Hex).bytes),
            .expect(("82 09 0003 02 0B 02 0001 62 01" as Hex).bytes),
            .reply(("B0 04 0002 00 00" as Hex).bytes),
            .reply(("90 04 0003 00 01" as Hex).bytes),
            .reply(("30 07 0001 61 02 0B 01 78" as Hex).bytes),
            .reply(("30 07 0001 62 02 0B 02 79" as Hex).bytes)
        )
        let (transport, _) = try scripted([script], version: .v5) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        try await provider.messages(Self.subscribe("a", 1)).cancel()
        let messages = try await provider.messages(.subscribe(topic: "b", qos: .atLeastOnce))
        try await waitUntil { script.isComplete || script.failures != [] }
        try #require(script.failures == [])
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        #expect(script.failures == [])
        await transport.shutdown()
    }
}
