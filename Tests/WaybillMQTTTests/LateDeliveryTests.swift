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
        _ scripts: [ScriptedByteStream],
        clock: ManualClock = ManualClock(),
        _ change: (inout LateDeliveryPolicy) -> Void
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        var policy = LateDeliveryPolicy()
        change(&policy)
        return try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
            $0.session.lateDelivery = policy
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
        let (transport, provider) = try client([script], clock: clock) {
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
        let (transport, provider) = try client([script], clock: clock) {
            $0.timeToLive = .seconds(5)
        }
        try await provider.request(.connect)
        await untilQuiet()
        clock.advance(by: .milliseconds(4_999))
        #expect(!script.isComplete)
        clock.advance(by: .milliseconds(1))
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    /// PUBLISH with the body `a`.
    private static func publish(
        _ topic: Character,
        _ identifier: UInt8,
        qos: UInt8,
        isRepeated: Bool = false
    ) -> [UInt8] {
        var packet: [UInt8] = [0x30, 6, 0, 1]
        packet[0] |= qos << 1
        if isRepeated { packet[0] |= 8 }
        packet += Array(String(topic).utf8)
        return packet + [0, identifier, 0x61]
    }

    @Test(
        "What finds no room is left to the server, and comes with another connection",
        arguments: [1, 2],
        [true, false]
    )
    func limits(qos: UInt8, byCount: Bool) async throws {
        let confirm: UInt8 = qos == 1 ? 0x40 : 0x50
        let first = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(
                Packet.resumed + Self.publish("t", 1, qos: qos) + Self.publish("u", 2, qos: qos)
            ),
            .expect(Packet.subscribe),
            .reply(Packet.suback),
            .expect([0xE0, 0]),
            .finish
        )
        let again = Self.publish("t", 1, qos: qos, isRepeated: true)
        let second = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Packet.resumed + again + Self.publish("u", 2, qos: qos, isRepeated: true)),
            .expect([confirm, 2, 0, 1]),
            .expect([confirm, 2, 0, 2])
        )
        let clock = ManualClock()
        let (transport, provider) = try client([first, second], clock: clock) { policy in
            policy.timeToLive = .seconds(20)
            if byCount { policy.messageLimit = 1 } else { policy.byteLimit = 600 }
        }
        try await provider.request(.connect)
        await untilQuiet()
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            second.hasReached(2) || first.failures + second.failures != []
        }
        #expect(try await iterator.next()?.text == "a")
        // The time of the other one.
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) {
            second.isComplete || second.failures != []
        }
        #expect(first.failures + second.failures == [])
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("By default they are kept where the server keeps the session")
    func byDefault() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Self.resumed),
            .expect(Packet.subscribe),
            .reply(Packet.suback),
            .expect(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script]) { $0.session.cleanStart = false }
        try await provider.connect()
        await untilQuiet()
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil { script.isComplete }
        #expect(script.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    @Test(
        "An end by the app acknowledges nothing: the next connection gets them",
        arguments: [1, 2]
    )
    func disconnected(qos: UInt8) async throws {
        let first = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Packet.resumed + Self.publish("t", 1, qos: qos)),
            .expect([0xE0, 0]),
            .finish
        )
        let second = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Packet.resumed + Self.publish("t", 1, qos: qos, isRepeated: true)),
            .expect(Packet.subscribe),
            .reply(Packet.suback),
            .expect([qos == 1 ? 0x40 : 0x50, 2, 0, 1])
        )
        let (transport, provider) = try scripted([first, second]) { $0.session.cleanStart = false }
        try await provider.connect()
        await untilQuiet()
        try await provider.disconnect()
        try await provider.connect()
        await untilQuiet()
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(first.failures + second.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    @Test("A subscription that the server refuses gives them back", arguments: [1, 2])
    func refused(qos: UInt8) async throws {
        let confirm: UInt8 = qos == 1 ? 0x40 : 0x50
        let script = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Packet.resumed + Self.publish("t", 1, qos: qos)),
            .expect(Packet.subscribe),
            .reply(("90 03 0001 80" as Hex).bytes),
            .expect(("82 06 0002 0001 74 01" as Hex).bytes),
            .reply(("90 03 0002 01" as Hex).bytes),
            .expect([confirm, 2, 0, 1])
        )
        let (transport, provider) = try scripted([script]) { $0.session.cleanStart = false }
        try await provider.connect()
        await untilQuiet()
        await expectError(.rejected) {
            try await provider.messages(.subscribe(qos: .atLeastOnce))
        }
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    @Test("What the app has left itself is not held")
    func left() async throws {
        let script = ScriptedByteStream.subscribed(
            .new,
            .expect(("A2 05 0002 0001 74" as Hex).bytes),
            .reply(Self.publish("t", 1, qos: 1)),
            .expect(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script]) { $0.session.cleanStart = false }
        var messages: Messages<Message>? = try await provider.messages(
            .subscribe(qos: .atLeastOnce)
        )
        #expect(messages != nil)
        messages?.cancel()
        messages = nil
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("Each message that nobody takes is told with its topic", arguments: [true, false])
    func told(keepsSession: Bool) async throws {
        let script = ScriptedByteStream(
            .expect(keepsSession ? Packet.lastingConnect : Packet.connect),
            .reply(keepsSession ? Self.resumed : Packet.connack + Self.resumed.dropFirst(4)),
            .expect(("40 02 0001 40 02 0002" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try scripted([script], clock: clock) {
            $0.session.cleanStart = !keepsSession
            // Before the first PINGREQ.
            $0.session.lateDelivery.timeToLive = .seconds(20)
        }
        var events = provider.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) {
            script.isComplete || script.failures != []
        }
        #expect(script.failures == [])
        var topics: [String?] = []
        while topics.count < 2, let event = await events.next() {
            guard event.dropReason == .noListener else { continue }
            #expect(event.kind == .dropped && event.byteCount == 1)
            topics.append(event.topic)
        }
        #expect(topics == ["t", "u"])
        await transport.shutdown()
    }

    @Test(
        "A message behind the end of its subscription is told, although one before had a listener"
    )
    func behindTheEnd() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.connect),
            .reply(Packet.connack),
            .expect(Packet.subscribe),
            .reply(Packet.suback + ("30 04 0001 74 61" as Hex).bytes),
            .expect(("A2 05 0002 0001 74" as Hex).bytes),
            .reply(("30 04 0001 74 62 B0 02 0002" as Hex).bytes),
            .expect([0xE0, 0]),
            .finish
        )
        let (transport, provider) = try scripted([script])
        var events = provider.events.makeAsyncIterator()
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        for try await message in messages {
            #expect(message.text == "a")
            break
        }
        messages.cancel()
        await untilQuiet()
        await transport.shutdown()
        #expect(script.isComplete && script.failures == [])
        var topics: [String?] = []
        while let event = await events.next() {
            if event.dropReason == .noListener { topics.append(event.topic) }
            if event.kind == .disconnected { break }
        }
        #expect(topics == ["t"])
    }

    /// A message of QoS 1 without a body, whose topic has 60,000 bytes.
    private static func longTopic(_ packetIdentifier: UInt8) -> [UInt8] {
        // A remaining length of 60,004, then the length of the topic.
        [0x32, 0xE4, 0xD4, 0x03, 0xEA, 0x60] + [UInt8](repeating: 0x78, count: 60_000)
            + [0, packetIdentifier]
    }

    @Test("A topic takes room, too")
    func topics() async throws {
        let first = ScriptedByteStream(
            .expect(Packet.lastingConnect),
            .reply(Packet.resumed + Self.longTopic(1) + Self.longTopic(2)),
            .expect(Packet.subscribe),
            .reply(Packet.suback),
            .expect([0xE0, 0]),
            .finish
        )
        let (transport, provider) = try client([first]) { $0.byteLimit = 100_000 }
        try await provider.request(.connect)
        await untilQuiet()
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        try await waitUntil { first.isComplete || first.failures != [] }
        #expect(first.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }
}
