import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT client: messages that outlast the connection (4.1, 4.4, 4.6, 4.9)")
struct SessionSendingTests {
    /// Connects with a session that outlives the connection, and with a send window.
    private func start(_ version: MQTTVersion, window: Int = 20) throws -> ClientHarness {
        try ClientHarness(version) {
            $0.keepsSession = true
            $0.inflightWindow = window
        }
    }

    /// Has messages at every stage: 1 is past PUBREC, 2 and 3 are sent, 4 and 5 are queued.
    private func midway(_ version: MQTTVersion) throws -> ClientHarness {
        var harness = try start(version, window: 3)
        let qualities: [MQTTQoS] = [
            .exactlyOnce, .exactlyOnce, .atLeastOnce, .exactlyOnce, .atLeastOnce,
        ]
        for (index, quality) in qualities.enumerated() { try harness.publish(quality, index + 1) }
        harness.receive(.pubrec(.ack(1)))
        _ = harness.sent
        return harness
    }

    @Test("The end abandons SUBSCRIBE and UNSUBSCRIBE, no message", arguments: MQTTVersion.allCases)
    func abandoned(version: MQTTVersion) throws {
        var harness = try midway(version)
        let filters = [MQTTSubscription(filter: "a")]
        try harness.client.send(.subscribe(filters), call: Call(8), at: harness.now)
        try harness.client.send(.unsubscribe(["a"]), call: Call(9), at: harness.now)
        #expect(harness.client.takeSessionState().isEmpty, "the core has it until its end")
        let session = harness.cut()
        #expect(harness.told() == ["abandoned 8", "abandoned 9", "closed endOfStream"])
        #expect(session.messageCount == 5)
        #expect(session.calls.map { harness.number($0) } == [1, 2, 3, 4, 5])
        #expect(!session.isEmpty)
        #expect(harness.client.takeSessionState().isEmpty, "taken once")
    }

    @Test(
        "A message that is sent once ends with its connection, sent or not, and its identifier is free",
        arguments: MQTTVersion.allCases,
        [true, false]
    )
    func sentOnce(version: MQTTVersion, isResumed: Bool) throws {
        var harness = try start(version, window: 2)
        func publish(_ qos: MQTTQoS, _ call: Int, isSentOnce: Bool) throws {
            let message = MQTTOutgoingMessage(
                publish: MQTTPublish(topic: "t\(call)", qos: qos),
                payload: [UInt8](),
                isSentOnce: isSentOnce
            )
            try harness.client.publish(message, call: Call(call), timeout: nil, at: harness.now)
        }
        // 1 and 2 are sent, 3 to 5 are queued; QoS 2 has no such messages.
        try publish(.atLeastOnce, 1, isSentOnce: true)
        try publish(.atLeastOnce, 2, isSentOnce: false)
        try publish(.atLeastOnce, 3, isSentOnce: true)
        try publish(.atLeastOnce, 4, isSentOnce: false)
        try publish(.exactlyOnce, 5, isSentOnce: true)
        _ = harness.sent
        let session = harness.cut()
        #expect(harness.told() == ["abandoned 1", "abandoned 3", "closed endOfStream"])
        #expect(session.calls.map { harness.number($0) } == [2, 4, 5])
        try harness.connect(
            resuming: session,
            connack: MQTTConnackPacket(sessionPresent: isResumed)
        )
        harness.resume()
        let sent = harness.sent.compactMap { packet -> String? in
            guard case .publish(let publish) = packet else { return nil }
            return "\(publish.topic)\(publish.isDuplicate ? " again" : "")"
        }
        #expect(sent == (isResumed ? ["t2 again", "t4"] : ["t2", "t4"]))
        // The window counts neither of the two that are gone.
        harness.receive(.puback(.ack(isResumed ? 2 : 1)))
        #expect(harness.sent.count == 1)
        #expect(harness.client.takeSessionState().isEmpty, "the core has it until its end")
    }

