import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// The connections of the tests with every property of CONNECT left out.
private func bare(_ configuration: inout MQTTConfiguration) {
    configuration.receiveMaximum = nil
    configuration.announcesMaximumPacketSize = false
    configuration.topicAliasMaximum = 0
}

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
@Suite("MQTT transport: properties of SUBSCRIBE and UNSUBSCRIBE", .timeLimit(.minutes(5)))
struct SubscribePropertyTests {
    static let rows: [(String, [String], SubscribeOptions, Headers, Hex)] = [
        (
            "an identifier of the transport", ["t"], SubscribeOptions(qos: .atLeastOnce), [:],
            "82 09 0001 02 0B 01 0001 74 01"
        ),
        (
            "no identifier", ["t"],
            SubscribeOptions(qos: .atLeastOnce, subscriptionIdentifier: .omitted), [:],
            "82 07 0001 00 0001 74 01"
        ),
        (
            "a chosen identifier", ["t"],
            SubscribeOptions(qos: .atLeastOnce, subscriptionIdentifier: 300), [:],
            "82 0A 0001 03 0B AC02 0001 74 01"
        ),
        (
            "the highest identifier", ["t"],
            SubscribeOptions(qos: .atLeastOnce, subscriptionIdentifier: 268_435_455), [:],
            "82 0C 0001 05 0B FFFFFF7F 0001 74 01"
        ),
        (
            "user properties", ["t"], SubscribeOptions(qos: .atLeastOnce), ["k": "v"],
            "82 10 0001 09 0B 01 26 0001 6B 0001 76 0001 74 01"
        ),
        (
            "a share name", ["t"], SubscribeOptions(qos: .atLeastOnce, shareName: "g"), [:],
            "82 12 0001 02 0B 01 000A 24 7368617265 2F 67 2F 74 01"
        ),
        (
            "two filters in one packet", ["a", "b"], SubscribeOptions(qos: .atLeastOnce), [:],
            "82 0D 0001 02 0B 01 0001 61 01 0001 62 01"
        ),
        (
            "two filters without an identifier", ["a", "b"],
            SubscribeOptions(qos: .atLeastOnce, subscriptionIdentifier: .omitted), [:],
            "82 0B 0001 00 0001 61 01 0001 62 01"
        ),
        (
            "two shared filters", ["a", "b"], SubscribeOptions(qos: .atLeastOnce, shareName: "g"),
            [:],
            """
            82 1F 0001 02 0B 01 000A 24 7368617265 2F 67 2F 61 01 000A 24 7368617265 2F 67 2F 62 01
            """
        ),
        (
            "filters that overlap, each in a packet", ["a/+", "a/b"],
            SubscribeOptions(qos: .atLeastOnce), [:],
            "82 0B 0001 02 0B 01 0003 612F2B 01 82 0B 0002 02 0B 02 0003 612F62 01"
        ),
        (
            "filters that overlap, with a chosen identifier", ["a/+", "a/b"],
            SubscribeOptions(qos: .atLeastOnce, subscriptionIdentifier: 7), [:],
            "82 11 0001 02 0B 07 0003 612F2B 01 0003 612F62 01"
        ),
    ]

    @Test("The bytes of SUBSCRIBE", arguments: rows)
    func subscribe(
        _ name: String,
        _ topics: [String],
        _ options: SubscribeOptions,
        _ headers: Headers,
        _ packet: Hex
    ) async throws {
        // Two packets are answered by two SUBACKs.
        let isDivided = packet.bytes.count > 30 && options.shareName == nil || packet.bytes.count == 26
        let single: Hex = topics.count == 1 ? "90 04 0001 00 01" : "90 05 0001 00 01 01"
        let suback: Hex = isDivided ? "90 04 0001 00 01 90 04 0002 00 01" : single
        let (script, transport, provider) = try connected(
            .expect(packet.bytes),
            .reply(suback.bytes)
        )
        let entry = AnyEntry.subscribe(topics: topics, headers: headers, options: options)
        let messages = try await provider.messages(entry)
        #expect(messages.grantedQoS == .atLeastOnce)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    static let left: [(String, [String], UnsubscribeOptions, Headers, Hex, Hex)] = [
        (
            "one", ["a"], UnsubscribeOptions(), [:], "A2 06 0001 00 0001 61", "B0 04 0001 00 00"
        ),
        (
            "two", ["a", "b"], UnsubscribeOptions(), [:], "A2 09 0001 00 0001 61 0001 62",
            "B0 05 0001 00 00 11"
        ),
        (
            "user properties", ["a"], UnsubscribeOptions(), ["k": "v"],
            "A2 0D 0001 07 26 0001 6B 0001 76 0001 61", "B0 04 0001 00 00"
        ),
        (
            "a share name", ["t"], UnsubscribeOptions(shareName: "g"), [:],
            "A2 0F 0001 00 000A 24 7368617265 2F 67 2F 74", "B0 04 0001 00 00"
        ),
    ]

