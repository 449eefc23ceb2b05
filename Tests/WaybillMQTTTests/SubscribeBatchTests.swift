import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Several filters of one call, byte by byte.
@Suite("MQTT transport: several filters in a packet", .inSimulation, .timeLimit(.minutes(30)))
struct SubscribeBatchTests {
    /// SUBSCRIBE to `a` and `b`.
    private static let subscribe = ("82 0A 0001 0001 61 01 0001 62 01" as Hex).bytes

    @Test("One SUBSCRIBE for all, and the worst of what is granted")
    func onePacket() async throws {
        let script = ScriptedByteStream.accepted(
            .expect(Self.subscribe),
            .reply(("90 04 0001 01 00" as Hex).bytes),
            .reply(("30 04 0001 62 78" as Hex).bytes)
        )
        let (transport, _) = try scripted([script])
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            .subscribe(topics: ["a", "b"], qos: .atLeastOnce)
        )
        #expect(messages.grantedQoS == .atMostOnce)
        var iterator = messages.makeAsyncIterator()
        let message = try await iterator.next()
        #expect(message?.topic == "b" && message?.text == "x")
        await transport.shutdown()
    }

    @Test("One SUBSCRIBE for topics with different qualities of service, and the last byte tells")
    func qualities() async throws {
        let script = ScriptedByteStream.accepted(
            .expect(("82 0E 0001 0001 61 00 0001 62 01 0001 63 02" as Hex).bytes),
            .reply(("90 05 0001 00 01 02" as Hex).bytes)
        )
        let (transport, _) = try scripted([script])
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            .subscribe(
                topics: [
                    EntryTopic("a", qos: .atMostOnce), "b", EntryTopic("c", qos: .exactlyOnce),
                ],
                qos: .atLeastOnce
            )
        )
        #expect(messages.grantedQoS == .atMostOnce && script.failures == [])
        await transport.shutdown()
    }

    @Test("A refused filter fails the call, and the granted one is left")
    func refused() async throws {
        let script = ScriptedByteStream.accepted(
            .expect(Self.subscribe),
            .reply(("90 04 0001 01 80" as Hex).bytes),
            // UNSUBSCRIBE only from `a`.
            .expect(("A2 05 0002 0001 61" as Hex).bytes),
            .reply(("B0 02 0002" as Hex).bytes)
        )
        let (transport, _) = try scripted([script])
        let provider = Provider<AnyEntry>(transport: transport)
        let error = await #expect(throws: WaybillError.self) {
            _ = try await provider.messages(.subscribe(topics: ["a", "b"], qos: .atLeastOnce))
        }
        #expect(error?.topic == "b" && error?.code == .rejected)
        try await waitUntil { script.isComplete }
        await transport.shutdown()
    }
}