    @Test("Every way to the end keeps the messages", arguments: MQTTVersion.allCases)
    func ends(version: MQTTVersion) throws {
        let ends: [(inout ClientHarness) -> Void] = [
            { $0.endOfStream() },
            { $0.client.disconnect(at: $0.now) },
            { $0.receive([0x00, 0x00]) },
            { $0.receive(.pingreq) },
            {
                $0.advance(.seconds(29))
                $0.advance(.seconds(31))
                $0.advance(.seconds(20))
            },
        ]
        for end in ends {
            var harness = try start(version)
            try harness.publish(.atLeastOnce, 1, timeout: .seconds(1_000))
            end(&harness)
            harness.note()
            #expect(harness.client.isFinished)
            #expect(!harness.told().contains { $0.hasPrefix("abandoned") })
            #expect(harness.client.takeSessionState().messageCount == 1)
        }
    }

    @Test("A core that keeps no session abandons all, carried messages too")
    func notKept() throws {
        var harness = try midway(.v5)
        try harness.connect(resuming: harness.cut(), connack: nil) { $0.keepsSession = false }
        _ = harness.told()
        let session = harness.cut()
        #expect(harness.told() == (1...5).map { "abandoned \($0)" } + ["closed endOfStream"])
        #expect(session.isEmpty)
        #expect(session.messageCount == 0)
    }