    @Test("The bytes of UNSUBSCRIBE", arguments: left)
    func unsubscribe(
        _ name: String,
        _ topics: [String],
        _ options: UnsubscribeOptions,
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
            .unsubscribe(topics: topics, headers: headers, options: options)
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
        let entry = AnyEntry.subscribe(
            topic: "t",
            options: SubscribeOptions(qos: .atLeastOnce, shareName: "g")
        )
        let error = await expectError(.unsupported) { try await provider.messages(entry) }
        #expect(error?.unsupportedOption == .shareName)
        let portable = provider.whenUnsupported(.ignore([.shareName]))
        _ = try await portable.messages(entry)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("Identifiers that the server does not have: a chosen one is refused, others are left out")
    func noIdentifiers() async throws {
        let (script, transport, provider) = try connected(
            .expect(bytes("82 11 0001 00 0003 612F2B 01 0003 612F62 01")),
            .reply(bytes("90 05 0001 00 01 01")),
            connack: "20 05 00 00 02 29 00"
        )
        let error = await expectError(.unsupported) {
            try await provider.messages(
                .subscribe(topic: "t", options: SubscribeOptions(subscriptionIdentifier: 7))
            )
        }
        #expect(error?.unsupportedOption == .subscriptionIdentifier)
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
            .command(.subscribe(subscriptionIdentifier: 7), topic: "t/+")
        )
        let plain = try await provider.messages(.subscribe("t/a", qos: .atMostOnce))
        for text in ["1", "2"] { try await provider.request(.send(text, to: "t/a")) }
        try await provider.request(.send("3", to: "t/b"))
        let heard = try await take(3, chosen)
        #expect(heard.map(\.text) == ["1", "2", "3"])
        #expect(heard.map { $0.details?.subscriptionIdentifiers } == [[7], [7], [7]])
        #expect(try await texts(2, plain) == ["1", "2"])
        for topic in ["t/+/x", "t/a"] {
            await expectError(.invalidEntry) {
                try await provider.messages(
                    .command(.subscribe(subscriptionIdentifier: 7), topic: topic)
                )
            }
        }
        // The same subscription once more, and after its end another one with the number.
        let again = try await provider.messages(
            .command(.subscribe(subscriptionIdentifier: 7), topic: "t/+")
        )
        again.cancel()
        chosen.cancel()
        try await provider.request(.command(.unsubscribe, topic: "t/+"))
        _ = try await provider.messages(
            .command(.subscribe(subscriptionIdentifier: 7), topic: "u")
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
            .expect(bytes("82 09 0001 02 0B 01 0003 612F2B 01")),
            .reply(bytes("90 04 0001 00 01")),
            .expect(bytes("82 09 0002 00 0003 612F62 01")),
            .reply(bytes("90 04 0002 00 01")),
            // One copy for both subscriptions, with the identifier of the one that has it (3.3.4-3).
            .reply(bytes("30 09 0003 612F62 02 0B 01 31")),
            .reply(bytes("30 09 0003 612F63 02 0B 01 32"))
        )
        let named = try await provider.messages(.subscribe(topic: "a/+", qos: .atLeastOnce))
        let unnamed = try await provider.messages(
            .subscribe(
                topic: "a/b",
                options: SubscribeOptions(qos: .atLeastOnce, subscriptionIdentifier: .omitted)
            )
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
                    .command(.subscribe(qos: .atLeastOnce, shareName: "workers"), topic: "job/+")
                )
            )
        }
        let (sender, sending) = try fixture.provider()
        for number in 0..<20 {
            try await sending.request(.send("\(number)", to: "job/\(number)", qos: .atLeastOnce))
        }
        // A plain subscriber shows that all have been sent.
        var heard: [String] = []
        for (stream, transport) in zip(streams, transports) {
            await transport.shutdown()
            do {
                for try await message in stream { heard.append(message.text ?? "") }
            } catch {
                #expect((error as? WaybillError)?.code == .shutDown)
            }
        }
        #expect(Set(heard) == Set((0..<20).map { "\($0)" }))
        #expect(heard.count == 20)
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
            .subscribe(
                topic: "a/b",
                options: SubscribeOptions(qos: .atLeastOnce, shareName: "w.x")
            )
        )
        #expect(script.failures == [])
        await transport.shutdown()
    }
}

