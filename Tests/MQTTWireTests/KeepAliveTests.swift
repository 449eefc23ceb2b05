import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// A client core and a server core with a literal clock.
@Suite("MQTT: keep alive of a client that listens (3.1.2.10)") struct ListenerKeepAliveTests {
    private struct Pair {
        var client = MQTTClientConnection()
        var server = MQTTServerConnection(maximumPacketSize: 1 << 20, at: .zero)
        private var toServer = ReceiveBuffer(capacity: 64)
        private var toClient = ReceiveBuffer(capacity: 64)
        private var copy = ReceiveBuffer(capacity: 64)
        private var decoder = MQTTPacketDecoder(
            version: .v5,
            role: .server,
            maximumPacketSize: 1 << 20
        )
        var now = WireInstant.zero
        var pings = 0
        var heard = 0
        var receipts: [MQTTDeliveryReceipt] = []

        init(keepAlive: UInt16) throws {
            let request = MQTTConnect(clientIdentifier: "c", keepAlive: keepAlive)
            try client.connect(request, hasSessionState: false, at: now)
            exchange()
        }

        /// Carries bytes both ways until neither end has more to send.
        mutating func exchange() {
            while !client.outbound.isEmpty || !server.outbound.isEmpty {
                let bytes = client.outbound.takeBytes()
                copy.append(bytes)
                while let packet = try? decoder.next(&copy) {
                    if packet == .pingreq { pings += 1 }
                }
                toServer.append(bytes)
                server.receive(&toServer, at: now)
                for event in server.takeEvents() {
                    if case .connect = event { server.accept() }
                }
                toClient.append(server.outbound.takeBytes())
                client.receive(&toClient, at: now)
                for event in client.takeEvents() {
                    guard case .messages(let arrivals) = event else { continue }
                    heard += arrivals.count
                    receipts += arrivals.all.compactMap(\.receipt)
                }
            }
        }

        mutating func pass(seconds: Int) {
            now = now.advanced(by: .seconds(seconds))
            client.advance(to: now)
            exchange()
            server.advance(to: now)
            exchange()
        }

        mutating func send(_ quality: MQTTQoS) {
            let publish = MQTTPublish(topic: "t", qos: quality)
            server.send(MQTTOutgoingMessage(publish: publish, payload: [0x61]))
            exchange()
        }
    }

    @Test(
        "PINGREQ is due every interval while messages come in each second",
        arguments: [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce]
    )
    func literalTimes(quality: MQTTQoS) throws {
        var pair = try Pair(keepAlive: 3)
        var seen: [Int] = []
        for second in 1...12 {
            pair.pass(seconds: 1)
            pair.send(quality)
            if pair.pings > seen.count { seen.append(second) }
        }
        #expect(seen == [3, 6, 9, 12])
        #expect(!pair.server.isFinished)
        #expect(pair.heard == 12)
    }

    @Test("An hour of listening at the default keep alive: a ping a minute, one connection")
    func hour() throws {
        var pair = try Pair(keepAlive: 60)
        for _ in 1...3_600 {
            pair.pass(seconds: 1)
            pair.send(.atMostOnce)
        }
        #expect(pair.pings == 60)
        #expect(pair.heard == 3_600)
        #expect(!pair.server.isFinished && !pair.client.isFinished)
    }

    @Test(
        "While a large message comes slowly, a ping is due every interval, and the server is alive"
    )
    func slowMessage() throws {
        var harness = try ClientHarness(
            .v5,
            connect: MQTTConnect(clientIdentifier: "c", keepAlive: 10)
        )
        var writer = ByteWriter()
        let publish = MQTTPublish(
            topic: "t",
            payload: ByteSlice(copying: [UInt8](repeating: 0, count: 95))
        )
        try MQTTPacket.publish(publish).encode(into: &writer, version: .v5)
        var pings: [Int] = []
        for (second, byte) in writer.bytes.enumerated() {
            harness.receive([byte])
            harness.advance(.seconds(1))
            if harness.sent == [.pingreq] { pings.append(second + 1) }
        }
        #expect(pings == Array(stride(from: 10, through: 100, by: 10)))
        #expect(harness.topics == ["t"])
        // The server answers all of them, and then no more.
        for _ in pings { harness.receive(.pingresp) }
        harness.advance(.seconds(10))
        #expect(harness.sent == [.pingreq] && !harness.client.isFinished)
        harness.advance(.seconds(5))
        #expect(harness.client.isFinished)
    }

    @Test("A ping behind a long upload waits as long as bytes come through, and no longer")
    func upload() throws {
        var harness = try ClientHarness(
            .v5,
            connect: MQTTConnect(clientIdentifier: "c", keepAlive: 10)
        )
        harness.advance(.seconds(10))
        #expect(harness.sent == [.pingreq])
        for isRest in [true, false, true] {
            harness.advance(.seconds(4))
            if isRest {
                harness.client.noteGiven(isRest: true, at: harness.now)
            } else {
                harness.client.noteProgress(at: harness.now)
            }
        }
        harness.advance(.nanoseconds(4_999_999_999))
        #expect(!harness.client.isFinished)
        harness.advance(.nanoseconds(1))
        #expect(harness.client.isFinished)
    }

    @Test("What is new of a message is no progress: the limit stays")
    func freshBytes() throws {
        var harness = try ClientHarness(
            .v5,
            connect: MQTTConnect(clientIdentifier: "c", keepAlive: 10)
        )
        harness.advance(.seconds(10))
        harness.advance(.seconds(4))
        try harness.publish(.atMostOnce)
        harness.client.noteGiven(isRest: false, at: harness.now)
        harness.advance(.seconds(1))
        #expect(harness.client.isFinished)
    }

    @Test("An answer teaches nothing where it may be that of another ping")
    func ambiguousAnswer() throws {
        var clock = MQTTKeepAlive(interval: .seconds(10), at: .zero)
        func at(_ seconds: Int) -> WireInstant { WireInstant.zero.advanced(by: .seconds(seconds)) }
        func pings(_ seconds: Int) -> Bool {
            if case .ping = clock.due(at: at(seconds)) { true } else { false }
        }
        #expect(pings(10))
        clock.noteReceived(at: at(14))
        clock.noteReceived(at: at(18))
        #expect(pings(20))
        clock.notePingResponse()
        #expect(clock.takeSilence() == nil)
        clock.noteReceived(at: at(20))
        #expect(pings(30))
        clock.notePingResponse()
        #expect(clock.takeSilence() == nil, "the answer of the second ping may be late")
        clock.notePingResponse()
        clock.noteReceived(at: at(30))
        #expect(pings(40))
        #expect(clock.takeSilence() == .seconds(10))
    }

    @Test("A message that waits for a place in the window puts no ping off")
    func queued() throws {
        var harness = try ClientHarness(
            .v5,
            connect: MQTTConnect(clientIdentifier: "c", keepAlive: 60)
        ) { $0.inflightWindow = 1 }
        try harness.publish(.atLeastOnce, 1)
        #expect(harness.sent.count == 1)
        harness.advance(.seconds(20))
        try harness.publish(.atLeastOnce, 2)
        #expect(harness.sent == [])
        harness.receive(.message("x"))
        harness.advance(.seconds(40))
        #expect(harness.sent.last == .pingreq)
    }

    @Test("An acknowledgement that waits for its turn puts no ping off")
    func heldAcknowledgement() throws {
        var harness = try ClientHarness(
            .v5,
            connect: MQTTConnect(clientIdentifier: "c", keepAlive: 60)
        )
        harness.receive(.message("1", .atLeastOnce, id: 1), .message("2", .atLeastOnce, id: 2))
        harness.advance(.seconds(20))
        harness.take(1)
        #expect(harness.sent == [])
        harness.advance(.seconds(40))
        #expect(harness.sent == [.pingreq])
    }

    @Test("A packet that answers a SUBACK's free identifier counts when it is sent, not later")
    func afterSuback() throws {
        var harness = try ClientHarness(
            .v5,
            connect: MQTTConnect(clientIdentifier: "c", keepAlive: 60)
        )
        try harness.client.send(
            .subscribe([MQTTSubscription(filter: "t")]),
            call: Call(1),
            at: harness.now
        )
        _ = harness.sent
        harness.advance(.seconds(50))
        harness.receive(.suback(MQTTSuback(packetIdentifier: 1, reasonCodes: [.success])))
        harness.receive(.message("x"))
        harness.advance(.seconds(10))
        #expect(harness.sent == [.pingreq])
    }
}