    @Test(
        "Session present: PUBREL, then PUBLISH with DUP and its identifier, then the queue (4.4.0-1)",
        arguments: MQTTVersion.allCases
    )
    func present(version: MQTTVersion) throws {
        var harness = try midway(version)
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        #expect(
            harness.sent == [
                .pubrel(.ack(1)), .message("2", .exactlyOnce, id: 2, dup: true),
                .message("3", .atLeastOnce, id: 3, dup: true), .message("4", .exactlyOnce, id: 4),
            ]
        )
        harness.resume()
        #expect(harness.sent == [], "once")
        harness.receive(.pubcomp(.ack(1)))
        #expect(harness.sent == [], "a PUBREL had no place in the window to free")
        harness.receive(.puback(.ack(3)), .pubrec(.ack(2)))
        #expect(harness.sent == [.message("5", .atLeastOnce, id: 5), .pubrel(.ack(2))])
        harness.receive(.pubcomp(.ack(2)), .puback(.ack(5)), .pubrec(.ack(4)), .pubcomp(.ack(4)))
        #expect(harness.told() == [1, 3, 2, 5, 4].map { "published \($0) Success (0x00)" })
        #expect(harness.cut().isEmpty)
    }

    @Test(
        "Session lost: QoS 1 goes out as new, QoS 2 that was sent is dropped (3.2.2-5)",
        arguments: MQTTVersion.allCases
    )
    func lost(version: MQTTVersion) throws {
        var harness = try midway(version)
        try harness.reconnect(sessionPresent: false)
        harness.receive(.puback(.ack(3)), .pubrec(.ack(2)), .pubcomp(.ack(1)))
        _ = harness.sent
        #expect(harness.told() == [], "identifiers of the lost session mean nothing")
        harness.resume()
        #expect(harness.told() == ["lost 1", "lost 2"])
        #expect(
            harness.sent == [
                .message("3", .atLeastOnce, id: 1), .message("4", .exactlyOnce, id: 2),
                .message("5", .atLeastOnce, id: 3),
            ]
        )
        harness.receive(.puback(.ack(1)), .puback(.ack(3)), .pubrec(.ack(2)), .pubcomp(.ack(2)))
        #expect(harness.told() == [3, 5, 4].map { "published \($0) Success (0x00)" })
    }

    @Test("Until it resumes, new messages wait behind old ones, and QoS 0 does not")
    func held() throws {
        for isPresent in [true, false] {
            var harness = try start(.v5)
            try harness.publish(.atLeastOnce, 1)
            try harness.reconnect(sessionPresent: isPresent)
            try harness.publish(.atLeastOnce, 2)
            #expect(harness.sent == [])
            try harness.publish(.atMostOnce, 3)
            #expect(harness.sent == [.message("3")])
            harness.resume()
            #expect(
                harness.sent == [
                    .message("1", .atLeastOnce, id: 1, dup: isPresent),
                    .message("2", .atLeastOnce, id: 2),
                ]
            )
        }
    }

    @Test("Nothing carried: nothing is held, and resuming does nothing")
    func nothingCarried() throws {
        for isPresent in [true, false] {
            var harness = try start(.v5, window: 1)
            try harness.reconnect(sessionPresent: isPresent)
            try harness.publish(.atLeastOnce, 1)
            #expect(harness.sent == [.message("1", .atLeastOnce, id: 1)])
            harness.resume()
            #expect(harness.sent == [])
        }
    }

    @Test("PUBCOMP 0x92 for a PUBREL that is sent again is success (MQTT 5, 3.7.2.1)")
    func completedBefore() throws {
        var harness = try start(.v5, window: 10)
        for number in 1...2 { try harness.publish(.exactlyOnce, number) }
        harness.receive(.pubrec(.ack(1)))
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        // The server had completed the first message before the connection was lost. It gets the second one again.
        harness.receive(.pubcomp(.ack(1, .packetIdentifierNotFound)), .pubrec(.ack(2)))
        #expect(harness.told() == ["published 1 Success (0x00)"])
        harness.receive(.pubcomp(.ack(2, .packetIdentifierNotFound)))
        let code = "Packet Identifier not found (0x92)"
        #expect(harness.told() == ["published 2 \(code)"], "no PUBREL of it was sent before")
    }

    @Test("Identifiers in flight stay reserved for a SUBSCRIBE sent first (2.2.1-3)")
    func reserved() throws {
        var harness = try start(.v5, window: 100)
        for number in 1...50 { try harness.publish(.atLeastOnce, number) }
        try harness.reconnect(sessionPresent: true)
        var seen: Set<UInt16> = []
        for _ in 0..<65_000 {
            try harness.client.send(
                .subscribe([MQTTSubscription(filter: "a")]),
                call: Call(0),
                at: harness.now
            )
            guard case .subscribe(let subscribe)? = harness.sent.first else { break }
            seen.insert(subscribe.packetIdentifier)
            let answer = MQTTSuback(
                packetIdentifier: subscribe.packetIdentifier,
                reasonCodes: [.success]
            )
            harness.receive(.suback(answer))
        }
        #expect(seen.count > 1_000)
        #expect(seen.isDisjoint(with: 1...50))
        _ = harness.told()
        harness.resume()
        #expect(harness.sent.count == 50)
    }

    @Test("A smaller window: as many as it takes, the rest as places become free (4.9)")
    func smallerWindow() throws {
        var harness = try start(.v5, window: 10)
        for number in 1...12 {
            try harness.publish(number == 2 ? .exactlyOnce : .atLeastOnce, number)
        }
        harness.receive(.pubrec(.ack(2)))
        try harness.reconnect(sessionPresent: true, receiveMaximum: 2)
        harness.resume()
        #expect(
            harness.sent == [
                .pubrel(.ack(2)), .message("1", .atLeastOnce, id: 1, dup: true),
                .message("3", .atLeastOnce, id: 3, dup: true),
            ]
        )
        var order: [MQTTPacket] = []
        for id in UInt16(1)...12 {
            harness.receive(id == 2 ? .pubcomp(.ack(2)) : .puback(.ack(id)))
            order += harness.sent
        }
        let expected: [MQTTPacket] =
            (UInt16(4)...10).map { .message("\($0)", .atLeastOnce, id: $0, dup: true) }
            + (UInt16(11)...12).map { .message("\($0)", .atLeastOnce, id: $0) }
        #expect(order == expected)
        #expect(harness.told().count == 12)
    }

    @Test("An answer to what waits to be sent again ends it, and it is not sent again")
    func answeredEarly() throws {
        var harness = try start(.v5)
        for number in 1...3 { try harness.publish(.atLeastOnce, number) }
        try harness.reconnect(sessionPresent: true, receiveMaximum: 1)
        harness.receive(.puback(.ack(2)))
        #expect(harness.told() == ["published 2 Success (0x00)"])
        harness.resume()
        harness.receive(.puback(.ack(3)), .puback(.ack(1)))
        #expect(harness.sent == [.message("1", .atLeastOnce, id: 1, dup: true)])
        #expect(harness.told() == [1, 3].reversed().map { "published \($0) Success (0x00)" })
        try harness.publish(.atLeastOnce, 4)
        try harness.publish(.atLeastOnce, 5)
        #expect(harness.sent.count == 1, "the window is counted right")
    }

    @Test("PUBRELs are sent again in the order of the PUBRECs (4.6.0-4)")
    func releaseOrder() throws {
        for version in MQTTVersion.allCases {
            var harness = try start(version)
            for number in 1...4 { try harness.publish(.exactlyOnce, number) }
            harness.receive(.pubrec(.ack(3)), .pubrec(.ack(1)), .pubrec(.ack(4)))
            for _ in 1...2 {
                try harness.reconnect(sessionPresent: true)
                harness.resume()
                #expect(
                    harness.sent == [
                        .pubrel(.ack(3)), .pubrel(.ack(1)), .pubrel(.ack(4)),
                        .message("2", .exactlyOnce, id: 2, dup: true),
                    ]
                )
            }
        }
    }

    @Test("What the server does not take any longer is refused, and blocks nothing")
    func limits() throws {
        var harness = try start(.v5, window: 3)
        try harness.publish(.exactlyOnce, 1)
        let retained = MQTTPublish(topic: "t", qos: .atLeastOnce, isRetained: true)
        let message = MQTTOutgoingMessage(publish: retained, payload: [UInt8]())
        try harness.client.publish(message, call: Call(2), at: harness.now)
        try harness.publish(.exactlyOnce, 3)
        try harness.publish(.atLeastOnce, 4)
        try harness.publish(.exactlyOnce, 5)
        try harness.publish(.atLeastOnce, 6, topic: String(repeating: "t", count: 50))
        harness.receive(.pubrec(.ack(1)))
        try harness.reconnect(sessionPresent: true) {
            $0.properties.maximumQoS = .atLeastOnce
            $0.properties.retainAvailable = false
            $0.properties.maximumPacketSize = 30
        }
        harness.resume()
        #expect(
            harness.told() == [
                "refused 2 retainNotSupported",
                "refused 3 qualityOfServiceNotSupported(maximum: .atLeastOnce)",
                "refused 5 qualityOfServiceNotSupported(maximum: .atLeastOnce)",
                "refused 6 packetTooLarge(byteCount: 58, maximum: 30)",
            ]
        )
        #expect(harness.sent == [.pubrel(.ack(1)), .message("4", .atLeastOnce, id: 4)])
        harness.receive(.pubcomp(.ack(1)), .puback(.ack(4)))
        #expect(harness.told().count == 2)
        #expect(harness.cut().isEmpty)
    }

    @Test("Three losses in a row, whatever was reached between them", arguments: 0..<27)
    func threeTimes(way: Int) throws {
        for version in MQTTVersion.allCases {
            var harness = try midway(version)
            for stage in [way % 3, way / 3 % 3, way / 9] {
                let connack = MQTTConnackPacket(sessionPresent: true)
                try harness.connect(resuming: harness.cut(), connack: stage == 0 ? nil : connack)
                if stage == 2 { harness.resume() }
            }
            _ = harness.told()
            try harness.reconnect(sessionPresent: true)
            harness.resume()
            let resent: [MQTTPacket] = [
                .pubrel(.ack(1)), .message("2", .exactlyOnce, id: 2, dup: true),
                .message("3", .atLeastOnce, id: 3, dup: true),
            ]
            let wasReached = [way % 3, way / 3 % 3, way / 9].contains(2)
            #expect(
                harness.sent == resent + [.message("4", .exactlyOnce, id: 4, dup: wasReached)]
            )
            #expect(harness.cut().calls.map { harness.number($0) } == [1, 2, 3, 4, 5])
        }
    }

    @Test("A session lost before it was resumed stays lost, though the next one is present")
    func lostThenPresent() throws {
        for version in MQTTVersion.allCases {
            var harness = try midway(version)
            try harness.reconnect(sessionPresent: false)
            try harness.reconnect(sessionPresent: true)
            #expect(harness.told() == [])
            harness.resume()
            #expect(harness.told() == ["lost 1", "lost 2"])
            let sent: [MQTTPacket] = [
                .message("3", .atLeastOnce, id: 1), .message("4", .exactlyOnce, id: 2),
                .message("5", .atLeastOnce, id: 3),
            ]
            #expect(harness.sent == sent)
            try harness.reconnect(sessionPresent: false)
            harness.resume()
            #expect(harness.told() == ["lost 4"])
            #expect(
                harness.sent == [
                    .message("3", .atLeastOnce, id: 1), .message("5", .atLeastOnce, id: 2),
                ]
            )
        }
    }

    @Test("A cut in the middle of sending again keeps what was not reached")
    func cutMidway() throws {
        var harness = try start(.v5)
        for number in 1...6 { try harness.publish(.atLeastOnce, number) }
        for first in UInt16(1)...4 {
            try harness.reconnect(sessionPresent: true, receiveMaximum: 2)
            harness.resume()
            #expect(
                harness.sent == [
                    .message("\(first)", .atLeastOnce, id: first, dup: true),
                    .message("\(first + 1)", .atLeastOnce, id: first + 1, dup: true),
                ]
            )
            harness.receive(.puback(.ack(first)))
        }
        #expect(harness.cut().messageCount == 2)
    }

    @Test("Without a free identifier a message waits for one, and is not lost")
    func noIdentifierLeft() throws {
        var harness = try start(.v5, window: 1)
        try harness.publish(.atLeastOnce, 1)
        try harness.publish(.atLeastOnce, 2)
        try harness.reconnect(sessionPresent: false)
        let filters = [MQTTSubscription(filter: "a")]
        for _ in 0..<65_535 {
            try harness.client.send(.subscribe(filters), call: Call(0), at: harness.now)
        }
        _ = harness.client.outbound.takeBytes()
        harness.resume()
        #expect(harness.sent == [])
        harness.receive(.suback(MQTTSuback(packetIdentifier: 9, reasonCodes: [.success])))
        #expect(harness.sent == [.message("1", .atLeastOnce, id: 9)])
        harness.receive(.puback(.ack(9)))
        #expect(harness.sent == [.message("2", .atLeastOnce, id: 9)])
    }

    @Test("A message that the other version cannot carry is refused")
    func otherVersion() throws {
        var publish = MQTTPublish(topic: "t", qos: .atLeastOnce)
        publish.properties.contentType = "text/plain"
        let message = MQTTOutgoingMessage(publish: publish, payload: [UInt8]())
        var harness = try start(.v5)
        try harness.client.publish(message, call: Call(1), at: harness.now)
        let session = harness.cut()
        var old = try ClientHarness(.v3_1_1, connack: nil)
        try old.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: false))
        old.resume()
        #expect(old.told() == ["refused 1 encoding(.needsVersion5)"])
        #expect(old.sent == [])
    }

    @Test("The server gets the rest of an expiry, after the window and after a loss (3.3.2.3.3)")
    func expiry() throws {
        var harness = try start(.v5, window: 1)
        func packets(_ expiry: UInt32, _ id: UInt16, isDuplicate: Bool = false) -> [MQTTPacket] {
            var publish = MQTTPublish(topic: "t", qos: .atLeastOnce)
            publish.packetIdentifier = id
            publish.isDuplicate = isDuplicate
            publish.properties.messageExpiryInterval = expiry
            return [.publish(publish)]
        }
        var publish = MQTTPublish(topic: "t", qos: .atLeastOnce)
        for expiry in [10, 5] as [UInt32] {
            publish.properties.messageExpiryInterval = expiry
            let message = MQTTOutgoingMessage(publish: publish, payload: [UInt8]())
            try harness.client.publish(message, call: nil, at: harness.now)
        }
        #expect(harness.sent == packets(10, 1))
        harness.advance(.seconds(3))
        harness.receive(.puback(.ack(1)))
        #expect(harness.sent == packets(2, 2))
        harness.advance(.seconds(1))
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        #expect(harness.sent == packets(1, 2, isDuplicate: true))
        harness.advance(.seconds(1_000))
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        #expect(harness.sent == packets(1, 2, isDuplicate: true))
    }
}
