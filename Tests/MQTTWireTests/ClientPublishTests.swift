import MQTTWire
import Testing
import WireCore

@Suite("MQTT client: sending messages (4.3, 4.9)") struct ClientPublishTests {
    @Test("QoS 0 is sent once, without identifier", arguments: MQTTVersion.allCases)
    func atMostOnce(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        try harness.publish(.atMostOnce, 1)
        #expect(harness.sent == [.message("1")])
        #expect(harness.told() == [])
    }

    @Test("QoS 1 ends with PUBACK, whatever its code", arguments: MQTTVersion.allCases)
    func atLeastOnce(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        try harness.publish(.atLeastOnce, 1)
        try harness.publish(.atLeastOnce, 2)
        #expect(
            harness.sent == [
                .message("1", .atLeastOnce, id: 1), .message("2", .atLeastOnce, id: 2),
            ]
        )
        harness.receive(.puback(.ack(2)))
        #expect(harness.told() == ["published 2 Success (0x00)"])
        harness.receive(.pubcomp(.ack(1)), .pubrec(.ack(1)))
        #expect(harness.told() == [], "not the answer to QoS 1")
        harness.receive(.puback(.ack(1)), .puback(.ack(1)))
        #expect(harness.told() == ["published 1 Success (0x00)"])
    }

    @Test("QoS 2: PUBLISH, PUBREC, PUBREL, PUBCOMP", arguments: MQTTVersion.allCases)
    func exactlyOnce(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        try harness.publish(.exactlyOnce, 1)
        #expect(harness.sent == [.message("1", .exactlyOnce, id: 1)])
        harness.receive(.pubcomp(.ack(1)), .puback(.ack(1)))
        #expect(harness.told() == [])
        harness.receive(.pubrec(.ack(1)))
        #expect(harness.sent == [.pubrel(.ack(1))])
        harness.receive(.pubrec(.ack(1)))
        #expect(harness.sent == [.pubrel(.ack(1))], "PUBREL again, never PUBLISH (4.3.3-6)")
        harness.receive(.pubcomp(.ack(1)))
        #expect(harness.told() == ["published 1 Success (0x00)"])
        harness.receive(.pubrec(.ack(1)))
        let unknown: MQTTReasonCode = version == .v5 ? .packetIdentifierNotFound : .success
        #expect(harness.sent == [.pubrel(.ack(1, unknown))])
    }

    @Test("A refusal of an unknown identifier gets no PUBREL (4.3.3-4)")
    func unknownRefusal() throws {
        var harness = try ClientHarness(.v5)
        harness.receive(.pubrec(.ack(7, .packetIdentifierInUse)))
        #expect(harness.sent == [])
        try harness.publish(.exactlyOnce, 1)
        harness.receive(.pubrec(.ack(1)))
        _ = harness.sent
        harness.receive(.pubrec(.ack(1, .packetIdentifierInUse)))
        #expect(harness.sent == [], "and neither does one that comes too late")
        harness.receive(.pubcomp(.ack(1)))
        #expect(harness.told() == ["published 1 Success (0x00)"])
    }

    @Test("A refusal of 0x80 and above ends a message, and PUBREL is not sent (4.4.0-2)")
    func refusals() throws {
        var harness = try ClientHarness(.v5)
        try harness.publish(.exactlyOnce, 1)
        try harness.publish(.atLeastOnce, 2)
        _ = harness.sent
        harness.receive(.pubrec(.ack(1, .quotaExceeded)), .puback(.ack(2, .notAuthorized)))
        #expect(
            harness.told() == [
                "published 1 Quota exceeded (0x97)", "published 2 Not authorized (0x87)",
            ]
        )
        #expect(harness.sent == [])
    }

    @Test("The window holds back messages, and nothing else (3.3.4-7, 3.3.4-8)")
    func window() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 2 }
        for number in 1...5 {
            try harness.publish(number == 2 ? .exactlyOnce : .atLeastOnce, number)
        }
        #expect(harness.sent.count == 2)
        try harness.publish(.atMostOnce, 9)
        try harness.client.send(
            .subscribe([MQTTSubscription(filter: "a")]),
            call: Call(7),
            at: harness.now
        )
        #expect(harness.sent.map(\.kind) == [.publish, .subscribe])
        harness.receive(.puback(.ack(1)))
        #expect(harness.sent == [.message("3", .atLeastOnce, id: 4)])
        harness.receive(.pubrec(.ack(2)))
        #expect(harness.sent == [.pubrel(.ack(2))], "QoS 2 keeps its place until PUBCOMP")
        harness.receive(.pubcomp(.ack(2)), .puback(.ack(4)))
        #expect(
            harness.sent == [
                .message("4", .atLeastOnce, id: 5), .message("5", .atLeastOnce, id: 6),
            ]
        )
    }

    @Test("The server's Receive Maximum lowers the window (4.9.0-1)")
    func receiveMaximum() throws {
        var connack = MQTTConnackPacket()
        connack.properties.receiveMaximum = 3
        var harness = try ClientHarness(.v5, connack: connack)
        for number in 1...10 { try harness.publish(.atLeastOnce, number) }
        #expect(harness.sent.count == 3)
    }

    @Test("Identifiers wrap at 65,535 and skip those in use, across kinds (2.2.1-3)")
    func identifiers() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 65_535 }
        try harness.publish(.atLeastOnce, 0)
        try harness.client.send(
            .subscribe([MQTTSubscription(filter: "a")]),
            call: Call(1),
            at: harness.now
        )
        _ = harness.sent
        var seen: Set<UInt16> = []
        for number in 0..<70_000 {
            try harness.publish(.atLeastOnce, number)
            guard case .publish(let publish)? = harness.sent.first else {
                Issue.record("nothing was sent")
                return
            }
            let identifier = publish.packetIdentifier
            #expect(identifier > 2, "1 and 2 are held")
            seen.insert(identifier)
            harness.receive(.puback(.ack(identifier)))
        }
        // The table skips an identifier whose place is taken. In a table this small, that is one identifier in four.
        #expect(seen.count == 65_535 - 2 * 8_192)
        _ = harness.told()
        // Takes every free identifier at once, so that none is left.
        for number in 0..<65_533 { try harness.publish(.atLeastOnce, number) }
        #expect(throws: MQTTSendError.noPacketIdentifierLeft) {
            try harness.client.send(
                .subscribe([MQTTSubscription(filter: "b")]),
                call: Call(9),
                at: harness.now
            )
        }
    }

    @Test("What the server said it does not take is refused before it is written")
    func limits() throws {
        var connack = MQTTConnackPacket()
        connack.properties.maximumQoS = .atLeastOnce
        connack.properties.retainAvailable = false
        connack.properties.maximumPacketSize = 20
        connack.properties.wildcardSubscriptionAvailable = false
        connack.properties.sharedSubscriptionAvailable = false
        connack.properties.subscriptionIdentifiersAvailable = false
        var harness = try ClientHarness(.v5, connack: connack)
        #expect(throws: MQTTSendError.qualityOfServiceNotSupported(maximum: .atLeastOnce)) {
            try harness.publish(.exactlyOnce)
        }
        #expect(throws: MQTTSendError.retainNotSupported) {
            let publish = MQTTPublish(topic: "t", isRetained: true)
            try harness.client.publishAtMostOnce(publish, payload: [UInt8](), at: harness.now)
        }
        #expect(throws: MQTTSendError.packetTooLarge(byteCount: 21, maximum: 20)) {
            let publish = MQTTPublish(topic: "t")
            let payload = [UInt8](repeating: 0, count: 15)
            try harness.client.publishAtMostOnce(publish, payload: payload, at: harness.now)
        }
        #expect(throws: MQTTSendError.subscriptionIdentifierNotAllowed) {
            var publish = MQTTPublish(topic: "t")
            publish.properties.subscriptionIdentifiers = [1]
            try harness.client.publishAtMostOnce(publish, payload: [UInt8](), at: harness.now)
        }
        let refused: [(String, MQTTSendError)] = [
            ("a/+", .wildcardSubscriptionsNotSupported), ("#", .wildcardSubscriptionsNotSupported),
            ("$share/g/a", .sharedSubscriptionsNotSupported),
            ("a#", .encoding(.topicFilterInvalid(.multiLevelWildcard))),
        ]
        for (filter, error) in refused {
            #expect(throws: error) {
                try harness.client.send(
                    .subscribe([MQTTSubscription(filter: filter)]),
                    call: Call(1),
                    at: harness.now
                )
            }
        }
        #expect(harness.sent == [])
        try harness.client.send(
            .subscribe([MQTTSubscription(filter: "a")], identifier: 5),
            call: Call(1),
            at: harness.now
        )
        let expected = MQTTSubscribe(
            packetIdentifier: 1,
            subscriptions: [MQTTSubscription(filter: "a")]
        )
        #expect(harness.sent == [.subscribe(expected)], "no identifier where none is taken")
    }

    @Test("Callers give up after their time; what was sent goes on, what waits is withdrawn")
    func timeouts() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 1 }
        try harness.publish(.atLeastOnce, 1)
        try harness.publish(.atLeastOnce, 2, timeout: .seconds(5))
        try harness.publish(.atLeastOnce, 3)
        _ = harness.sent
        #expect(harness.client.deadline == WireInstant.zero.advanced(by: .seconds(5)))
        harness.advance(.seconds(5))
        #expect(harness.told() == ["timed out 2"])
        harness.advance(.seconds(25))
        #expect(harness.told() == ["timed out 1", "timed out 3"])
        harness.receive(.puback(.ack(1)))
        #expect(harness.told() == [])
        #expect(harness.sent == [])
        try harness.publish(.atLeastOnce, 4)
        #expect(harness.sent == [.message("4", .atLeastOnce, id: 2)])
    }

    @Test("A cancelled call is forgotten; its message is not sent if it still waits")
    func cancellation() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 1 }
        let (first, second) = (Call(1), Call(2))
        for call in [first, second] {
            let publish = MQTTPublish(topic: "t", qos: .atLeastOnce)
            let message = MQTTOutgoingMessage(publish: publish, payload: [UInt8]())
            try harness.client.publish(message, call: call, at: harness.now)
        }
        harness.client.cancel(first, at: harness.now)
        harness.client.cancel(second, at: harness.now)
        _ = harness.sent
        harness.receive(.puback(.ack(1)))
        #expect(harness.told() == [])
        #expect(harness.sent == [])
    }

    @Test("A queued message that could not be sent is refused at once")
    func queuedChecks() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 1 }
        try harness.publish(.atLeastOnce, 1)
        #expect(throws: MQTTSendError.encoding(.topicNameHasWildcard)) {
            try harness.publish(.atLeastOnce, 2, topic: "a/#")
        }
        harness.receive(.puback(.ack(1)))
        #expect(harness.told() == ["published 1 Success (0x00)"])
    }
}
