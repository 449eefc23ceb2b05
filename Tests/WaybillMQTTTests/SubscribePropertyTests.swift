import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// A transport of MQTT 5 over connections that begin with CONNECT and CONNACK, and then follow the steps.
private func connected(
    _ steps: ScriptedByteStream.Step...,
    connack: Hex = "20 03 00 00 00"
) throws -> (ScriptedByteStream, MQTTTransport, Provider<AnyEntry>) {
    let script = ScriptedByteStream(steps: [.skip(16), .reply(connack.bytes)] + steps)
    let (transport, _) = try scripted([script], version: .v5) {
        bare(&$0)
        $0.reconnection = .never
    }
    return (script, transport, Provider(transport: transport))
}

private func bytes(_ hex: Hex) -> [UInt8] { hex.bytes }

/// Properties of SUBSCRIBE and UNSUBSCRIBE (MQTT 5, 3.8 and 3.10).
@Suite(
    "MQTT transport: properties of SUBSCRIBE and UNSUBSCRIBE",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct SubscribePropertyTests {
    static let rows: [(String, [String], [SubscribeOption], Headers, Hex)] = [
        (
            "an identifier of the transport", ["t"], [], [:],
            "82 09 0001 02 0B 01 0001 74 01"
        ),
        (
            "no identifier", ["t"],
            [.subscriptionIdentifier(.omitted)], [:],
            "82 07 0001 00 0001 74 01"
        ),
        (
            "a chosen identifier", ["t"],
            [.subscriptionIdentifier(300)], [:],
            "82 0A 0001 03 0B AC02 0001 74 01"
        ),
        (
            "the highest identifier", ["t"],
            [.subscriptionIdentifier(268_435_455)], [:],
            "82 0C 0001 05 0B FFFFFF7F 0001 74 01"
        ),
        (
            "user properties", ["t"], [], ["k": "v"],
            "82 10 0001 09 0B 01 26 0001 6B 0001 76 0001 74 01"
        ),
        (
            "a share name", ["t"], [.shareName("g")], [:],
            "82 12 0001 02 0B 01 000A 24 7368617265 2F 67 2F 74 01"
        ),
        (
            "two filters in one packet", ["a", "b"], [], [:],
            "82 0D 0001 02 0B 01 0001 61 01 0001 62 01"
        ),
        (
            "two filters without an identifier", ["a", "b"],
            [.subscriptionIdentifier(.omitted)], [:],
            "82 0B 0001 00 0001 61 01 0001 62 01"
        ),
        (
            "two shared filters", ["a", "b"],
            [.shareName("g")],
            [:],
            """
            82 1F 0001 02 0B 01 000A 24 7368617265 2F 67 2F 61 01 000A 24 7368617265 2F 67 2F 62 01
            """
        ),
        (
            "filters that overlap, each in a packet", ["a/+", "a/b"],
            [], [:],
            "82 0B 0001 02 0B 01 0003 612F2B 01 82 0B 0002 02 0B 02 0003 612F62 01"
        ),
        (
            "filters that overlap, with a chosen identifier", ["a/+", "a/b"],
            [.subscriptionIdentifier(7)], [:],
            "82 11 0001 02 0B 07 0003 612F2B 01 0003 612F62 01"
        ),
    ]

    @Test("The bytes of SUBSCRIBE", arguments: rows)
    func subscribe(
        _ name: String,
        _ topics: [String],
        _ options: [SubscribeOption],
        _ headers: Headers,
        _ packet: Hex
    ) async throws {
        // Two packets are answered by two SUBACKs.
        let isDivided =
            packet.bytes.count > 30 && options.isEmpty || packet.bytes.count == 26
        let single: Hex = topics.count == 1 ? "90 04 0001 00 01" : "90 05 0001 00 01 01"
        let suback: Hex = isDivided ? "90 04 0001 00 01 90 04 0002 00 01" : single
        let (script, transport, provider) = try connected(
            .expect(packet.bytes),
            .reply(suback.bytes)
        )
        let entry = AnyEntry.subscribe(
            topics: topics.map { EntryTopic($0) },
            headers: headers,
            qos: .atLeastOnce,
            options: options
        )
        let messages = try await provider.messages(entry)
        #expect(messages.grantedQoS == .atLeastOnce)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    static let left: [(String, [String], [UnsubscribeOption], Headers, Hex, Hex)] = [
        (
            "one", ["a"], [], [:], "A2 06 0001 00 0001 61", "B0 04 0001 00 00"
        ),
        (
            "two", ["a", "b"], [], [:], "A2 09 0001 00 0001 61 0001 62",
            "B0 05 0001 00 00 11"
        ),
        (
            "user properties", ["a"], [], ["k": "v"],
            "A2 0D 0001 07 26 0001 6B 0001 76 0001 61", "B0 04 0001 00 00"
        ),
        (
            "a share name", ["t"], [.shareName("g")], [:],
            "A2 0F 0001 00 000A 24 7368617265 2F 67 2F 74", "B0 04 0001 00 00"
        ),
    ]

    @Test("The bytes of UNSUBSCRIBE", arguments: left)
    func unsubscribe(
        _ name: String,
        _ topics: [String],
        _ options: [UnsubscribeOption],
        _ headers: Headers,
        _ packet: Hex,
        _ unsuback: Hex
    ) async throws {
        let (script, transport, provider) = try connected(
            .expect(packet.bytes),
            .reply(unsuback.bytes)
        )
        try await provider.request(.connect)
        let receipt = try await provider.request(
            .unsubscribe(topics: topics.map { EntryTopic($0) }, headers: headers, options: options)
        )
        #expect(receipt.reason == (topics.count == 2 ? "No subscription existed (0x11)" : nil))
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("Of several filters to leave, the refused one keeps its stream, and is in the error")
    func refusedToLeave() async throws {
        let (script, transport, provider) = try connected(
            .expect(bytes("82 0D 0001 02 0B 01 0001 61 01 0001 62 01")),
            .reply(bytes("90 05 0001 00 01 01")),
            .expect(bytes("A2 09 0002 00 0001 61 0001 62")),
            .reply(bytes("B0 05 0002 00 00 87")),
            .reply(bytes("30 07 0001 62 02 0B 01 78"))
        )
        let messages = try await provider.messages(
            .subscribe(topics: ["a", "b"], qos: .atLeastOnce)
        )
        let error = await expectError(.unauthorized) {
            try await provider.request(.unsubscribe(topics: ["a", "b"]))
        }
        #expect(error?.topic == "b")
        #expect(script.failures == [])
        // The stream of both ends with its first filter that ends.
        var iterator = messages.makeAsyncIterator()
        _ = try await iterator.next()
        await transport.shutdown()
    }

    @Test("In 3.1.1, too, several filters go into one UNSUBSCRIBE")
    func unsubscribeOld() async throws {
        let script = ScriptedByteStream.accepted(
            .expect(bytes("A2 08 0001 0001 61 0001 62")),
            .reply(bytes("B0 02 0001"))
        )
        let (transport, _) = try scripted([script])
        let provider = Provider<AnyEntry>(transport: transport)
        try await provider.request(.connect)
        try await provider.request(.unsubscribe(topics: ["a", "b", "a"]))
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("After a lost session the same packet subscribes again, with its user properties")
    func again() async throws {
        let first = ScriptedByteStream(
            .skip(16),
            .reply(bytes("20 03 00 00 00")),
            .expect(bytes("82 14 0001 09 0B 01 26 0001 6B 0001 76 0001 61 01 0001 62 01")),
            .reply(bytes("90 05 0001 00 01 01")),
            // The SUBACK is read before the connection is lost.
            .expect(bytes("30 05 0001 63 00 79")),
            .reset
        )
        let second = ScriptedByteStream(
            .skip(16),
            .reply(bytes("20 03 00 00 00")),
            .expect(bytes("82 14 0002 09 0B 01 26 0001 6B 0001 76 0001 61 01 0001 62 01")),
            .reply(bytes("90 05 0002 00 01 01")),
            .reply(bytes("30 07 0001 62 02 0B 01 78"))
        )
        let (transport, _) = try scripted([first, second], version: .v5, bare)
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            .subscribe(topics: ["a", "b"], headers: ["k": "v"], qos: .atLeastOnce)
        )
        try await provider.request(.send(topic: "c", body: .bytes([0x79])))
        #expect(try await texts(1, messages) == ["x"])
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
    }

    // MARK: The server's limits

    @Test("Shared subscriptions that the server does not have are refused, or shared no more")
    func noShares() async throws {
        let (script, transport, provider) = try connected(
            .expect(bytes("82 09 0001 02 0B 01 0001 74 01")),
            .reply(bytes("90 04 0001 00 01")),
            connack: "20 05 00 00 02 2A 00"
        )
        let entry = AnyEntry.subscribe(topic: "t", qos: .atLeastOnce, .shareName("g"))
        let error = await expectError(.unsupported) { try await provider.messages(entry) }
        #expect(error?.option == .shareName)
        let portable = provider.whenUnsupported(.ignore([.shareName]))
        _ = try await portable.messages(entry)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("Identifiers that the server does not have: a chosen one is refused, others are left out")
    func noIdentifiers() async throws {
        let (script, transport, provider) = try connected(
            .expect(bytes("82 0F 0001 00 0003 612F2B 01 0003 612F62 01")),
            .reply(bytes("90 05 0001 00 01 01")),
            connack: "20 05 00 00 02 29 00"
        )
        let error = await expectError(.unsupported) {
            try await provider.messages(
                .subscribe(topic: "t", .subscriptionIdentifier(7))
            )
        }
        #expect(error?.option == .subscriptionIdentifier)
        _ = try await provider.messages(.subscribe(topics: ["a/+", "a/b"], qos: .atLeastOnce))
        #expect(script.failures == [])
        await transport.shutdown()
    }

    // MARK: Which listeners get a message

    @Test("A chosen identifier is readable on its messages, and belongs to one subscription")
    func chosen() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let chosen = try await provider.messages(
            .command(.subscribe(.subscriptionIdentifier(7)), topic: "t/+")
        )
        let plain = try await provider.messages(.subscribe("t/a", qos: .atMostOnce))
        for text in ["1", "2"] { try await provider.request(.send(text, to: "t/a")) }
        try await provider.request(.send("3", to: "t/b"))
        let heard = try await take(3, chosen)
        #expect(heard.map(\.text) == ["1", "2", "3"])
        #expect(heard.map { $0[.subscriptionIdentifiers] } == [[7], [7], [7]])
        #expect(try await texts(2, plain) == ["1", "2"])
        for topic in ["t/+/x", "t/a"] {
            await expectError(.invalidEntry) {
                try await provider.messages(
                    .command(.subscribe(.subscriptionIdentifier(7)), topic: topic)
                )
            }
        }
        // The same subscription once more, and after its end another one with the number.
        let again = try await provider.messages(
            .command(.subscribe(.subscriptionIdentifier(7)), topic: "t/+")
        )
        again.cancel()
        chosen.cancel()
        try await provider.request(.command(.unsubscribe, topic: "t/+"))
        _ = try await provider.messages(
            .command(.subscribe(.subscriptionIdentifier(7)), topic: "u")
        )
        await fixture.end(transport)
    }

    @Test("Filters of one identifier: a listener of one of them gets only its messages")
    func sharedIdentifier() async throws {
        let fixture = try Fixture()
        let (transport, _) = try fixture.provider()
        let provider = Provider<AnyEntry>(transport: transport)
        let both = try await provider.messages(.subscribe(topics: ["a", "b"]))
        let one = try await provider.messages(.subscribe(topic: "a"))
        for (topic, text) in [("b", "1"), ("a", "2"), ("b", "3"), ("a", "4")] {
            try await provider.request(.send(topic: topic, body: .text(text)))
        }
        #expect(try await texts(4, both) == ["1", "2", "3", "4"])
        #expect(try await texts(2, one) == ["2", "4"])
        await fixture.end(transport)
    }

    @Test("A filter without an identifier gets what it matches, beside filters with one")
    func omitted() async throws {
        let (script, transport, provider) = try connected(
            .expect(bytes("82 0B 0001 02 0B 01 0003 612F2B 01")),
            .reply(bytes("90 04 0001 00 01")),
            .expect(bytes("82 09 0002 00 0003 612F62 01")),
            .reply(bytes("90 04 0002 00 01")),
            // One copy for both subscriptions, with the identifier of the one that has it (3.3.4-3).
            .reply(bytes("30 09 0003 612F62 02 0B 01 31")),
            .reply(bytes("30 09 0003 612F63 02 0B 01 32"))
        )
        let named = try await provider.messages(.subscribe(topic: "a/+", qos: .atLeastOnce))
        let unnamed = try await provider.messages(
            .subscribe(topic: "a/b", qos: .atLeastOnce, .subscriptionIdentifier(.omitted))
        )
        #expect(try await texts(2, named) == ["1", "2"])
        #expect(try await texts(1, unnamed) == ["1"])
        #expect(script.failures == [])
        await transport.shutdown()
    }

    // MARK: Shared subscriptions

    @Test("Two clients of a group get each message once, together")
    func group() async throws {
        let fixture = try Fixture()
        var streams: [Messages<Message>] = []
        var transports: [MQTTTransport] = []
        for _ in 0..<2 {
            let (transport, provider) = try fixture.provider()
            transports.append(transport)
            streams.append(
                try await provider.messages(
                    .command(.subscribe(qos: .atLeastOnce, .shareName("workers")), topic: "job/+")
                )
            )
        }
        let (sender, sending) = try fixture.provider()
        for number in 0..<20 {
            try await sending.request(.send("\(number)", to: "job/\(number)", qos: .atLeastOnce))
        }
        let heard = LineLog()
        var loops: [Task<Void, Never>] = []
        for stream in streams {
            loops.append(
                Task {
                    do {
                        for try await message in stream { heard.append(message.text ?? "") }
                    } catch {
                        #expect((error as? WaybillError)?.code == .shutDown)
                    }
                }
            )
        }
        try await waitUntil { heard.all.count >= 20 }
        for transport in transports { await transport.shutdown() }
        for loop in loops { await loop.value }
        #expect(heard.all.sorted() == (0..<20).map { "\($0)" }.sorted())
        await fixture.end(sender)
    }

    @Test("A topic style maps the filter of a shared subscription, not its share name")
    func style() async throws {
        let filter = Array("$share/w.x//topic/a.b".utf8)
        let subscribe =
            [0x82, UInt8(filter.count + 8), 0, 1, 2, 0x0B, 1, 0, UInt8(filter.count)] + filter + [1]
        let (script, transport, provider) = try connected(
            .expect(subscribe),
            .reply(bytes("90 04 0001 00 01"))
        )
        _ = try await provider.topicStyle(.dotted(prefix: "/topic/")).messages(
            .subscribe(topic: "a/b", qos: .atLeastOnce, .shareName("w.x"))
        )
        #expect(script.failures == [])
        await transport.shutdown()
    }
}
