import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT: topic aliases of the peer (3.3.2.3.4)") struct ReceivedAliasTests {
    /// Each row: a topic, an alias, and the topic of the message or the violation.
    @Test(
        "The table of aliases",
        arguments: [
            (2, [("a", 1, "a"), ("", 1, "a"), ("", 1, "a")]),
            (2, [("a", 1, "a"), ("b", 2, "b"), ("", 1, "a"), ("", 2, "b")]),
            (2, [("a", 1, "a"), ("b", 1, "b"), ("", 1, "b")]),
            (2, [("a", 1, "a"), ("a", 2, "a"), ("", 2, "a"), ("", 1, "a")]),
            (2, [("a", nil, "a"), ("", 1, "topicAliasUnknown")]),
            (2, [("a", 1, "a"), ("", 2, "topicAliasUnknown")]),
            (2, [("a", 3, "topicAliasInvalid")]), (2, [("a", 0, "topicAliasInvalid")]),
            (2, [("", 3, "topicAliasInvalid")]), (0, [("a", 1, "topicAliasInvalid")]),
            (65_535, [("a", 65_535, "a"), ("", 65_535, "a")]),
        ] as [(UInt16, [(String, UInt16?, String)])]
    )
    func table(maximum: UInt16, rows: [(String, UInt16?, String)]) {
        var aliases = MQTTReceivedAliases(maximum: maximum)
        for (topic, alias, result) in rows {
            var publish = MQTTPublish(topic: topic)
            publish.properties.topicAlias = alias
            do {
                try aliases.resolve(&publish)
                #expect(publish == MQTTPublish(topic: result))
            } catch {
                #expect("\(error)" == result)
            }
        }
    }

    @Test("Other properties stay")
    func properties() throws {
        var aliases = MQTTReceivedAliases(maximum: 1)
        var publish = MQTTPublish(topic: "a")
        publish.properties.contentType = "text/plain"
        let plain = publish
        publish.properties.topicAlias = 1
        try aliases.resolve(&publish)
        #expect(publish == plain)
    }

    @Test("Sixteen aliases have any topics; more than 1 MiB of topics are refused")
    func bound() throws {
        var aliases = MQTTReceivedAliases(maximum: .max)
        func define(_ alias: UInt16, _ byteCount: Int) throws {
            var publish = MQTTPublish(topic: String(repeating: "t", count: byteCount))
            publish.properties.topicAlias = alias
            try aliases.resolve(&publish)
        }
        for round in 0..<3 {
            for alias in UInt16(1)...16 { try define(alias, 65_535 - round) }
        }
        #expect(aliases.byteCount == 16 * 65_533)
        #expect(throws: MQTTViolation.topicAliasesTooLong) { try define(17, 65_535) }
        #expect(MQTTViolation.topicAliasesTooLong.reasonCode == .quotaExceeded)
    }

    private func harness(_ maximum: UInt16 = 2, tracing: Bool = false) throws -> ClientHarness {
        var connect = MQTTConnect(clientIdentifier: "c")
        connect.properties.topicAliasMaximum = maximum
        return try ClientHarness(.v5, connect: connect) { $0.isTracing = tracing }
    }

    @Test("Packets that define, use and replace an alias", arguments: [false, true])
    func golden(tracing: Bool) throws {
        var harness = try harness(tracing: tracing)
        let bytes: Hex = """
            30 0A 0003 612F62 03 23 0001 31  30 07 0000 03 23 0001 32
            30 05 0001 63 00 33  30 07 0000 03 23 0001 34
            32 0A 0001 64 0007 03 23 0001 35  30 07 0000 03 23 0001 36
            """
        harness.receive(bytes.bytes)
        #expect(harness.topics == ["a/b", "a/b", "c", "a/b", "d", "d"])
        #expect(
            harness.told().filter { !$0.hasPrefix("trace") } == (1...6).map { "message \($0)" }
        )
        #expect(harness.receipts.count == 1)
    }

    /// Each row: the bytes, the violation, and the reason code of the client's DISCONNECT.
    @Test(
        "Aliases that are refused",
        arguments: [
            ("30 07 0001 61 03 23 0003", "topicAliasInvalid", 0x94),
            ("30 07 0001 61 03 23 0000", "topicAliasInvalid", 0x94),
            ("30 06 0000 03 23 0002", "topicAliasUnknown", 0x82),
            ("30 0A 0001 61 06 23 0001 23 0001", "propertyRepeated(.publish)", 0x82),
            ("30 03 0000 00", "topicNameMissing", 0x82),
        ]
    )
    func refused(hex: String, name: String, reason: UInt8) throws {
        var harness = try harness()
        harness.receive(("30 0A 0003 612F62 03 23 0001 31" as Hex).bytes)
        harness.receive(Hex(stringLiteral: hex).bytes)
        #expect(harness.told() == ["message 1", "closed \(name)"])
        let code = MQTTReasonCode(rawValue: reason)
        #expect(harness.sent == [.disconnect(MQTTDisconnect(reasonCode: code))])
    }

    @Test("A repetition that is not delivered defines its alias")
    func repetition() throws {
        var harness = try harness()
        harness.receive(
            ("34 08 0001 61 0001 00 31 78  3C 0A 0001 61 0001 03 23 0001 31" as Hex).bytes
        )
        harness.receive(("30 07 0000 03 23 0001 32" as Hex).bytes)
        #expect(harness.topics == ["a", "a"])
    }

    @Test("Aliases end with the connection (3.3.2-7)")
    func reconnection() throws {
        var harness = try harness()
        harness.receive(("30 0A 0003 612F62 03 23 0001 31" as Hex).bytes)
        let session = harness.cut()
        // The harness's CONNECT allows no alias.
        try harness.connect(resuming: session, connack: MQTTConnackPacket())
        harness.log = []
        harness.receive(("30 07 0000 03 23 0001 32" as Hex).bytes)
        #expect(harness.told() == ["closed topicAliasInvalid"])

        var next = try self.harness()
        next.receive(("30 07 0000 03 23 0001 32" as Hex).bytes)
        #expect(next.told() == ["closed topicAliasUnknown"])
    }

    @Test("Messages with aliases are runs like others")
    func runs() throws {
        var connect = MQTTConnect(clientIdentifier: "c")
        connect.properties.topicAliasMaximum = 2
        var client = MQTTClientConnection()
        try client.connect(connect, hasSessionState: false, at: .zero)
        var buffer = ReceiveBuffer()
        let bytes: Hex = """
            20 03 00 00 00
            30 0A 0003 612F62 03 23 0001 31  30 07 0000 03 23 0001 32
            30 09 0000 05 0B 07 23 0001 33  30 09 0000 05 23 0001 0B 07 34
            30 07 0000 03 23 0001 35  30 07 0003 612F62 00 36
            30 0B 0000 07 23 0001 03 0001 78 37
            """
        buffer.append(bytes.bytes)
        client.receive(&buffer, at: .zero)
        var runs: [String] = []
        for case .messages(let arrivals) in client.takeEvents() {
            arrivals.forEachRun { run in
                let bodies = run.indices.map {
                    String(decoding: arrivals.publish(at: $0).payload.bytes, as: UTF8.self)
                }
                #expect(run.topic == "a/b")
                runs.append("\(bodies.joined()) \(run.subscriptionIdentifiers)")
                #expect(run.hasProperties == (bodies == ["7"]))
            }
        }
        #expect(runs == ["12 []", "34 [7]", "5 []", "6 []", "7 []"])
    }
}

