import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// A server that resumes a session before the app has subscribed.
@Suite("MQTT transport: late subscribers", .inSimulation, .timeLimit(.minutes(30)))
struct LateDeliveryTests {
    /// A session that is present, and two messages of QoS 1: `a` to `t` and `b` to `u`.
    private static let resumed =
        ("20 02 01 00 32 06 0001 74 0001 61 32 06 0001 75 0002 62" as Hex).bytes

    private func client(
        _ script: ScriptedByteStream,
        clock: ManualClock = ManualClock(),
        _ change: (inout LateDeliveryPolicy) -> Void
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        var policy = LateDeliveryPolicy()
        change(&policy)
        return try scripted([script], clock: clock) {
            $0.cleanStart = false
            $0.lateDelivery = policy
        }
    }

    @Test("A subscriber in time gets the earlier messages in order, and they are acknowledged then")
    func inTime() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Self.resumed + ("32 06 0001 74 0003 63" as Hex).bytes),
            .expect(Packet.subscribe),
            .reply(Packet.suback),
            // In the order of arrival (4.6.0-2): the acknowledgement of a later message waits for the earlier one.
            .expect(("40 02 0001" as Hex).bytes),
            .expect(("40 02 0002 40 02 0003" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try client(script, clock: clock) {
            $0.timeToLive = .seconds(30)
        }
        try await provider.request(.connect)
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        #expect(try await iterator.next()?.text == "c")
        await untilQuiet()
        clock.advance(by: .seconds(30))
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    @Test("Without a subscriber in time, the messages are acknowledged at the end of the time")
    func tooLate() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Self.resumed),
            .expect(("40 02 0001 40 02 0002" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try client(script, clock: clock) { $0.timeToLive = .seconds(5) }
        try await provider.request(.connect)
        await untilQuiet()
        clock.advance(by: .milliseconds(4_999))
        #expect(!script.isComplete)
        clock.advance(by: .milliseconds(1))
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("What finds no room goes, the oldest first", arguments: [true, false])
    func limits(byCount: Bool) async throws {
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Self.resumed),
            .expect(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try client(script) { policy in
            if byCount { policy.messageLimit = 1 } else { policy.byteLimit = 500 }
        }
        try await provider.request(.connect)
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    /// A message of QoS 1 without a body, whose topic has 60,000 bytes.
    private static func longTopic(_ packetIdentifier: UInt8) -> [UInt8] {
        // A remaining length of 60,004, then the length of the topic.
        [0x32, 0xE4, 0xD4, 0x03, 0xEA, 0x60] + [UInt8](repeating: 0x78, count: 60_000)
            + [0, packetIdentifier]
    }

    @Test("A topic takes room, too")
    func topics() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(
                Packet.resumed + Self.longTopic(1) + Self.longTopic(2)
            ),
            .expect(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try client(script) { $0.byteLimit = 100_000 }
        try await provider.request(.connect)
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A message for which room cannot be made is not kept, and takes no room from others")
    func tooLong() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Self.resumed + Self.longTopic(3)),
            .expect(Packet.subscribe),
            .reply(Packet.suback),
            .expect(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try client(script) { $0.byteLimit = 10_000 }
        try await provider.request(.connect)
        await untilQuiet()
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }
}
