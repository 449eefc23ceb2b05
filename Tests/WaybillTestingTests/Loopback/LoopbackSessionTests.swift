import MQTTWire
import Testing
import TransportTestSupport
import WaybillLink
import WaybillTesting
import WireCore

/// The state that an MQTT session keeps between connections (MQTT 5, 4.1).
@Suite("Loopback sessions") struct LoopbackSessionTests {
    private typealias Client = LoopbackPacketClient

    @Test("Subscriptions and QoS 1 and 2 wait for a client that is away; QoS 0 does not")
    func whileAway() async throws {
        let bench = LoopbackBench()
        for version in [MQTTVersion.v3_1_1, .v5] {
            let name = "a\(version)"
            let first = Client(bench, version)
            #expect(try first.connect(as: name, subscribing: "t") == ["new", "suback"])
            first.stream.close()
            let sender = try Client(bench, connectedAs: "sender")
            try sender.publish("zero", to: "t")
            try sender.publish("one", to: "t", .atLeastOnce, identifier: 1)
            try sender.publish("two", to: "t", .exactlyOnce, identifier: 2)
            try sender.answer(MQTTPacket.pubrel, 2)
            let second = Client(bench, version)
            #expect(try second.connect(as: name) == ["present", "one 1", "two 2"])
            try sender.publish("live", to: "t")
            #expect(try second.received() == ["live 0"])
            try second.send(.disconnect(MQTTDisconnect()))
            sender.stream.close()
        }
        await bench.broker.stop()
    }