@Suite("MQTT: topic aliases of this side (3.3.2.3.4)") struct SentAliasTests {
    private func harness(
        _ maximum: UInt16?,
        size: UInt32? = nil,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) throws -> ClientHarness {
        var connack = MQTTConnackPacket()
        connack.properties.topicAliasMaximum = maximum
        connack.properties.maximumPacketSize = size
        return try ClientHarness(.v5, connack: connack, change)
    }

    @Test("Packets that define and use an alias")
    func golden() throws {
        var harness = try harness(1)
        for topic in ["ab/cd", "ab/cd", "ab/ce", "ab"] {
            try harness.publish(.atMostOnce, 1, topic: topic)
        }
        try harness.publish(.atLeastOnce, 2, topic: "ab/cd")
        let bytes: Hex = """
            30 0C 0005 61622F6364 03 23 0001 31
            30 07 0000 03 23 0001 31
            30 09 0005 61622F6365 00 31
            30 06 0002 6162 00 31
            32 09 0000 0001 03 23 0001 32
            """
        #expect(harness.client.outbound.takeBytes() == bytes.bytes)
        // Twice 2 bytes saved, and 3 bytes for the definition.
        #expect(harness.client.savedByteCount == 1)
    }

    @Test("No alias without a maximum, above it, or if the app wants none (3.2.2-17, 3.2.2-18)")
    func limits() throws {
        for maximum in [nil, 0, 1, 3] as [UInt16?] {
            for isWanted in [true, false] {
                var harness = try harness(maximum) { $0.usesTopicAliases = isWanted }
                for number in 0..<1_000 {
                    try harness.publish(.atMostOnce, topic: "topic/\(number * number % 7)")
                }
                let aliases = harness.sent.compactMap { packet -> UInt16? in
                    guard case .publish(let publish) = packet else { return nil }
                    return publish.properties.topicAlias
                }
                let allowed = isWanted ? maximum ?? 0 : 0
                #expect(Set(aliases) == Set((0...allowed).dropFirst()))
                #expect((harness.client.savedByteCount > 0) == (allowed > 0))
            }
        }
    }

    @Test("Other properties are sent with the alias")
    func properties() throws {
        var harness = try harness(1)
        var publish = MQTTPublish(topic: "ab/cd")
        publish.properties.contentType = "x"
        publish.properties.userProperties = [MQTTUserProperty(name: "n", value: "v")]
        for _ in 0..<2 {
            try harness.client.publishAtMostOnce(publish, payload: [UInt8](), at: .zero)
        }
        let sent = harness.sent
        publish.properties.topicAlias = 1
        #expect(sent.first == .publish(publish))
        publish.topic = ""
        #expect(sent.last == .publish(publish))
    }

    @Test("A caller does not choose aliases")
    func ownAlias() throws {
        var harness = try harness(1)
        var publish = MQTTPublish(topic: "ab/cd")
        publish.properties.topicAlias = 1
        #expect(throws: MQTTSendError.encoding(.propertyNotAllowed(.topicAlias))) {
            try harness.client.publishAtMostOnce(publish, payload: [UInt8](), at: .zero)
        }
        #expect(harness.sent == [])
    }

    @Test("An alias is defined by the first packet that is written")
    func refusedDefinition() throws {
        var harness = try harness(1, size: 16)
        #expect(throws: MQTTSendError.packetTooLarge(byteCount: 17, maximum: 16)) {
            try harness.publish(.atMostOnce, 1_234_567, topic: "ab/cd")
        }
        #expect(throws: MQTTSendError.encoding(.topicNameHasWildcard)) {
            try harness.publish(.atMostOnce, topic: "ab/+")
        }
        // 14 bytes: no room for the alias.
        try harness.publish(.atMostOnce, 1_234, topic: "ab/cd")
        // 13 bytes, and 16 with the alias.
        try harness.publish(.atMostOnce, 123, topic: "ab/cd")
        try harness.publish(.atMostOnce, 12, topic: "ab/cd")
        // It would fit with the alias alone, but not after a reconnection.
        #expect(throws: MQTTSendError.packetTooLarge(byteCount: 17, maximum: 16)) {
            try harness.publish(.atMostOnce, 1_234_567, topic: "ab/cd")
        }
        let bytes: Hex = """
            30 0C 0005 61622F6364 00 31323334
            30 0E 0005 61622F6364 03 23 0001 313233
            30 08 0000 03 23 0001 3132
            """
        #expect(harness.client.outbound.takeBytes() == bytes.bytes)
    }

    @Test("Queued messages define and use aliases in the order of writing")
    func queued() throws {
        var harness = try harness(1) { $0.inflightWindow = 1 }
        try harness.publish(.atLeastOnce, 1, topic: "one")
        try harness.publish(.atLeastOnce, 2, topic: "ab/cd")
        try harness.publish(.atMostOnce, 3, topic: "ab/cd")
        try harness.publish(.atLeastOnce, 4, topic: "ab/cd")
        harness.receive(.puback(.ack(1)))
        harness.receive(.puback(.ack(2)))
        #expect(named(harness.sent) == ["one", "ab/cd 1", " 1", " 1"])
    }

    private func named(_ packets: [MQTTPacket]) -> [String] {
        packets.compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            let alias = publish.properties.topicAlias.map { " \($0)" } ?? ""
            return (publish.isDuplicate ? "dup " : "") + publish.topic + alias
        }
    }

    @Test("After a reconnection topics are sent again, and repetitions have no alias (3.3.2-7)")
    func reconnection() throws {
        var harness = try harness(1) { $0.keepsSession = true }
        for number in 1...3 { try harness.publish(.exactlyOnce, number, topic: "ab/cd") }
        #expect(named(harness.sent) == ["ab/cd 1", " 1", " 1"])
        try harness.reconnect(sessionPresent: true) { $0.properties.topicAliasMaximum = 1 }
        #expect(harness.client.savedByteCount == 0)
        harness.resume()
        #expect(named(harness.sent) == ["dup ab/cd", "dup ab/cd", "dup ab/cd"])
        try harness.publish(.atMostOnce, 4, topic: "ab/cd")
        try harness.publish(.atMostOnce, 5, topic: "ab/cd")
        #expect(named(harness.sent) == ["ab/cd 1", " 1"])
        // The next server allows none.
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        try harness.publish(.atMostOnce, 6, topic: "ab/cd")
        #expect(named(harness.sent) == ["dup ab/cd", "dup ab/cd", "dup ab/cd", "ab/cd"])
    }

    @Test("Messages of a lost session are sent as new ones")
    func lostSession() throws {
        var harness = try harness(1) { $0.keepsSession = true }
        for number in 1...2 { try harness.publish(.atLeastOnce, number, topic: "ab/cd") }
        _ = harness.sent
        try harness.reconnect(sessionPresent: false) { $0.properties.topicAliasMaximum = 1 }
        harness.resume()
        #expect(named(harness.sent) == ["ab/cd 1", " 1"])
    }

    // MARK: The policy

    /// Sends topics through a table, and returns how each packet names its topic.
    private func names(_ aliases: inout MQTTSentAliases, _ topics: [String]) -> [String] {
        topics.map { topic in
            switch aliases.naming(of: topic) {
            case .topic: return topic
            case .alias(let alias): return "\(alias.number)"
            case .definition(let alias):
                aliases.noteDefinition(of: alias, for: topic)
                return "\(topic)=\(alias.number)"
            }
        }
    }

    @Test(
        "The table of aliases",
        arguments: [
            // A topic of three bytes saves nothing.
            ("aaa aaa aaa", "aaa aaa aaa"), ("aaaa aaaa aaa", "aaaa=1 1 aaa"),
            ("aaaaa bbbbb aaaaa bbbbb", "aaaaa=1 bbbbb=2 1 2"),
            // Twice as much as the least used alias.
            (
                "aaaaa aaaaa bbbbb ccccc ccccc ccccc bbbbb",
                "aaaaa=1 1 bbbbb=2 ccccc ccccc ccccc=2 bbbbb"
            ),
            // The topic that lost its alias gets it back.
            (
                "aaaaa aaaaa bbbbb ccccc ccccc ccccc bbbbb bbbbb bbbbb bbbbb bbbbb bbbbb",
                "aaaaa=1 1 bbbbb=2 ccccc ccccc ccccc=2 bbbbb bbbbb bbbbb bbbbb=1 1 1"
            ),
            // A long topic saves more at once.
            ("aaaaa bbbbb cccccccccc cccccccccc", "aaaaa=1 bbbbb=2 cccccccccc cccccccccc=1"),
        ]
    )
    func policy(topics: String, names: String) {
        var aliases = MQTTSentAliases(maximum: 2)
        let result = self.names(&aliases, topics.split(separator: " ").map(String.init))
        #expect(result.joined(separator: " ") == names)
    }

    @Test("Names are compared by bytes")
    func bytes() {
        var aliases = MQTTSentAliases(maximum: 9)
        let topics = ["caf\u{E9}", "cafe\u{301}", "caf\u{E9}", "cafe\u{301}"]
        #expect(names(&aliases, topics).map { $0.utf8.count } == [7, 8, 1, 1])
    }

    @Test("Many topics of one message each keep the aliases where they are, and little memory")
    func manyTopics() {
        var aliases = MQTTSentAliases(maximum: 2)
        _ = names(&aliases, ["often/1", "often/2"])
        for number in 0..<20_000 {
            let names = names(&aliases, ["once/\(number)", "often/1", "often/2"])
            #expect(names == ["once/\(number)", "1", "2"])
            #expect(aliases.topicCount <= 2 + MQTTSentAliases.candidateLimit)
        }
    }

    @Test("Topics that are no longer used lose their aliases")
    func aging() {
        var aliases = MQTTSentAliases(maximum: 1)
        _ = names(&aliases, Array(repeating: "early", count: 100_000))
        let late = names(&aliases, Array(repeating: "later", count: 10 * MQTTSentAliases.window))
        #expect(late.contains("later=1"))
        #expect(late.last == "1")
    }

    @Test("Ten of fifty topics keep their aliases: definitions are rare")
    func evenTraffic() {
        var generator = SeededGenerator(seed: 7)
        var aliases = MQTTSentAliases(maximum: 10)
        let topics = (0..<50_000).map { _ in "a/long/topic/\(generator.next() % 50)" }
        let names = names(&aliases, topics)
        #expect(names.count { $0.contains("=") } < 500)
        #expect(names.count { UInt16($0) != nil } > 9_000)
    }

    /// The reader of the other side finds every topic, and the counter is exact.
    @Test("Random topics arrive whole, and the counter has the bytes saved", arguments: 0..<5)
    func random(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let maximum = UInt16(generator.next() % 12)
        var harness = try harness(maximum) { $0.inflightWindow = 100 }
        var plain = try self.harness(nil) { $0.inflightWindow = 100 }
        var saved = 0
        var aliases = MQTTReceivedAliases(maximum: maximum)
        let topics = (0..<40).map { String(repeating: "t", count: Int($0) % 7) + "/\($0)" }
        for _ in 0..<200 {
            var expected: [String] = []
            for _ in 0..<40 {
                let spread = generator.next() % 40 + 1
                let topic = topics[Int(generator.next() % spread)]
                expected.append(topic)
                let qos = MQTTQoS(rawValue: UInt8(generator.next() % 2)) ?? .atMostOnce
                try harness.publish(qos, topic: topic)
                try plain.publish(qos, topic: topic)
            }
            saved += plain.client.outbound.count - harness.client.outbound.count
            #expect(saved == harness.client.savedByteCount)
            _ = plain.sent
            var found: [String] = []
            for case .publish(var publish) in harness.sent {
                try aliases.resolve(&publish)
                found.append(publish.topic)
                if publish.qos != .atMostOnce {
                    harness.receive(.puback(.ack(publish.packetIdentifier)))
                    plain.receive(.puback(.ack(publish.packetIdentifier)))
                }
            }
            #expect(found == expected)
        }
    }
}
