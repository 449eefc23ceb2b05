import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSession
import WaybillTesting
import WireTestSupport

/// Requests and replies over MQTT 5 (4.10).
@Suite("MQTT transport: request and reply", .inSimulation, .timeLimit(.minutes(30)))
struct ReplyTests {
    // MARK: Byte by byte

    /// CONNECT with client identifier `c`, keep alive 60, receive maximum 1,024, packets of 1 MiB.
    private static let connect =
        ("10 19 0004 4D515454 05 02 003C 0B 21 0400 27 00100000 22 0010 0001 63" as Hex).bytes
    private static let connack = ("20 03 00 00 00" as Hex).bytes
    private static let topic = field("waybill/reply/c/00")
    /// The subscription options: QoS 1, no retained messages.
    private static let subscribe = subscribe(1)
    private static let suback = ("90 04 0001 00 01" as Hex).bytes

    private static func subscribe(_ identifier: UInt8) -> [UInt8] {
        packet(0x82, [0, identifier, 2, 0x0B, 1] + topic + [0x21])
    }

    private static func field(_ text: String) -> [UInt8] {
        [0, UInt8(text.utf8.count)] + Array(text.utf8)
    }

    private static func packet(_ first: UInt8, _ rest: [UInt8]) -> [UInt8] {
        [first, UInt8(rest.count)] + rest
    }

    /// A request of QoS 0 to `t` with the body `x`.
    private static func request(_ correlation: String) -> [UInt8] {
        let properties = [0x08] + topic + [0x09] + field(correlation)
        return packet(0x30, field("t") + [UInt8(properties.count)] + properties + Array("x".utf8))
    }

    private static func answer(_ text: String, _ correlation: String) -> [UInt8] {
        let properties = [0x09] + field(correlation)
        return packet(0x30, topic + [UInt8(properties.count)] + properties + Array(text.utf8))
    }

    private static let start: [ScriptedByteStream.Step] = [
        .expect(connect), .reply(connack), .expect(subscribe), .reply(suback),
    ]

    @Test("A reply above the limit fails its request at once")
    func tooLong() async throws {
        let connect = "10 14 0004 4D515454 05 02 003C 06 21 0400 22 0010 0001 63" as Hex
        let properties = [0x09] + Self.field("1-00")
        let rest =
            Self.topic + [UInt8(properties.count)] + properties
            + [UInt8](repeating: 0x78, count: 300)
        let reply = [0x30, UInt8(rest.count & 0x7F) | 0x80, UInt8(rest.count >> 7)] + rest
        let (transport, provider, script) = try client(
            [.expect(connect.bytes)] + Self.start.dropFirst()
                + [.expect(Self.request("1-00")), .reply(reply)]
        ) {
            $0.limits.packetSize = 256
            $0.limits.announcesPacketSize = false
        }
        let answer = Promise<String>()
        answer.resolve { try await provider.request(.send("x"), as: String.self) }
        await untilQuiet()
        #expect(script.failures == [])
        #expect(answer.result != nil)
        await transport.shutdown()
        await expectError(.limitExceeded) { try await answer.value() }
    }

    @Test(
        "A request without a subscriber fails at once if the app wants that",
        arguments: [true, false]
    )
    func unheard(fails: Bool) async throws {
        let properties = [0x08] + Self.topic + [0x09] + Self.field("1-00")
        let request = Self.packet(
            0x32,
            Self.field("t") + [0, 2, UInt8(properties.count)] + properties + Array("x".utf8)
        )
        let (transport, provider, script) = try client(
            Self.start + [.expect(request), .reply(("40 03 0002 10" as Hex).bytes)]
        ) { $0.replies.failsWithoutSubscribers = fails }
        let answer = Promise<String>()
        answer.resolve {
            try await provider.request(.send("x", qos: .atLeastOnce), as: String.self)
        }
        await untilQuiet()
        #expect(script.failures == [])
        #expect((answer.result != nil) == fails)
        await transport.shutdown()
        await expectError(fails ? .rejected : .shutDown) { try await answer.value() }
    }

    private func client(
        _ first: [ScriptedByteStream.Step],
        _ others: ScriptedByteStream...,
        clock: ManualClock = ManualClock(),
        change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>, ScriptedByteStream) {
        let script = ScriptedByteStream(steps: first)
        let (transport, provider) = try scripted(
            [script] + others,
            version: .v5,
            clock: clock,
            change
        )
        return (transport, provider, script)
    }

