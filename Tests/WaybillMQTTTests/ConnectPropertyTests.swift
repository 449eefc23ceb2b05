import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Every field and property of CONNECT, set and left out, byte by byte (3.1.1, 3.1; MQTT 5, 3.1).
@Suite("MQTT transport: every property of CONNECT", .inSimulation, .timeLimit(.minutes(30)))
struct ConnectPropertyTests {
    private func expect(
        _ packet: Hex,
        _ version: MQTTConfiguration.Version,
        _ command: EntryCommand,
        _ headers: Headers = [:],
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws {
        let connack = version == .v5 ? "20 03 00 00 00" as Hex : "20 02 00 00"
        let script = ScriptedByteStream(.expect(packet.bytes), .reply(connack.bytes))
        let (transport, provider) = try scripted([script], version: version) {
            bare(&$0)
            $0.reconnection = .never
            change(&$0)
        }
        _ = try? await provider.request(.command(command, headers: headers))
        #expect(script.isComplete && script.failures == [])
        await transport.shutdown()
    }

    static let old: [(String, EntryCommand, Hex)] = [
        ("nothing", .connect, "10 0D 0004 4D515454 04 02 003C 0001 63"),
        (
            "client identifier", .connect(.clientIdentifier("id")),
            "10 0E 0004 4D515454 04 02 003C 0002 6964"
        ),
        (
            "user name", .connect(.userName("u")),
            "10 10 0004 4D515454 04 82 003C 0001 63 0001 75"
        ),
        (
            "user name and password", .connect(.userName("u"), .password("p")),
            "10 13 0004 4D515454 04 C2 003C 0001 63 0001 75 0001 70"
        ),
        (
            "will", .connect(.will(Will(topic: "w", body: "x"))),
            "10 13 0004 4D515454 04 06 003C 0001 63 0001 77 0001 78"
        ),
        (
            "will of QoS 1",
            .connect(.will(Will(topic: "w", body: "x", qos: .atLeastOnce))),
            "10 13 0004 4D515454 04 0E 003C 0001 63 0001 77 0001 78"
        ),
        (
            "retained will", .connect(.will(Will(topic: "w", body: "x", .retained))),
            "10 13 0004 4D515454 04 26 003C 0001 63 0001 77 0001 78"
        ),
        (
            "no clean session", .connect(.cleanStart(false)),
            "10 0D 0004 4D515454 04 00 003C 0001 63"
        ),
        (
            "no keep alive", .connect(.keepAlive(.zero)),
            "10 0D 0004 4D515454 04 02 0000 0001 63"
        ),
        (
            "everything",
            .connect(
                .userName("u"),
                .password("p"),
                .will(Will(topic: "w", body: "x", qos: .exactlyOnce, .retained)),
                .cleanStart(false),
                .keepAlive(.seconds(10))
            ), "10 19 0004 4D515454 04 F4 000A 0001 63 0001 77 0001 78 0001 75 0001 70"
        ),
    ]

    @Test("3.1.1: each field set alone, and all of them", arguments: old)
    func fields(_ name: String, _ command: EntryCommand, _ packet: Hex) async throws {
        try await expect(packet, .v3_1_1, command)
    }

    @Test("MQTT 5: without a property, CONNECT has none")
    func none() async throws {
        try await expect("10 0E 0004 4D515454 05 02 003C 00 0001 63", .v5, .connect)
    }

    static let configured: [(String, @Sendable (inout MQTTConfiguration) -> Void, Hex)] = [
        (
            "session expiry", { $0.session.expiry = .seconds(10) },
            "10 13 0004 4D515454 05 02 003C 05 11 0000000A 0001 63"
        ),
        (
            "receive maximum", { $0.limits.receiveMaximum = 5 },
            "10 11 0004 4D515454 05 02 003C 03 21 0005 0001 63"
        ),
        (
            "receive maximum of zero, which is not allowed", { $0.limits.receiveMaximum = 0 },
            "10 11 0004 4D515454 05 02 003C 03 21 0001 0001 63"
        ),
        (
            "maximum packet size",
            {
                $0.limits.announcesPacketSize = true
                $0.limits.packetSize = 1_000
            }, "10 13 0004 4D515454 05 02 003C 05 27 000003E8 0001 63"
        ),
        (
            "topic alias maximum", { $0.aliases.accepted = 7 },
            "10 11 0004 4D515454 05 02 003C 03 22 0007 0001 63"
        ),
        (
            "response information", { $0.replies.requestsResponseInformation = true },
            "10 10 0004 4D515454 05 02 003C 02 19 01 0001 63"
        ),
        (
            "problem information", { $0.requestsProblemInformation = true },
            "10 10 0004 4D515454 05 02 003C 02 17 01 0001 63"
        ),
        (
            "no problem information", { $0.requestsProblemInformation = false },
            "10 10 0004 4D515454 05 02 003C 02 17 00 0001 63"
        ),
    ]

    @Test("MQTT 5: each property of the configuration alone", arguments: configured)
    func properties(
        _ name: String,
        _ change: @Sendable (inout MQTTConfiguration) -> Void,
        _ packet: Hex
    ) async throws {
        try await expect(packet, .v5, .connect, [:], change)
    }

    @Test("MQTT 5: an entry's session expiry wins, and its headers are user properties")
    func entry() async throws {
        try await expect(
            "10 13 0004 4D515454 05 02 003C 05 11 00000014 0001 63",
            .v5,
            .connect(.sessionExpiry(.seconds(20)))
        ) { $0.session.expiry = .seconds(10) }
        try await expect(
            "10 13 0004 4D515454 05 02 003C 05 11 00000000 0001 63",
            .v5,
            .connect(.sessionExpiry(.zero))
        ) { $0.session.expiry = .seconds(10) }
        try await expect(
            "10 1C 0004 4D515454 05 02 003C 0E 26 0001 6B 0001 76 26 0001 6B 0001 77 0001 63",
            .v5,
            .connect,
            ["k": "v", "k": "w"]
        )
    }

    @Test("MQTT 5: all properties at once, with user name and password")
    func all() async throws {
        try await expect(
            """
            10 2F 0004 4D515454 05 C2 003C 1B 11 0000000A 21 0005 27 000003E8 22 0007 19 01 17 00 \
            26 0001 6B 0001 76 0001 63 0001 75 0001 70
            """,
            .v5,
            .connect(.userName("u"), .password("p")),
            ["k": "v"]
        ) {
            $0.session.expiry = .seconds(10)
            $0.limits.receiveMaximum = 5
            $0.limits.announcesPacketSize = true
            $0.limits.packetSize = 1_000
            $0.aliases.accepted = 7
            $0.replies.requestsResponseInformation = true
            $0.requestsProblemInformation = false
        }
    }

    static let wills: [(String, Will, Hex)] = [
        (
            "plain", Will(topic: "w", body: "x"),
            "10 15 0004 4D515454 05 06 003C 00 0001 63 00 0001 77 0001 78"
        ),
        (
            "delay", Will(topic: "w", body: "x", delay: .seconds(5)),
            "10 1A 0004 4D515454 05 06 003C 00 0001 63 05 18 00000005 0001 77 0001 78"
        ),
        (
            "text", Will(topic: "w", body: "x", .payloadFormat(.text)),
            "10 17 0004 4D515454 05 06 003C 00 0001 63 02 01 01 0001 77 0001 78"
        ),
        (
            "bytes", Will(topic: "w", body: "x", .payloadFormat(.bytes)),
            "10 17 0004 4D515454 05 06 003C 00 0001 63 02 01 00 0001 77 0001 78"
        ),
        (
            "expiry", Will(topic: "w", body: "x", .expiry(.seconds(10))),
            "10 1A 0004 4D515454 05 06 003C 00 0001 63 05 02 0000000A 0001 77 0001 78"
        ),
        (
            "content type", Will(topic: "w", body: "x", contentType: "a"),
            "10 19 0004 4D515454 05 06 003C 00 0001 63 04 03 0001 61 0001 77 0001 78"
        ),
        (
            "response topic", Will(topic: "w", body: "x", .responseTopic("r")),
            "10 19 0004 4D515454 05 06 003C 00 0001 63 04 08 0001 72 0001 77 0001 78"
        ),
        (
            "correlation data", Will(topic: "w", body: "x", .correlationData([1])),
            "10 19 0004 4D515454 05 06 003C 00 0001 63 04 09 0001 01 0001 77 0001 78"
        ),
        (
            "headers", Will(topic: "w", body: "x", headers: ["k": "v"]),
            "10 1C 0004 4D515454 05 06 003C 00 0001 63 07 26 0001 6B 0001 76 0001 77 0001 78"
        ),
        (
            "everything",
            Will(
                topic: "w",
                body: "x",
                contentType: "a",
                headers: ["k": "v"],
                delay: .seconds(5),
                .payloadFormat(.text),
                .expiry(.seconds(10)),
                .responseTopic("r"),
                .correlationData([1])
            ),
            """
            10 34 0004 4D515454 05 06 003C 00 0001 63 1F 18 00000005 01 01 02 0000000A 03 0001 61 \
            08 0001 72 09 0001 01 26 0001 6B 0001 76 0001 77 0001 78
            """
        ),
    ]

    @Test("MQTT 5: each property of the will alone, and all of them", arguments: wills)
    func will(_ name: String, _ will: Will, _ packet: Hex) async throws {
        try await expect(packet, .v5, .connect(.will(will)))
        // The same will by the configuration.
        try await expect(packet, .v5, .connect) { $0.will = will }
    }

    @Test("A will reaches a subscriber with all its properties")
    func willArrives() async throws {
        let fixture = try Fixture()
        let (watcher, watching) = try fixture.provider()
        let messages = try await watching.messages(.subscribe("w", qos: .atLeastOnce))
        let (transport, provider) = try fixture.provider {
            $0.will = Will(
                topic: "w",
                body: "x",
                contentType: "text/plain",
                headers: ["k": "v", "k": "w"],
                qos: .atLeastOnce,
                .payloadFormat(.text),
                .expiry(.seconds(90)),
                .responseTopic("r"),
                .correlationData([1, 2])
            )
        }
        try await provider.request(.connect)
        try await provider.request(.command(.disconnect(.publishesWill)))
        let message = try #require(try await take(1, messages).first)
        #expect(message.text == "x" && message.contentType == "text/plain")
        #expect(message.headers == ["k": "v", "k": "w"])
        #expect(message[.payloadFormat] == .text && message[.expiry] == .seconds(90))
        #expect(message[.responseTopic] == "r" && message[.correlationData] == [1, 2])
        #expect(message[.subscriptionIdentifiers] == nil)
        await transport.shutdown()
        await fixture.end(watcher)
    }

    // MARK: The answer

    @Test("The receipt of connect has every property of CONNACK, and so has the transport")
    func receipt() async throws {
        let connack: Hex = """
            20 37 00 00 34 11 00000064 21 0005 24 01 25 00 27 00000400 12 0001 69 22 0007 \
            1F 0001 72 26 0001 6B 0001 76 28 00 29 00 2A 00 13 000A 1A 0001 70 1C 0001 73
            """
        let script = ScriptedByteStream(
            .expect(("10 0F 0004 4D515454 05 02 003C 02 19 01 0000" as Hex).bytes),
            .reply(connack.bytes),
            .expect(("E0 00" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5) {
            bare(&$0)
            $0.clientIdentifier = ""
            $0.replies.requestsResponseInformation = true
        }
        #expect(transport.connack == nil)
        let receipt = try await provider.request(.connect)
        var expected = MQTTConnack()
        expected.sessionExpiry = .seconds(100)
        expected.receiveMaximum = 5
        expected.maximumQoS = .atLeastOnce
        expected.retainAvailable = false
        expected.maximumPacketSize = 1_024
        expected.assignedClientIdentifier = "i"
        expected.topicAliasMaximum = 7
        expected.reasonString = "r"
        expected.userProperties = ["k": "v"]
        expected.wildcardSubscriptionAvailable = false
        expected.subscriptionIdentifiersAvailable = false
        expected.sharedSubscriptionAvailable = false
        expected.serverKeepAlive = .seconds(10)
        expected.responseInformation = "p"
        expected.serverReference = "s"
        #expect(receipt.connack == expected)
        #expect(transport.connack == expected)
        #expect(receipt.clientIdentifier == "i")
        try await provider.request(.disconnect)
        #expect(transport.connack == nil)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A CONNACK without properties has the values of the specification; 3.1.1 has none")
    func defaults() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5, bare)
        let receipt = try await provider.request(.connect)
        #expect(receipt.connack == MQTTConnack())
        await transport.shutdown()
        let (old, oldProvider) = try scripted([.accepted()])
        #expect(try await oldProvider.request(.connect).connack == nil)
        #expect(old.connack == nil)
        await old.shutdown()
    }

    @Test(
        "A session that only the entry has asked for is continued, and its end may have an expiry"
    )
    func perConnect() async throws {
        let first = ScriptedByteStream(
            .expect(("10 13 0004 4D515454 05 02 003C 05 11 00000014 0001 63" as Hex).bytes),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("30 05 0001 74 00 78" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream(
            // Without a clean start.
            .expect(("10 13 0004 4D515454 05 00 003C 05 11 00000014 0001 63" as Hex).bytes),
            .reply(("20 06 01 00 03 22 0001" as Hex).bytes),
            .expect(("E0 07 00 05 11 00000001" as Hex).bytes)
        )
        let (transport, provider) = try scripted([first, second], version: .v5) {
            bare(&$0)
            $0.reconnection = ReconnectionPolicy()
        }
        try await provider.request(.command(.connect(.sessionExpiry(.seconds(20)))))
        try await provider.request(.send("x"))
        try await waitUntil { transport.connack?.topicAliasMaximum == 1 }
        try await provider.request(.command(.disconnect(.sessionExpiry(.seconds(1)))))
        #expect(first.failures == [] && second.failures == [])
        #expect(second.isComplete)
        await transport.shutdown()
    }

    // MARK: PUBLISH

    static let sends: [(String, EntryCommand, Headers, Hex)] = [
        ("plain", .send, [:], "30 05 0001 74 00 78"),
        ("text", .send(.payloadFormat(.text)), [:], "30 07 0001 74 02 01 01 78"),
        ("bytes", .send(.payloadFormat(.bytes)), [:], "30 07 0001 74 02 01 00 78"),
        (
            "expiry", .send(.expiry(.seconds(10))), [:],
            "30 0A 0001 74 05 02 0000000A 78"
        ),
        (
            "content type", .send, ["content-type": "a"],
            "30 09 0001 74 04 03 0001 61 78"
        ),
        (
            "response topic", .send(.responseTopic("r")), [:],
            "30 09 0001 74 04 08 0001 72 78"
        ),
        (
            "correlation data", .send(.correlationData([1])), [:],
            "30 09 0001 74 04 09 0001 01 78"
        ),
        ("headers", .send, ["k": "v"], "30 0C 0001 74 07 26 0001 6B 0001 76 78"),
        (
            "everything",
            .send(
                .expiry(.seconds(10)),
                .responseTopic("r"),
                .correlationData([1]),
                .payloadFormat(.text)
            ),
            ["content-type": "a", "k": "v"],
            """
            30 1F 0001 74 1A 03 0001 61 02 0000000A 08 0001 72 09 0001 01 01 01 26 0001 6B 0001 76 78
            """
        ),
    ]

    @Test("MQTT 5: each property of PUBLISH alone, and all of them", arguments: sends)
    func publish(
        _ name: String,
        _ command: EntryCommand,
        _ headers: Headers,
        _ packet: Hex
    ) async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(packet.bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5, bare)
        try await provider.request(.connect)
        let body = EntryBody.bytes([0x78])
        try await provider.request(
            .command(command, topic: "t", body: body, headers: headers)
        )
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("The declaration as text is readable on the received message")
    func received() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe())
        for options in [[.payloadFormat(.text)], [.payloadFormat(.bytes)], []] as [[SendOption]] {
            try await provider.request(
                .command(.send(options: options), topic: "t", body: .text("é"))
            )
        }
        let heard = try await take(3, messages)
        #expect(heard.map { $0[.payloadFormat] } == [.text, .bytes, nil])
        await fixture.end(transport)
    }
}