/// Reasons of PUBACK and PUBREC, and the end of a QoS 2 exchange (MQTT 5, 3.4, 3.5 and 4.3.3).
@Suite("MQTT transport: answers to received messages", .timeLimit(.minutes(5)))
struct AcknowledgementPropertyTests {
    private static let entry = AnyEntry.subscribe(
        topic: "t",
        options: SubscribeOptions(qos: .exactlyOnce, acknowledgement: .manual)
    )
    private static let opening: [ScriptedByteStream.Step] = [
        .skip(16), .reply(("20 03 00 00 00" as Hex).bytes),
        .expect(("82 09 0001 02 0B 01 0001 74 02" as Hex).bytes),
        .reply(("90 04 0001 00 02" as Hex).bytes),
    ]

    /// A message that waits for its acknowledgement, with the rest of the script.
    private func waiting(
        _ publish: Hex,
        _ steps: [ScriptedByteStream.Step],
        then others: [ScriptedByteStream] = [],
        clock: ManualClock = ManualClock(),
        _ change: (inout MQTTConfiguration) -> Void = { $0.reconnection = .never }
    ) async throws -> Waiting {
        let script = ScriptedByteStream(steps: Self.opening + [.reply(publish.bytes)] + steps)
        let (transport, _) = try scripted([script] + others, version: .v5, clock: clock) {
            bare(&$0)
            change(&$0)
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(Self.entry)
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        return Waiting(
            script: script,
            transport: transport,
            provider: provider,
            messages: messages,
            id: id
        )
    }

    /// A connection with a message that waits for its acknowledgement.
    private struct Waiting: Sendable {
        let script: ScriptedByteStream
        let transport: MQTTTransport
        let provider: Provider<AnyEntry>
        /// Kept until the end, because its end unsubscribes.
        let messages: Messages<Message>
        let id: Message.ID

        func perform(_ command: EntryCommand, _ headers: Headers = [:]) async throws {
            try await provider.request(AnyEntry(command: command, headers: headers))
        }

        /// Waits until the script is over, and ends.
        func end() async throws {
            try await waitUntil { script.isComplete || script.failures != [] }
            #expect(script.failures == [])
            await transport.shutdown()
            messages.cancel()
        }
    }

    private static let one: Hex = "32 07 0001 74 0005 00 78"
    private static let two: Hex = "34 07 0001 74 0006 00 78"

    static let rows: [(Hex, Bool, AcknowledgementOptions, Headers, Hex)] = [
        (one, true, AcknowledgementOptions(), [:], "40 02 0005"),
        (one, true, AcknowledgementOptions(reason: "r"), [:], "40 08 0005 00 04 1F 0001 72"),
        (one, true, AcknowledgementOptions(), ["k": "v"], "40 0B 0005 00 07 26 0001 6B 0001 76"),
        (one, false, AcknowledgementOptions(), [:], "40 03 0005 80"),
        (one, false, AcknowledgementOptions(reasonCode: .quotaExceeded), [:], "40 03 0005 97"),
        (
            one, false, AcknowledgementOptions(reasonCode: 0x99, reason: "r"), ["k": "v"],
            "40 0F 0005 99 0B 1F 0001 72 26 0001 6B 0001 76"
        ),
        (two, true, AcknowledgementOptions(reason: "r"), [:], "50 08 0006 00 04 1F 0001 72"),
        (two, false, AcknowledgementOptions(reasonCode: 0x83), [:], "50 03 0006 83"),
    ]

    @Test("The bytes of PUBACK and PUBREC", arguments: rows)
    func answers(
        _ publish: Hex,
        _ isAccepted: Bool,
        _ options: AcknowledgementOptions,
        _ headers: Headers,
        _ packet: Hex
    ) async throws {
        let waiting = try await waiting(publish, [.expect(packet.bytes)])
        try await waiting.perform(
            isAccepted ? .ack(waiting.id, options) : .nack(waiting.id, options),
            headers
        )
        try await waiting.end()
    }

    @Test("An acknowledgement of QoS 2 completes with PUBCOMP")
    func completes() async throws {
        let waiting = try await waiting(
            Self.two,
            [
                .expect(("50 02 0006" as Hex).bytes), .reply(("62 02 0006" as Hex).bytes),
                .expect(("70 02 0006" as Hex).bytes),
            ]
        )
        try await waiting.perform(.ack(waiting.id, awaitsCompletion: true))
        try await waiting.end()
    }

    @Test("Without PUBREL the wait ends at the timeout of acknowledgements")
    func timesOut() async throws {
        let clock = ManualClock()
        let waiting = try await waiting(
            Self.two,
            [.expect(("50 02 0006" as Hex).bytes)],
            clock: clock
        ) {
            $0.reconnection = .never
            $0.keepAlive = .zero
        }
        let isOver = Locked(false)
        let call = Task {
            defer { isOver.withLock { $0 = true } }
            try await waiting.perform(.ack(waiting.id, awaitsCompletion: true))
        }
        try await waitUntil { waiting.script.isComplete }
        clock.advance(by: .seconds(29))
        await letOthersRun()
        #expect(!isOver.withLock { $0 })
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isOver.withLock { $0 } }
        let error = await #expect(throws: WaybillError.self) { try await call.value }
        #expect(error?.code == .timedOut)
        try await waiting.end()
    }