    @Test("Subscribed before anything is asked, once; a peer that answers at once is heard")
    func bytes() async throws {
        let (transport, provider, script) = try client(
            Self.start + [
                .expect(Self.request("1-00")),
                // Replies to other requests, without a correlation and with a wrong one, come first.
                .reply(Self.answer("?", "2-00")),
                .reply(Self.packet(0x30, Self.topic + [0] + Array("?".utf8))),
                .reply(Self.answer("y", "1-00")),
                .expect(Self.request("2-00")),
                .reply(Self.answer("z", "2-00")),
            ]
        )
        #expect(try await provider.request(.send("x"), as: String.self) == "y")
        let reply = try await provider.request(.send("x"), as: Message.self)
        #expect(reply.text == "z" && reply.topic == "waybill/reply/c/00")
        #expect(transport.pendingReplies.strayCount == 2 && transport.pendingReplies.count == 0)
        #expect(transport.statistics.lateReplyCount == 2)
        #expect(script.failures == [] && script.isComplete)
        await transport.shutdown()
    }

    @Test("No answer: timedOut after the configured time, or the entry's own")
    func timesOut() async throws {
        for timeout in [nil, Duration.seconds(5)] {
            let options = timeout.map { [SendOption.timeout($0)] } ?? []
            let clock = ManualClock()
            let (transport, provider, script) = try client(
                Self.start + [.expect(Self.request("1-00"))],
                clock: clock
            ) { $0.keepAlive.interval = .seconds(60) }
            let asking = Task {
                try await provider.request(
                    .command(.send(options: options), topic: "t", body: .bytes([0x78])),
                    as: String.self
                )
            }
            try await waitUntil { script.isComplete }
            clock.advance(by: (timeout ?? .seconds(30)) - .seconds(1))
            #expect(transport.pendingReplies.count == 1)
            clock.advance(by: .seconds(1))
            let error = await expectError(.timedOut) { try await asking.value }
            #expect(error?.topic == "t" && transport.pendingReplies.count == 0)
            await transport.shutdown()
        }
    }

    @Test("A refused subscription fails the request; nothing is published; the next one asks anew")
    func refused() async throws {
        let (transport, provider, script) = try client([
            .expect(Self.connect), .reply(Self.connack),
            .expect(Self.subscribe), .reply(("90 04 0001 00 87" as Hex).bytes),
            .skip(Self.subscribe.count), .reply(("90 04 0002 00 87" as Hex).bytes),
        ])
        for _ in 0..<2 {
            await expectError(.unauthorized) {
                try await provider.request(.send("x"), as: String.self)
            }
        }
        #expect(script.isComplete && transport.pendingReplies.count == 0)
        await transport.shutdown()
    }

    @Test("A lost connection: subscribed again, and an answer over the next one still counts")
    func reconnects() async throws {
        let second = ScriptedByteStream(steps: [
            .expect(Self.connect), .reply(Self.connack), .expect(Self.subscribe(2)),
            .reply(("90 04 0002 00 01" as Hex).bytes), .reply(Self.answer("y", "1-00")),
        ])
        let (transport, provider, _) = try client(
            Self.start + [.expect(Self.request("1-00")), .reset],
            second
        )
        #expect(try await provider.request(.send("x"), as: String.self) == "y")
        #expect(second.failures == [] && transport.pendingReplies.count == 0)
        await transport.shutdown()
    }

    @Test("A connection that does not come back fails pending requests; a shutdown does, too")
    func concludes() async throws {
        let (lost, provider, _) = try client(
            Self.start + [.expect(Self.request("1-00")), .reset]
        ) { $0.reconnection = .never }
        await expectError(.connectionLost) {
            try await provider.request(.send("x"), as: String.self)
        }
        #expect(lost.pendingReplies.count == 0)

        let (transport, other, script) = try client(
            Self.start + [.expect(Self.request("1-00"))]
        )
        let asking = Task { try await other.request(.send("x"), as: String.self) }
        try await waitUntil { script.isComplete }
        await transport.shutdown()
        await expectError(.shutDown) { try await asking.value }
        #expect(transport.pendingReplies.count == 0)
    }

    @Test("The server may say where answers go (3.1.2.11.6, 3.2.2.3.15)")
    func responseInformation() async throws {
        let topic = Self.field("you/c/00")
        let properties = [0x08] + topic + [0x09] + Self.field("1-00")
        let (transport, provider, script) = try client([
            .expect(
                ("10 1B 0004 4D515454 05 02 003C 0D 21 0400 27 00100000 22 0010 19 01 0001 63"
                    as Hex).bytes
            ),
            .reply(Self.packet(0x20, [0, 0, 6, 0x1A] + Self.field("you"))),
            .expect(Self.packet(0x82, [0, 1, 2, 0x0B, 1] + topic + [0x21])),
            .reply(Self.suback),
            .expect(
                Self.packet(0x30, Self.field("t") + [UInt8(properties.count)] + properties + [0x78])
            ),
            .reply(Self.packet(0x30, topic + [7, 0x09] + Self.field("1-00") + [0x79])),
        ]) { $0.replies.requestsResponseInformation = true }
        #expect(try await provider.request(.send("x"), as: String.self) == "y")
        #expect(script.failures == [])
        await transport.shutdown()
    }

