import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Reconnections at servers that limit the filters of a packet.
@Suite("MQTT transport: filters in a packet", .inSimulation, .timeLimit(.minutes(30)))
struct FiltersPerPacketTests {
    private static let topics: [UInt8] = Array(0x61...0x69)

    /// SUBSCRIBE with QoS 1, or UNSUBSCRIBE.
    private static func packet(_ type: UInt8, _ identifier: UInt8, _ topics: some Sequence<UInt8>)
        -> [UInt8]
    {
        let filters = topics.flatMap { [0, 1, $0] + (type == 0x82 ? [1] : []) }
        return [type, UInt8(2 + filters.count), 0, identifier] + filters
    }

    private static func suback(_ identifier: UInt8, _ count: Int = 1) -> [UInt8] {
        [0x90, UInt8(2 + count), 0, identifier] + [UInt8](repeating: 1, count: count)
    }

    /// Subscribes to nine topics by calls of their own, and loses the connection and its session.
    private func reconnecting(
        _ next: [ScriptedByteStream.Step],
        filtersPerPacket: Int? = nil
    ) async throws -> (MQTTTransport, ScriptedByteStream, [Messages<Message>]) {
        var steps: [ScriptedByteStream.Step] = [.expect(Packet.connect), .reply(Packet.connack)]
        for (index, topic) in Self.topics.enumerated() {
            steps.append(.expect(Self.packet(0x82, UInt8(index + 1), [topic])))
            steps.append(.reply(Self.suback(UInt8(index + 1))))
        }
        let first = ScriptedByteStream(steps: steps + [.skip(6), .reset])
        let second = ScriptedByteStream(
            steps: [.expect(Packet.connect), .reply(Packet.connack)] + next
        )
        let clock = ManualClock()
        let (transport, _) = try scripted([first, second], clock: clock) {
            $0.limits.filtersPerPacket = filtersPerPacket
        }
        let provider = Provider<AnyEntry>(transport: transport)
        var messages: [Messages<Message>] = []
        for topic in Self.topics {
            let name = String(decoding: [topic], as: UTF8.self)
            messages.append(try await provider.messages(.subscribe(topic: name, qos: .atLeastOnce)))
        }
        // The script resets the connection after this message.
        try await provider.request(.send(topic: "t", body: .text("x")))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            second.hasReached(3)
        }
        return (transport, second, messages)
    }

    @Test("The calls' own packets are sent again, at most eight of them unconfirmed")
    func ownPackets() async throws {
        let packets = Self.topics.enumerated().map { index, topic in
            Self.packet(0x82, UInt8(index + 10), [topic])
        }
        let (transport, script, messages) = try await reconnecting([
            .expect(Array(packets[..<8].joined())),
            .reply(Self.suback(10)),
            .expect(packets[8]),
            .reply(Array((11...18).map { Self.suback($0) }.joined())),
        ])
        try await waitUntil { "\(transport.states.current)" == "connected" }
        #expect(script.isComplete && script.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    @Test("A stated number divides the filters of all calls, also those of an UNSUBSCRIBE")
    func stated() async throws {
        let groups = [Self.topics[0..<4], Self.topics[4..<8], Self.topics[8...]]
        var steps: [ScriptedByteStream.Step] = [
            .expect(
                Array(
                    groups.enumerated().map { Self.packet(0x82, UInt8($0 + 10), $1) }.joined()
                )
            ),
            .reply(Self.suback(10, 4) + Self.suback(11, 4) + Self.suback(12)),
        ]
        for (index, group) in groups.enumerated() {
            steps.append(.expect(Self.packet(0xA2, UInt8(index + 13), group)))
            steps.append(.reply([0xB0, 2, 0, UInt8(index + 13)]))
        }
        let (transport, script, messages) = try await reconnecting(steps, filtersPerPacket: 4)
        try await waitUntil { "\(transport.states.current)" == "connected" }
        let names = Self.topics.map { EntryTopic(String(decoding: [$0], as: UTF8.self)) }
        try await Provider<AnyEntry>(transport: transport)
            .request(AnyEntry(topics: names, command: .unsubscribe))
        #expect(script.isComplete && script.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    /// Two connections: the first one ends after these steps, and the second one follows the others.
    private func client(
        _ first: [ScriptedByteStream.Step],
        _ second: [ScriptedByteStream.Step],
        _ clock: ManualClock
    ) throws -> (MQTTTransport, Provider<AnyEntry>, ScriptedByteStream) {
        let opening: [ScriptedByteStream.Step] = [.expect(Packet.connect), .reply(Packet.connack)]
        let next = ScriptedByteStream(steps: opening + second)
        let (transport, _) = try scripted(
            [ScriptedByteStream(steps: opening + first), next],
            clock: clock
        )
        return (transport, Provider<AnyEntry>(transport: transport), next)
    }

    @Test("A call that the server has answered by closing decides no packet of the next connection")
    func refusedByClosing() async throws {
        let clock = ManualClock()
        let (transport, provider, next) = try client(
            [
                .expect(Self.packet(0x82, 1, [0x61])), .reply(Self.suback(1)),
                .expect(Self.packet(0x82, 2, [0x62])), .reply(Self.suback(2)),
                // The same filters in one packet, for a better quality of service.
                .skip(12), .reset,
            ],
            [
                .expect(Self.packet(0x82, 4, [0x61]) + Self.packet(0x82, 5, [0x62])),
                .reply(Self.suback(4) + Self.suback(5)),
            ],
            clock
        )
        let first = try await provider.messages(.subscribe(topic: "a", qos: .atLeastOnce))
        let second = try await provider.messages(.subscribe(topic: "b", qos: .atLeastOnce))
        await expectError(.connectionLost) {
            _ = try await provider.messages(.subscribe(topics: ["a", "b"], qos: .exactlyOnce))
        }
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            "\(transport.states.current)" == "connected"
        }
        #expect(next.isComplete && next.failures == [])
        await transport.shutdown()
        withExtendedLifetime((first, second)) {}
    }

    @Test("A filter that is left while the window is full is not sent any more")
    func leftMeanwhile() async throws {
        let clock = ManualClock()
        var steps: [ScriptedByteStream.Step] = []
        for (index, topic) in Self.topics.enumerated() {
            steps.append(.expect(Self.packet(0x82, UInt8(index + 1), [topic])))
            steps.append(.reply(Self.suback(UInt8(index + 1))))
        }
        let restored = Self.topics[..<8].enumerated().map { index, topic in
            Self.packet(0x82, UInt8(index + 10), [topic])
        }
        let (transport, provider, next) = try client(
            steps + [.skip(6), .reset],
            [
                .expect(Array(restored.joined())),
                .expect(Self.packet(0xA2, 18, [0x69])),
                .reply([0xB0, 2, 0, 18] + Array((10...17).map { Self.suback($0) }.joined())),
            ],
            clock
        )
        var messages: [Messages<Message>] = []
        for topic in Self.topics {
            let name = String(decoding: [topic], as: UTF8.self)
            messages.append(try await provider.messages(.subscribe(topic: name, qos: .atLeastOnce)))
        }
        try await provider.request(.send(topic: "t", body: .text("x")))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) { next.hasReached(3) }
        messages.removeLast().cancel()
        try await waitUntil { "\(transport.states.current)" == "connected" }
        await untilQuiet()
        #expect(next.isComplete && next.failures == [])
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }
}