    @Test("What was under way is sent again, from the step that it had reached")
    func underWay() async throws {
        let bench = LoopbackBench()
        let first = try Client(bench, connectedAs: "a", receiveMaximum: 2, subscribing: "t")
        let sender = try Client(bench, connectedAs: "sender")
        try sender.publish(1...3, .exactlyOnce)
        // The third message waits for a place in the window.
        #expect(try first.received() == ["m1 1", "m2 2"])
        try first.answer(MQTTPacket.pubrec, 1)
        #expect(try first.received() == ["pubrel 1"])
        first.stream.abandon()
        try sender.publish("m4", to: "t", .exactlyOnce, identifier: 4)
        let second = Client(bench)
        #expect(
            try second.connect(as: "a", receiveMaximum: 9)
                == ["present", "pubrel 1", "m2 2 again", "m3 3", "m4 4"]
        )
        await bench.broker.stop()
    }

    @Test("A QoS 2 message half done goes on: repeated, it is not delivered twice")
    func halfDone() async throws {
        let bench = LoopbackBench()
        let receiver = try Client(bench, connectedAs: "receiver", subscribing: "t", .atMostOnce)
        let first = try Client(bench, connectedAs: "a")
        try first.publish("x", to: "t", .exactlyOnce, identifier: 7)
        #expect(try first.received() == ["pubrec 7"])
        first.stream.abandon()
        let second = Client(bench)
        #expect(try second.connect(as: "a") == ["present"])
        try second.publish("x", to: "t", .exactlyOnce, identifier: 7, isDuplicate: true)
        try second.answer(MQTTPacket.pubrel, 7)
        #expect(try second.received() == ["pubrec 7", "pubcomp 7"])
        #expect(try receiver.received() == ["x 0"])
        await bench.broker.stop()
    }

    @Test(
        "A session is gone after Clean Start, after its time, and with a connection that kept none"
    )
    func ends() async throws {
        let bench = LoopbackBench()
        func leave(expiry: UInt32?, _ disconnect: MQTTDisconnect? = nil) throws {
            let client = try Client(
                bench,
                connectedAs: "a",
                clean: true,
                expiry: expiry,
                subscribing: "t"
            )
            if let disconnect { try client.send(.disconnect(disconnect)) }
            client.stream.close()
        }
        func comeBack(clean: Bool = false) throws -> [String] {
            let client = Client(bench)
            defer { client.stream.close() }
            return try client.connect(as: "a", clean: clean, expiry: 0)
        }
        try leave(expiry: 100)
        #expect(try comeBack(clean: true) == ["new"])
        try leave(expiry: nil)
        #expect(try comeBack() == ["new"])
        try leave(expiry: 100)
        bench.clock.advance(by: .seconds(99))
        #expect(try comeBack() == ["present"])
        try leave(expiry: 100)
        bench.clock.advance(by: .seconds(101))
        #expect(try comeBack() == ["new"])
        // A session without an expiry.
        try leave(expiry: .max)
        bench.clock.advance(by: .seconds(1_000_000_000))
        #expect(try comeBack() == ["present"])
        // DISCONNECT may change the expiry interval, but not from zero to another value.
        var shorter = MQTTDisconnect()
        shorter.properties.sessionExpiryInterval = 0
        try leave(expiry: 100, shorter)
        #expect(try comeBack() == ["new"])
        var longer = MQTTDisconnect()
        longer.properties.sessionExpiryInterval = 1_000
        try leave(expiry: 0, longer)
        #expect(try comeBack() == ["new"])
        try leave(expiry: 10, longer)
        bench.clock.advance(by: .seconds(999))
        #expect(try comeBack() == ["present"])
        bench.broker.faults.losesSessions = true
        try leave(expiry: 100)
        #expect(try comeBack() == ["new"])
        await bench.broker.stop()
    }

    @Test("3.1.1: a clean session keeps nothing, and any other session needs an identifier")
    func version3() async throws {
        let bench = LoopbackBench()
        for (clean, answer) in [(true, "new"), (false, "new"), (false, "present"), (true, "new")] {
            let client = Client(bench, .v3_1_1)
            #expect(try client.connect(as: "a", clean: clean) == [answer])
            client.stream.close()
        }
        let nameless = Client(bench, .v3_1_1)
        try nameless.write([0x10, 12, 0, 4] + Array("MQTT".utf8) + [4, 0, 0, 60, 0, 0])
        let identifierRejected = MQTTReasonCode.clientIdentifierNotValid.rawValue
        #expect(try nameless.received() == ["refused \(identifierRejected)"])
        await bench.broker.stop()
    }

    @Test(
        "A second connection takes the session over; the first one is told, and its will published"
    )
    func takeover() async throws {
        let bench = LoopbackBench()
        let watcher = try Client(bench, connectedAs: "watcher", subscribing: "wills", .atMostOnce)
        let first = try Client(bench, connectedAs: "a", will: "wills", subscribing: "t")
        let second = Client(bench)
        #expect(try second.connect(as: "a") == ["present"])
        #expect(try first.received() == ["disconnect 142"] && first.isOver)
        #expect(try watcher.received() == ["gone 0"])
        try watcher.publish("x", to: "t", .atLeastOnce, identifier: 1)
        #expect(try second.received() == ["x 1"])
        // The end of the first connection does not end the session of the second.
        first.stream.close()
        try watcher.publish("y", to: "t", .atLeastOnce, identifier: 2)
        #expect(try second.received() == ["y 2"])
        await bench.broker.stop()
    }

    @Test(
        "A packet half written neither keeps a session from being taken over, nor is it heard after"
    )
    func halfWritten() async throws {
        let bench = LoopbackBench()
        let first = try Client(bench, connectedAs: "a", subscribing: "t")
        let publish = MQTTPublish(topic: "t", payload: ByteSlice(copying: Array("half".utf8)))
        let bytes = try first.bytes([.publish(publish)])
        try first.write(bytes.dropLast(3))
        let second = Client(bench)
        #expect(try second.connect(as: "a") == ["present"])
        _ = try? first.write(bytes.suffix(3))
        #expect(try second.received() == [])
        // A CONNECT that is never complete.
        let third = Client(bench)
        try third.write([0x10, 0x20, 0x00])
        third.stream.close()
        #expect(try second.received() == [])
        await bench.broker.stop()
    }

    @Test("What waits is bounded in messages and in bytes; the oldest are dropped")
    func bounds() async throws {
        for (messages, bytes) in [(2, 1 << 20), (100, 2 * ("t".utf8.count + 2))] {
            let bench = LoopbackBench {
                $0.sessionQueueLimit = messages
                $0.sessionQueueByteLimit = bytes
            }
            let first = try Client(bench, connectedAs: "a", subscribing: "t")
            first.stream.close()
            let sender = try Client(bench, connectedAs: "sender")
            try sender.publish(1...5, .atLeastOnce)
            let second = Client(bench)
            #expect(try second.connect(as: "a") == ["present", "m4 1", "m5 2"])
            await bench.broker.stop()
        }
    }

    @Test("A shared subscription prefers clients that are there, and ends with its session")
    func shared() async throws {
        let bench = LoopbackBench()
        let away = try Client(bench, connectedAs: "away", subscribing: "$share/g/t")
        away.stream.close()
        let present = try Client(bench, connectedAs: "present", subscribing: "$share/g/t")
        let sender = try Client(bench, connectedAs: "sender")
        try sender.publish(1...2, .atLeastOnce)
        #expect(try present.received() == ["m1 1", "m2 2"])
        present.stream.close()
        try sender.publish("m3", to: "t", .atLeastOnce, identifier: 3)
        try sender.publish("m4", to: "t", .atLeastOnce, identifier: 4)
        var count = 0
        for name in ["away", "present"] {
            count += try Client(bench).connect(as: name).count - 1
        }
        // Two messages that were not acknowledged before, and the two new ones.
        #expect(count == 4)
        await bench.broker.stop()
    }
}
