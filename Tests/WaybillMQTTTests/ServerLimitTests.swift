import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Filters within the limits that a server states in CONNACK.
@Suite(
    "MQTT transport: filters within the limits of the server",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct ServerLimitTests {
    private static let topics = (1...5).map { "building/\($0)/temperature" }
    /// CONNACK with a Maximum Packet Size of 64.
    private static let small = ("20 08 00 00 05 27 00000040" as Hex).bytes

    @Test("Filters that do not fit into one SUBSCRIBE are divided")
    func subscribe() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(Self.small),
            .skip(57),
            .reply(("90 05 0001 00 01 01" as Hex).bytes),
            .skip(57),
            .reply(("90 05 0002 00 01 01" as Hex).bytes),
            .skip(32),
            .reply(("90 04 0003 00 00" as Hex).bytes)
        )
        let (transport, _) = try scripted([script], version: .v5) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            .subscribe(topics: Self.topics.map { EntryTopic($0) }, qos: .atLeastOnce)
        )
        #expect(messages.grantedQoS == .atMostOnce)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("An UNSUBSCRIBE is divided, too, and a refusal of one packet does not keep the others")
    func unsubscribe() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(Self.small),
            .skip(53),
            .reply(("B0 05 0001 00 00 87" as Hex).bytes),
            .skip(53),
            .reply(("B0 05 0002 00 83 00" as Hex).bytes),
            .skip(29),
            .reply(("B0 04 0003 00 00" as Hex).bytes)
        )
        let (transport, _) = try scripted([script], version: .v5) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        try await provider.request(.connect)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.unsubscribe(topics: Self.topics.map { EntryTopic($0) }))
        }
        #expect(error?.topic == Self.topics[1], "the first refusal")
        #expect(script.isComplete)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A filter that the next server does not support ends its own stream; the others live on")
    func restoring() async throws {
        let clock = ManualClock()
        let first = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .skip(11),
            .reply(("90 04 0001 00 01" as Hex).bytes),
            .skip(20),
            .reply(("90 04 0002 00 01" as Hex).bytes),
            .skip(5),
            .reset
        )
        let second = ScriptedByteStream(
            .skip(16),
            // Without shared subscriptions.
            .reply(("20 05 00 00 02 2A 00" as Hex).bytes),
            .expect(("82 09 0003 02 0B 01 0001 74 01" as Hex).bytes),
            .reply(("90 04 0003 00 01" as Hex).bytes),
            .reply(("30 07 0001 74 02 0B 01 7A" as Hex).bytes)
        )
        let (transport, _) = try scripted([first, second], version: .v5, clock: clock) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        let plain = try await provider.messages(.subscribe(topic: "t", qos: .atLeastOnce))
        let shared = try await provider.messages(
            AnyEntry.subscribe(topics: ["t"], qos: .atLeastOnce, options: [.shareName("g")])
        )
        try await provider.request(.send(topic: "x", body: .none))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(100)) }) {
            second.isComplete || second.failures != []
        }
        #expect(second.failures == [])
        var iterator = plain.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "z")
        let error = await expectError(.unsupported) {
            for try await _ in shared { Issue.record("no message was sent") }
        }
        #expect(error?.topic == "$share/g/t")
        try await waitUntil { transport.states.current == .connected }
        await transport.shutdown()
    }
}