    @Test("The wait goes on over the next connection, unless the server has lost the session")
    func nextConnection() async throws {
        for isPresent in [true, false] {
            let connack: Hex = isPresent ? "20 03 01 00 00" : "20 03 00 00 00"
            let rest: [ScriptedByteStream.Step] =
                isPresent
                ? [
                    .reply(("62 02 0006" as Hex).bytes), .expect(("70 02 0006" as Hex).bytes),
                ] : [.expect(("82 09 0002 02 0B 01 0001 74 02" as Hex).bytes)]
            // With the session expiry, CONNECT is five bytes longer.
            let second = ScriptedByteStream(steps: [.skip(21), .reply(connack.bytes)] + rest)
            let first = ScriptedByteStream(
                steps: [.skip(21)] + Self.opening.dropFirst() + [
                    .reply(Self.two.bytes), .expect(("50 02 0006" as Hex).bytes), .reset,
                ]
            )
            let (transport, _) = try scripted([first, second], version: .v5) {
                bare(&$0)
                $0.sessionExpiry = .seconds(600)
            }
            let provider = Provider<AnyEntry>(transport: transport)
            let messages = try await provider.messages(Self.entry)
            var iterator = messages.makeAsyncIterator()
            let id = try #require(try await iterator.next()?.id)
            let ack = AnyEntry(command: .ack(id, awaitsCompletion: true))
            if isPresent {
                try await provider.request(ack)
            } else {
                await expectError(.connectionLost) { try await provider.request(ack) }
            }
            try await waitUntil { second.isComplete || second.failures != [] }
            #expect(first.failures == [] && second.failures == [])
            await transport.shutdown()
            messages.cancel()
        }
    }

    @Test("Without a connection that follows the wait fails, and a cancelled one ends")
    func noConnection() async throws {
        let lost = try await waiting(
            Self.two,
            [.expect(("50 02 0006" as Hex).bytes), .reset]
        )
        await expectError(.connectionLost) {
            try await lost.perform(.ack(lost.id, awaitsCompletion: true))
        }
        try await lost.end()

        let cancelled = try await waiting(Self.two, [.expect(("50 02 0006" as Hex).bytes)])
        let call = Task { try await cancelled.perform(.ack(cancelled.id, awaitsCompletion: true)) }
        try await waitUntil { cancelled.script.isComplete || cancelled.script.failures != [] }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        try await cancelled.end()
    }

    @Test("At QoS 1 and for a refusal there is nothing to wait for")
    func atOnce() async throws {
        for (publish, answer) in [(Self.one, "40 03 0005 80" as Hex), (Self.two, "50 03 0006 80")] {
            let waiting = try await waiting(publish, [.expect(answer.bytes)])
            try await waiting.perform(.nack(waiting.id, awaitsCompletion: true))
            try await waiting.end()
        }
    }

    @Test("Over a broker, in both versions", arguments: versions)
    func overBroker(version: MQTTConfiguration.Version) async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider(version)
        let messages = try await provider.messages(.subscribe(acknowledgement: .manual))
        for number in 0..<10 { try await provider.request(.send("\(number)", qos: .exactlyOnce)) }
        for message in try await take(10, messages) {
            let id = try #require(message.id)
            try await provider.request(.command(.ack(id, awaitsCompletion: true)))
        }
        #expect(fixture.lines.count("← PUBREC") == 10)
        #expect(fixture.lines.count("→ PUBCOMP") + fixture.lines.count("← PUBCOMP") >= 10)
        await fixture.end(transport)
    }
}
