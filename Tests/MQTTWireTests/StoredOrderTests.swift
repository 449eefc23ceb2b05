import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// What a slow store must not change: the order of packets, and who waits for whom.
@Suite("MQTT client: a store that is slow") struct StoredOrderTests {
    private func start() throws -> ClientHarness {
        var harness = try ClientHarness(.v5, connack: nil) { $0.keepsSession = true }
        try harness.connect(
            resuming: MQTTSessionState(received: []),
            connack: MQTTConnackPacket(sessionPresent: true)
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

    private let subscribe = MQTTClientRequest.subscribe(
        [MQTTSubscription(filter: "a", qos: .atLeastOnce)],
        identifier: nil
    )

    // MARK: Received messages

    @Test("PUBRECs keep the order of the messages, whatever is stored first or refused (4.6.0-3)")
    func pubrecs() throws {
        var harness = try start()
        for id: UInt16 in 1...4 { harness.receive(.message("\(id)", .exactlyOnce, id: id)) }
        harness.take(0)
        harness.take(1, .unspecifiedError)
        harness.take(2)
        harness.take(3)
        #expect(harness.steps == [.taken(1), .taken(3), .taken(4)])
        harness.client.stored(.taken(3), at: harness.now)
        #expect(harness.sent == [])
        harness.client.stored(.taken(1), at: harness.now)
        #expect(
            harness.sent == [
                .pubrec(.ack(1)), .pubrec(.ack(2, .unspecifiedError)), .pubrec(.ack(3)),
            ]
        )
        // A repetition of the first one is answered behind the fourth.
        harness.receive(.message("1", .exactlyOnce, id: 1, dup: true))
        #expect(harness.sent == [])
        harness.client.stored(.taken(4), at: harness.now)
        #expect(harness.sent == [.pubrec(.ack(4)), .pubrec(.ack(1))])
    }

    @Test("A repetition is not answered before the identifier is stored")
    func repetition() throws {
        var harness = try start()
        harness.receive(.message("a", .exactlyOnce, id: 1))
        harness.take(0)
        harness.receive(.message("a", .exactlyOnce, id: 1, dup: true))
        #expect(harness.sent == [])
        try harness.reconnect(sessionPresent: true)
        harness.receive(.message("a", .exactlyOnce, id: 1, dup: true))
        #expect(harness.sent == [])
        #expect(harness.steps == [.taken(1), .taken(1)])
        harness.client.stored(.taken(1), at: harness.now)
        #expect(harness.sent == [.pubrec(.ack(1))])
        harness.receive(.message("a", .exactlyOnce, id: 1, dup: true))
        #expect(harness.sent == [.pubrec(.ack(1))], "stored before")
        #expect(harness.topics == ["t"])
    }

    @Test("An identifier of a lost session is not stored in the next one")
    func lostWhileConnecting() throws {
        var harness = try start()
        harness.receive(.message("a", .exactlyOnce, id: 7))
        let session = harness.cut()
        try harness.connect(resuming: session, connack: nil)
        harness.take(0)
        harness.receive(.connack(MQTTConnackPacket(sessionPresent: false)))
        harness.receive(.message("b", .exactlyOnce, id: 3))
        harness.take(1)
        #expect(harness.steps == [.taken(3)])
    }

    // MARK: Sent messages

    @Test("PUBRELs keep the order of the PUBRECs, whatever is stored first (4.6.0-4)")
    func pubrels() throws {
        var harness = try start()
        for number: UInt64 in [5, 6] {
            let message = message(.exactlyOnce, number)
            try harness.client.publish(message, call: Call(Int(number)), at: harness.now)
        }
        try harness.publish(.exactlyOnce, 7)
        _ = harness.sent
        harness.receive(.pubrec(.ack(0x8005)), .pubrec(.ack(0x8006)), .pubrec(.ack(1)))
        #expect(harness.steps == [.released(number: 5, 0x8005), .released(number: 6, 0x8006)])
        // The first PUBREC counts.
        harness.receive(.pubrec(.ack(0x8005, .quotaExceeded)), .pubrec(.ack(0x8006)))
        #expect(harness.steps.count == 2)
        harness.client.stored(.released(number: 6, 0x8006), at: harness.now)
        #expect(harness.sent == [])
        harness.client.stored(.released(number: 5, 0x8005), at: harness.now)
        #expect(
            harness.sent == [.pubrel(.ack(0x8005)), .pubrel(.ack(0x8006)), .pubrel(.ack(1))]
        )
        harness.receive(.pubcomp(.ack(1)), .pubcomp(.ack(0x8006)), .pubcomp(.ack(0x8005)))
        #expect(
            harness.told().filter { $0.hasPrefix("published") } == [
                "published 7 Success (0x00)", "published 6 Success (0x00)",
                "published 5 Success (0x00)",
            ]
        )
        #expect(!harness.client.hasMessagesUnderWay)
    }

    @Test("A lost connection forgets the PUBRELs that wait")
    func lostConnection() throws {
        var harness = try start()
        for number: UInt64 in [5, 6] {
            let message = message(.exactlyOnce, number)
            try harness.client.publish(message, call: Call(Int(number)), at: harness.now)
        }
        harness.receive(.pubrec(.ack(0x8005)), .pubrec(.ack(0x8006)))
        harness.client.stored(.released(number: 6, 0x8006), at: harness.now)
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        _ = harness.sent
        harness.receive(.pubrec(.ack(0x8006)))
        harness.client.stored(.released(number: 6, 0x8006), at: harness.now)
        #expect(harness.sent == [.pubrel(.ack(0x8006))], "5 has no PUBREC on this connection")
    }

    @Test("SUBSCRIBE has an identifier beside as many stored messages as there can be")
    func manyStored() throws {
        var session = MQTTSessionState(received: [])
        for number: UInt64 in 1...40_000 {
            let message = message(.atLeastOnce, number)
            session.restore(message, isReleased: false, call: Call(Int(number)))
        }
        var harness = try ClientHarness(.v5, connack: nil) {
            $0.keepsSession = true
            $0.inflightWindow = 65_535
        }
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        try harness.client.send(subscribe, call: Call(0), at: harness.now)
        harness.resume()
        let sent = harness.sent
        #expect(sent.count == 1 + 32_768)
        guard case .subscribe(let packet)? = sent.first else {
            Issue.record("no SUBSCRIBE")
            return
        }
        #expect(packet.packetIdentifier == 1)
        try harness.publish(.atLeastOnce, 0)
        #expect(harness.sent == [], "behind the stored ones")
    }

    @Test("Identifiers with the same low bits need no larger table")
    func tableSize() {
        var inflight = MQTTInflight(reservesIdentifiers: true)
        let never = WireInstant(nanoseconds: .max)
        for number: UInt64 in 1...4 {
            let message = message(.atLeastOnce, number)
            let free = inflight.begin(.subscribe(count: 1), call: nil, deadline: never)
            #expect(free == UInt16(number))
            let stored = inflight.begin(
                .publishAtLeastOnce(message),
                as: 0x8000 | UInt16(number),
                call: nil,
                deadline: never
            )
            #expect(stored == 0x8000 | UInt16(number))
        }
        #expect(inflight.count == 8)
        #expect(inflight.placeCount <= 16)
        for number: UInt16 in 1...4 {
            #expect(inflight.kind(number) == .subscribe)
            #expect(inflight.kind(0x8000 | number) == .publishAtLeastOnce)
            #expect(inflight.end(0x8000 | number) != nil)
            #expect(inflight.end(0x8000 | number) == nil)
            #expect(inflight.end(number) != nil)
        }
        #expect(inflight.count == 0)
    }

    @Test(
        "A withdrawn message, whose identifier is in use, lets go those behind it",
        arguments: [false, true]
    )
    func withdrawn(expires: Bool) throws {
        var harness = try start()
        let call = Call(2)
        for (number, timeout, call) in [
            (1, Duration.seconds(90), Call(1)), (0x8001, .seconds(1), call),
            (3, .seconds(90), Call(3)),
        ] {
            try harness.client.publish(
                message(.atLeastOnce, UInt64(number)),
                call: call,
                timeout: timeout,
                at: harness.now
            )
        }
        #expect(harness.sent == [.message("1", .atLeastOnce, id: 0x8001)])
        if expires {
            harness.advance(.seconds(1))
            #expect(harness.told() == ["timed out 2"])
        } else {
            harness.client.cancel(call, at: harness.now)
        }
        #expect(harness.sent == [.message("3", .atLeastOnce, id: 0x8003)])
    }

    @Test("A lost session: messages of QoS 2 without a caller keep their place as new ones")
    func sentAnew() throws {
        var session = MQTTSessionState(received: [])
        for number: UInt64 in 1...4 {
            var message = message(number == 2 ? .atLeastOnce : .exactlyOnce, number)
            message.isSentAnew = number < 4
            session.restore(message, isReleased: number == 1, call: Call(Int(number)))
        }
        var harness = try ClientHarness(.v5, connack: nil) { $0.keepsSession = true }
        try harness.connect(resuming: session, connack: MQTTConnackPacket())
        harness.resume()
        #expect(harness.told() == ["lost 1", "lost 4"])
        #expect(
            harness.sent == [
                .message("2", .atLeastOnce, id: 0x8002), .message("3", .exactlyOnce, id: 0x8003),
            ]
        )
    }
}