    // MARK: Refused before any I/O

    @Test("What cannot be is refused before there is a connection")
    func refusedBefore() async throws {
        let old = try MQTTTransport(configuration: MQTTConfiguration(version: .v3_1_1))
        await expectError(.unsupported) {
            try await Provider<MQTTEntry>(transport: old).request(.send("x"), as: String.self)
        }
        let command = EntryCommand.send(.correlationData([1]))
        await expectError(.unsupported) {
            try await Provider<MQTTEntry>(transport: old)
                .request(.command(command, topic: "t"))
        }
        let own = EntryCommand.send(.responseTopic("r"))
        let transport = try MQTTTransport()
        for command in [command, own] {
            await expectError(.invalidEntry) {
                try await Provider<MQTTEntry>(transport: transport)
                    .request(.command(command, topic: "t"), as: String.self)
            }
        }
        var configuration = MQTTConfiguration()
        configuration.replies.topicPrefix = "a/#"
        let odd = try MQTTTransport(configuration: configuration)
        await expectError(.invalidEntry) {
            try await Provider<MQTTEntry>(transport: odd).request(.send("x"), as: String.self)
        }
        for transport in [old, transport, odd] {
            #expect("\(transport.states.current)" == "idle")
        }
    }

    // MARK: Over sockets

    /// Collects requests, and answers them from last to first, each with its own text.
    private func answerInReverse(
        _ count: Int,
        _ provider: Provider<MQTTEntry>
    ) async throws -> Task<Void, any Error> {
        let asked = try await provider.messages(.subscribe("ask", qos: .atLeastOnce))
        return Task {
            var waiting: [Message] = []
            for try await message in asked {
                waiting.append(message)
                if waiting.count == count { break }
            }
            for message in waiting.reversed() {
                try await provider.request(
                    .command(
                        .reply(to: message),
                        topic: message.replyTopic,
                        body: .text(message.text ?? "")
                    )
                )
            }
        }
    }

    @Test("A thousand at once, answered in reverse order", arguments: QoS.allCases)
    func thousand(_ qos: QoS) async throws {
        let fixture = try Fixture()
        let (responder, transport) = (try fixture.transport(), try fixture.transport())
        let answering = try await answerInReverse(1_000, Provider(transport: responder))
        let provider = Provider<MQTTEntry>(transport: transport)
        try await withThrowingTaskGroup { group in
            for number in 0..<1_000 {
                group.addTask {
                    let text: String = try await provider.request(
                        .send("\(number)", to: "ask", qos: qos)
                    )
                    #expect(text == "\(number)")
                }
            }
            try await group.waitForAll()
        }
        try await answering.value
        #expect(transport.pendingReplies.count == 0 && transport.pendingReplies.strayCount == 0)
        await fixture.end(transport, responder)
    }

    @Test("A caller that is cancelled leaves nothing; the answer that follows is counted")
    func cancelled() async throws {
        let fixture = try Fixture()
        let (responder, transport) = (try fixture.transport(), try fixture.transport())
        let answers = Provider<MQTTEntry>(transport: responder)
        let provider = Provider<MQTTEntry>(transport: transport)
        let asked = try await answers.messages(.subscribe("ask"))
        let asking = Task { try await provider.request(.send("x", to: "ask"), as: String.self) }
        var iterator = asked.makeAsyncIterator()
        let message = try #require(try await iterator.next())
        asking.cancel()
        await #expect(throws: CancellationError.self) { try await asking.value }
        #expect(transport.pendingReplies.count == 0)
        try await answers.request(.command(.reply(to: message), topic: message.replyTopic))
        try await waitUntil { transport.pendingReplies.strayCount != 0 }
        await fixture.end(transport, responder)
    }

    @Test("Response topic and correlation data of an entry's own go as they are")
    func own() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe())
        let command = EntryCommand.send(.responseTopic("r"), .correlationData([0, 0xFF]))
        try await provider.request(.command(command, topic: "t"))
        var iterator = messages.makeAsyncIterator()
        let message = try #require(try await iterator.next())
        #expect(message.replyTopic == "r" && message[.correlationData] == [0, 0xFF])
        await fixture.end(transport)
    }
}
