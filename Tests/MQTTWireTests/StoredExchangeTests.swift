import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT client: exchanges that outlast the process") struct StoredExchangeTests {
    /// Connects with a session of an earlier process.
    private func start(
        _ session: MQTTSessionState = MQTTSessionState(received: []),
        window: Int = 20,
        sessionPresent: Bool = true
    ) throws -> ClientHarness {
        var harness = try ClientHarness(.v5, connack: nil) {
            $0.keepsSession = true
            $0.inflightWindow = window
        }
        try harness.connect(
            resuming: session,
            connack: MQTTConnackPacket(sessionPresent: sessionPresent)
        )
        return harness
    }

    private func message(_ qos: MQTTQoS, _ number: UInt64) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            publish: MQTTPublish(topic: "t", qos: qos),
            payload: Array("\(number)".utf8),
            storedNumber: number
        )
    }

    private func packet(
        _ qos: MQTTQoS,
        _ number: UInt64,
        _ identifier: UInt16,
        dup: Bool = false
    ) -> MQTTPacket {
        .message("\(number)", qos, id: identifier, dup: dup)
    }

    @Test("The identifier follows from the number; a message waits until it is free")
    func identifiers() throws {
        var harness = try start()
        for number: UInt64 in [1, 2, 0x8001, 3] {
            try harness.client.publish(
                message(.atLeastOnce, number),
                call: Call(Int(number)),
                at: harness.now
            )
        }
        #expect(
            harness.sent == [packet(.atLeastOnce, 1, 0x8001), packet(.atLeastOnce, 2, 0x8002)]
        )
        harness.receive(.puback(.ack(0x8002)))
        #expect(harness.sent == [])
        harness.receive(.puback(.ack(0x8001)))
        #expect(
            harness.sent == [
                packet(.atLeastOnce, 0x8001, 0x8001), packet(.atLeastOnce, 3, 0x8003),
            ]
        )
        // Other exchanges have the lower identifiers, many times over.
        for round in 0..<70_000 {
            try harness.client.send(.unsubscribe(["a"]), call: nil, at: harness.now)
            guard case .unsubscribe(let packet)? = harness.sent.first else {
                Issue.record("no UNSUBSCRIBE in round \(round)")
                return
            }
            if packet.packetIdentifier >= 0x8000 { Issue.record("\(packet.packetIdentifier)") }
            harness.receive(
                .unsuback(
                    MQTTUnsuback(packetIdentifier: packet.packetIdentifier, reasonCodes: [.success])
                )
            )
        }
    }

    @Test("PUBREL waits until the stage is stored; a lost connection repeats PUBLISH")
    func released() throws {
        var harness = try start()
        try harness.client.publish(message(.exactlyOnce, 5), call: Call(5), at: harness.now)
        #expect(harness.sent == [packet(.exactlyOnce, 5, 0x8005)])
        harness.receive(.pubrec(.ack(0x8005)))
        #expect(harness.steps == [.released(number: 5, 0x8005)])
        #expect(harness.sent == [])
        try harness.reconnect(sessionPresent: true)
        // Too late: the connection of the step is over. The next one repeats the step.
        harness.resume()
        #expect(harness.sent == [packet(.exactlyOnce, 5, 0x8005, dup: true)])
        harness.receive(.pubrec(.ack(0x8005)))
        #expect(harness.steps.count == 2)
        harness.client.stored(.released(number: 0x8005, 0x8005), at: harness.now)
        #expect(harness.sent == [], "another message had the identifier")
        harness.client.stored(harness.steps[1], at: harness.now)
        #expect(harness.sent == [.pubrel(.ack(0x8005))])
        harness.client.stored(harness.steps[1], at: harness.now)
        #expect(harness.sent == [], "once")
        harness.receive(.pubrec(.ack(0x8005)))
        #expect(harness.sent == [.pubrel(.ack(0x8005))], "stored before")
        harness.receive(.pubcomp(.ack(0x8005)))
        #expect(harness.told().last == "published 5 Success (0x00)")
        #expect(!harness.client.hasMessagesUnderWay)
    }

    @Test("The identifier of a message that waits outside of the session is given to no other")
    func kept() throws {
        var harness = try start()
        harness.client.keepIdentifiers(of: [1])
        #expect(!harness.client.isFree(0x8001) && harness.client.isFree(2))
        try harness.client.publish(
            message(.exactlyOnce, 0x8001),
            call: Call(1),
            at: harness.now
        )
        #expect(harness.sent == [packet(.exactlyOnce, 0x8001, 1)])
        // A later process could not continue an exchange whose identifier does not follow from the number.
        harness.receive(.pubrec(.ack(1)))
        #expect(harness.steps == [])
        #expect(harness.sent == [.pubrel(.ack(1))])
        harness.receive(.pubcomp(.ack(1)))
        harness.client.keepIdentifiers(of: [])
        try harness.client.publish(
            message(.exactlyOnce, 0x8001),
            call: Call(2),
            at: harness.now
        )
        #expect(harness.sent == [packet(.exactlyOnce, 0x8001, 0x8001)])
    }

    @Test("A refused message needs no storage")
    func refused() throws {
        var harness = try start()
        try harness.client.publish(message(.exactlyOnce, 5), call: Call(5), at: harness.now)
        harness.receive(.pubrec(.ack(0x8005, .quotaExceeded)))
        #expect(harness.steps == [])
        #expect(harness.told() == ["published 5 Quota exceeded (0x97)"])
    }

    /// The exchanges of an earlier process: 1 and 4 of QoS 1, 2 of QoS 2, 3 released, 0x8001 with the identifier of 1.
    private func stored() -> MQTTSessionState {
        var session = MQTTSessionState(received: [7])
        for (number, qos) in [
            (1, MQTTQoS.atLeastOnce), (2, .exactlyOnce), (3, .exactlyOnce), (4, .atLeastOnce),
            (0x8001, .atLeastOnce),
        ] {
            session.restore(
                message(qos, UInt64(number)),
                isReleased: number == 3,
                call: Call(number)
            )
        }
        return session
    }

    @Test("A restored session: PUBREL first, then PUBLISH with DUP within the window")
    func restored() throws {
        var harness = try start(stored(), window: 2)
        harness.resume()
        #expect(
            harness.sent == [
                .pubrel(.ack(0x8003)), packet(.atLeastOnce, 1, 0x8001, dup: true),
                packet(.exactlyOnce, 2, 0x8002, dup: true),
            ]
        )
        harness.receive(.pubcomp(.ack(0x8003)), .puback(.ack(0x8001)))
        #expect(harness.told() == ["published 3 Success (0x00)", "published 1 Success (0x00)"])
        #expect(harness.sent == [packet(.atLeastOnce, 4, 0x8004, dup: true)])
        harness.receive(.puback(.ack(0x8004)))
        #expect(harness.sent == [packet(.atLeastOnce, 0x8001, 0x8001)])
        harness.advance(.seconds(29))
        #expect(
            harness.told() == ["published 4 Success (0x00)"],
            "no call of an earlier process ends"
        )
    }

    @Test("A restored message that follows one that waits for its identifier waits, too")
    func behind() throws {
        var session = MQTTSessionState(received: [])
        // The identifier of 0x8002 is free, and that of 0x8001 before it is not.
        for number: UInt64 in [1, 3, 0x8001, 0x8002] {
            let message = message(.atLeastOnce, number)
            session.restore(message, isReleased: false, call: Call(Int(number)))
        }
        var harness = try start(session)
        harness.resume()
        #expect(
            harness.sent == [
                packet(.atLeastOnce, 1, 0x8001, dup: true),
                packet(.atLeastOnce, 3, 0x8003, dup: true),
            ]
        )
        harness.receive(.puback(.ack(0x8001)))
        #expect(
            harness.sent == [
                packet(.atLeastOnce, 0x8001, 0x8001), packet(.atLeastOnce, 0x8002, 0x8002),
            ]
        )
    }

    @Test("Messages without a free identifier wait for one, beside a pending SUBSCRIBE")
    func noIdentifier() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 65_535 }
        let subscription = MQTTSubscription(filter: "a")
        try harness.client.send(.subscribe([subscription]), call: Call(0), at: harness.now)
        #expect(harness.sent.count == 1)
        // One has the identifier of SUBSCRIBE, so 65,534 are left.
        for number in 1...65_540 { try harness.publish(.atLeastOnce, number) }
        let sent = harness.sent
        #expect(sent.count == 65_534)
        for case .publish(let publish) in sent.prefix(6) {
            harness.receive(.puback(.ack(publish.packetIdentifier)))
        }
        let rest = harness.sent.compactMap { packet in
            if case .publish(let publish) = packet {
                String(decoding: publish.payload.bytes, as: UTF8.self)
            } else {
                nil
            }
        }
        #expect(rest == (65_535...65_540).map { "\($0)" })
    }

    @Test("A restored session that the server has lost: QoS 1 is sent anew, QoS 2 is given back")
    func lost() throws {
        var harness = try start(stored(), sessionPresent: false)
        let dropped = harness.client.resumeSession(at: harness.now)
        #expect(dropped.map { harness.number($0.call ?? Call(0)) } == [2, 3])
        #expect(
            harness.sent == [
                packet(.atLeastOnce, 1, 0x8001), packet(.atLeastOnce, 4, 0x8004),
            ]
        )
        harness.receive(.puback(.ack(0x8001)))
        #expect(harness.sent == [packet(.atLeastOnce, 0x8001, 0x8001)])
        // The identifier 7 is forgotten with the session.
        harness.receive(.message("a", .exactlyOnce, id: 7, dup: true))
        #expect(harness.told() == ["published 1 Success (0x00)", "message a"])
    }

    @Test("A stored identifier is acknowledged again, and its message is not delivered again")
    func received() throws {
        var harness = try start(stored())
        harness.receive(.message("a", .exactlyOnce, id: 7, dup: true))
        #expect(harness.told() == [])
        #expect(harness.sent == [.pubrec(.ack(7))])
        harness.receive(.pubrel(.ack(7)))
        #expect(harness.sent == [])
        #expect(harness.steps == [.forgotten(7)])
        harness.client.stored(.forgotten(7), at: harness.now)
        #expect(harness.sent == [.pubcomp(.ack(7))])
        harness.receive(.pubrel(.ack(7)))
        #expect(harness.sent == [.pubcomp(.ack(7, .packetIdentifierNotFound))])
        harness.receive(.message("b", .exactlyOnce, id: 7))
        #expect(harness.topics == ["t"])
    }

    @Test(
        "PUBREC waits until the identifier of a taken message is stored, also without a connection"
    )
    func taken() throws {
        var harness = try start()
        harness.receive(
            .message("a", .exactlyOnce, id: 1),
            .message("b", .exactlyOnce, id: 2),
            .message("c", .exactlyOnce, id: 3)
        )
        harness.take(1)
        #expect(harness.steps == [], "in the order of arrival")
        harness.take(0)
        #expect(harness.steps == [.taken(1), .taken(2)])
        #expect(harness.sent == [])
        harness.client.stored(.taken(1), at: harness.now)
        #expect(harness.sent == [.pubrec(.ack(1))])
        var session = harness.cut()
        session.acknowledge(harness.receipts[2])
        #expect(session.takeSteps() == [.taken(3)])
        #expect(session.takeSteps() == [])
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        harness.client.stored(.taken(3), at: harness.now)
        #expect(harness.sent == [], "the server repeats the message first")
        harness.receive(
            .message("b", .exactlyOnce, id: 2, dup: true),
            .message("c", .exactlyOnce, id: 3, dup: true)
        )
        #expect(harness.sent == [], "the step of the earlier connection may not be stored")
        #expect(harness.steps.suffix(2) == [.taken(2), .taken(3)])
        harness.client.stored(.taken(2), at: harness.now)
        #expect(harness.sent == [.pubrec(.ack(2))])
        harness.client.stored(.taken(3), at: harness.now)
        #expect(harness.sent == [.pubrec(.ack(3))])
        #expect(harness.topics.count == 3)
    }

    @Test("A message that is taken between CONNECT and CONNACK is to be stored with CONNACK")
    func takenBeforeConnack() throws {
        var harness = try start()
        harness.receive(.message("a", .exactlyOnce, id: 1))
        try harness.connect(resuming: harness.cut(), connack: nil)
        harness.take(0)
        #expect(harness.steps == [])
        harness.receive(.connack(MQTTConnackPacket(sessionPresent: true)))
        #expect(harness.steps == [.taken(1)])
    }
}
