import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT client: receiving messages (4.3, 4.6)") struct ClientReceiveTests {
    @Test("QoS 1 is acknowledged when it is taken, not before", arguments: MQTTVersion.allCases)
    func atLeastOnce(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        harness.receive(.message("a", .atLeastOnce, id: 5))
        #expect(harness.told() == ["message a"])
        #expect(harness.sent == [])
        harness.take(0)
        #expect(harness.sent == [.puback(.ack(5))])
        harness.take(0)
        #expect(harness.sent == [], "only once")
        harness.receive(.message("b", .atLeastOnce, id: 5, dup: true))
        #expect(harness.told() == ["message b"], "a new message, whatever DUP says (4.3.2-5)")
    }

    @Test("Acknowledgements leave in the order of the messages (4.6.0-2, 4.6.0-3)")
    func order() throws {
        var harness = try ClientHarness(.v5)
        for id in UInt16(1)...3 { harness.receive(.message("\(id)", .atLeastOnce, id: id)) }
        for id in UInt16(4)...5 { harness.receive(.message("\(id)", .exactlyOnce, id: id)) }
        harness.take(2)
        harness.take(4)
        #expect(harness.sent == [])
        harness.take(0)
        #expect(harness.sent == [.puback(.ack(1))])
        harness.take(1)
        #expect(harness.sent == [.puback(.ack(2)), .puback(.ack(3))])
        harness.take(3)
        #expect(harness.sent == [.pubrec(.ack(4)), .pubrec(.ack(5))])
    }

    @Test("QoS 2 is delivered once, however often it is sent", arguments: MQTTVersion.allCases)
    func exactlyOnce(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        harness.receive(
            .message("a", .exactlyOnce, id: 5),
            .message("a", .exactlyOnce, id: 5, dup: true)
        )
        #expect(harness.told() == ["message a"])
        #expect(harness.sent == [])
        harness.take(0)
        #expect(harness.sent == [.pubrec(.ack(5))])
        harness.receive(.message("a", .exactlyOnce, id: 5, dup: true))
        #expect(harness.sent == [.pubrec(.ack(5))])
        #expect(harness.told() == [])
        harness.receive(.pubrel(.ack(5)))
        #expect(harness.sent == [.pubcomp(.ack(5))])
        harness.receive(.message("b", .exactlyOnce, id: 5))
        #expect(harness.told() == ["message b"], "new again after PUBCOMP (4.3.3-12)")
    }

    @Test("PUBREL for an unknown identifier is answered", arguments: MQTTVersion.allCases)
    func unknownPubrel(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        harness.receive(.pubrel(.ack(9)))
        let code: MQTTReasonCode = version == .v5 ? .packetIdentifierNotFound : .success
        #expect(harness.sent == [.pubcomp(.ack(9, code))])
    }

    @Test("A refused QoS 2 message is over: its identifier is new (4.3.3-9)")
    func refused() throws {
        var harness = try ClientHarness(.v5)
        harness.receive(.message("a", .exactlyOnce, id: 5))
        harness.take(0, .implementationSpecificError)
        #expect(harness.sent == [.pubrec(.ack(5, .implementationSpecificError))])
        harness.receive(.message("b", .exactlyOnce, id: 5))
        #expect(harness.told() == ["message a", "message b"])
    }

    @Test(
        "A server that sends more than the Receive Maximum keeps its connection (3.3.4-9)",
        arguments: MQTTVersion.allCases,
        [MQTTQoS.atLeastOnce, .exactlyOnce]
    )
    func moreThanReceiveMaximum(version: MQTTVersion, quality: MQTTQoS) throws {
        var connect = MQTTConnect(version: version, clientIdentifier: "c")
        if version == .v5 { connect.properties.receiveMaximum = 2 }
        var harness = try ClientHarness(version, connect: connect)
        var writer = ByteWriter()
        for id in UInt16(1)...2_000 {
            try MQTTPacket.message("\(id)", quality, id: id).encode(into: &writer, version: version)
        }
        harness.receive(writer.bytes)
        #expect(harness.told() == (1...2_000).map { "message \($0)" })
        #expect(!harness.client.isFinished)
        try #require(harness.receipts.count == 2_000)
        for index in 0..<2_000 { harness.take(index) }
        let answers = (UInt16(1)...2_000).map { id -> MQTTPacket in
            quality == .atLeastOnce ? .puback(.ack(id)) : .pubrec(.ack(id))
        }
        #expect(harness.sent == answers)
    }

    @Test(
        "No more messages wait for their acknowledgement than there are packet identifiers",
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func endlessRepetition(version: MQTTVersion, dup: Bool) throws {
        var harness = try ClientHarness(version)
        var writer = ByteWriter()
        for _ in 0..<65_535 {
            try MQTTPacket.message("x", .atLeastOnce, id: 1, dup: dup)
                .encode(into: &writer, version: version)
        }
        harness.receive(writer.bytes)
        #expect(!harness.client.isFinished)
        harness.receive(.message("x", .atLeastOnce, id: 1))
        #expect(harness.told().last == "closed receiveMaximumExceeded")
        let answer = MQTTDisconnect(reasonCode: .receiveMaximumExceeded)
        #expect(harness.sent.last == (version == .v5 ? .disconnect(answer) : nil))
    }

    @Test("A thousand messages in one read are delivered in one go, in order")
    func batch() throws {
        var harness = try ClientHarness(.v5)
        var writer = ByteWriter()
        for number in 0..<1_000 {
            try MQTTPacket.message("\(number)").encode(into: &writer, version: .v5)
        }
        harness.receive(writer.bytes)
        #expect(harness.told() == (0..<1_000).map { "message \($0)" })
    }
}

@Suite("MQTT client: the order of things") struct ClientOrderTests {
    @Test("CONNECT comes first and once; nothing goes out before CONNACK (3.1.0-1, 3.1.0-2)")
    func connectOnce() throws {
        var harness = try ClientHarness(.v5, connack: nil)
        #expect(throws: MQTTSendError.notConnected) { try harness.publish(.atMostOnce) }
        try harness.client.connect(MQTTConnect(), hasSessionState: false, at: harness.now)
        #expect(harness.sent.map(\.kind) == [.connect])
        #expect(throws: MQTTSendError.notConnected) { try harness.publish(.atLeastOnce) }
        #expect(throws: MQTTSendError.notConnected) {
            try harness.client.connect(MQTTConnect(), hasSessionState: false, at: harness.now)
        }
        harness.receive(.connack(MQTTConnackPacket()))
        #expect(harness.told() == ["connected"])
        #expect(harness.sent == [])
    }

    @Test("CONNACK 1 to 5 and the codes of MQTT 5 are refusals", arguments: MQTTVersion.allCases)
    func refusals(version: MQTTVersion) throws {
        let codes =
            version == .v5
            ? MQTTReasonCode.names.map(\.code).filter {
                $0.isFailure && MQTTReasonCode.isAllowed($0, in: .connack, version: .v5)
            } : MQTTReasonCode.connectReturnCodes.map(\.code)
        #expect(codes.count == (version == .v5 ? 21 : 5))
        for code in codes {
            var harness = try ClientHarness(version, connack: MQTTConnackPacket(reasonCode: code))
            #expect(harness.client.isFinished)
            harness.endOfStream()
            #expect(harness.told() == [], "told once")
        }
    }

    @Test("No CONNACK in time ends the attempt")
    func connackTimeout() throws {
        var harness = try ClientHarness(.v5, connack: nil) { $0.connectTimeout = .seconds(3) }
        try harness.client.connect(MQTTConnect(), hasSessionState: false, at: harness.now)
        harness.advance(.seconds(2))
        #expect(harness.told() == [])
        harness.advance(.seconds(1))
        #expect(harness.told() == ["closed connectTimedOut"])
        #expect(harness.sent == [.connect(MQTTConnect()), .disconnect(MQTTDisconnect())])
    }

    /// Each row: the bytes after CONNACK, the violation, and the reason code of the client's DISCONNECT.
    @Test(
        "What breaks the order is a violation with its reason",
        arguments: [
            ("20 03 00 00 00", "secondConnack", 0x82), ("F0 00", "unexpectedAuthentication", 0x82),
            ("30 07 0001 61 03 23 0001", "topicAliasInvalid", 0x94),
            ("C0 00", "unexpectedPacket(.pingreq)", 0x82),
            ("E0 07 00 05 11 00000001", "propertyNotAllowed(.disconnect)", 0x82),
            ("36 07 0001 61 0001 00 78", "qualityOfServiceInvalid", 0x81),
        ]
    )
    func violations(hex: String, name: String, reason: UInt8) throws {
        var harness = try ClientHarness(.v5)
        harness.receive(Hex(stringLiteral: hex).bytes)
        #expect(harness.told() == ["closed \(name)"])
        let code = MQTTReasonCode(rawValue: reason)
        #expect(harness.sent == [.disconnect(MQTTDisconnect(reasonCode: code))])
        #expect(harness.client.isFinished)
        harness.receive(.message("late"))
        #expect(harness.told() == [], "nothing after the end")

        // 3.1.1 has no reason code for it, and a DISCONNECT would make the server discard the will.
        var old = try ClientHarness(.v3_1_1)
        old.receive(("36 05 0001 61 0001" as Hex).bytes)
        #expect(old.told() == ["closed qualityOfServiceInvalid"])
        #expect(old.sent == [])
    }

    @Test("Before CONNACK only CONNACK may come (3.2.0-1)")
    func beforeConnack() throws {
        for (packet, name) in [
            (MQTTPacket.message("x"), "packetBeforeConnack(.publish)"),
            (.pingresp, "packetBeforeConnack(.pingresp)"),
            (.disconnect(MQTTDisconnect()), "packetBeforeConnack(.disconnect)"),
            (.auth(MQTTAuth()), "unexpectedAuthentication"),
        ] {
            var harness = try ClientHarness(.v5, connack: nil)
            try harness.client.connect(MQTTConnect(), hasSessionState: false, at: harness.now)
            harness.receive(packet)
            #expect(harness.told() == ["closed \(name)"])
        }
    }

    @Test("What a CONNACK may not say (3.2.2-4, 3.2.2-6, 3.1.2-28, 4.12.0-6)")
    func connackContents() throws {
        var response = MQTTConnackPacket()
        response.properties.responseInformation = "r"
        var method = MQTTConnackPacket()
        method.properties.authenticationMethod = "m"
        for (connack, name) in [
            (MQTTConnackPacket(sessionPresent: true), "unexpectedSessionPresent"),
            (response, "unrequestedResponseInformation"), (method, "unexpectedAuthentication"),
        ] {
            var harness = try ClientHarness(.v5, connack: nil)
            try harness.client.connect(MQTTConnect(), hasSessionState: false, at: harness.now)
            harness.receive(.connack(connack))
            #expect(harness.told() == ["closed \(name)"])
        }
        // A present session is valid when the client asked for one. It is a violation in a refusal.
        let resumed = MQTTConnect(clientIdentifier: "c", cleanStart: false)
        var harness = try ClientHarness(
            .v5,
            connect: resumed,
            connack: MQTTConnackPacket(sessionPresent: true)
        )
        #expect(harness.client.isConnected)
        harness = try ClientHarness(.v5, connack: nil)
        try harness.client.connect(resumed, hasSessionState: true, at: harness.now)
        harness.receive(.connack(MQTTConnackPacket(sessionPresent: true, reasonCode: .serverBusy)))
        #expect(harness.told() == ["closed unexpectedSessionPresent"])
    }

    @Test("Explanations that were declined are a violation (3.1.2-29)")
    func problemInformation() throws {
        var request = MQTTConnect()
        request.properties.requestProblemInformation = false
        var harness = try ClientHarness(.v5, connect: request)
        try harness.publish(.atLeastOnce)
        var puback = MQTTAcknowledgement(packetIdentifier: 1, reasonCode: .quotaExceeded)
        puback.properties.reasonString = "too many"
        harness.receive(.puback(puback))
        #expect(harness.told().last == "closed unrequestedProblemInformation")
    }

    @Test(
        "SUBACK and UNSUBACK answer their own request, one code per filter",
        arguments: MQTTVersion.allCases
    )
    func subscribing(version: MQTTVersion) throws {
        var harness = try ClientHarness(version)
        let filters = ["a", "b"].map { MQTTSubscription(filter: $0) }
        try harness.client.send(.subscribe(filters), call: Call(1), at: harness.now)
        try harness.client.send(.unsubscribe(["a"]), call: Call(2), at: harness.now)
        #expect(harness.sent.map(\.kind) == [.subscribe, .unsubscribe])
        harness.receive(
            .suback(MQTTSuback(packetIdentifier: 9, reasonCodes: [.success])),
            .unsuback(
                MQTTUnsuback(packetIdentifier: 1, reasonCodes: version == .v5 ? [.success] : [])
            )
        )
        #expect(harness.told() == [], "not an answer to these")
        harness.receive(
            .unsuback(
                MQTTUnsuback(packetIdentifier: 2, reasonCodes: version == .v5 ? [.success] : [])
            ),
            .suback(
                MQTTSuback(packetIdentifier: 1, reasonCodes: [.grantedQoS1, .unspecifiedError])
            )
        )
        #expect(
            harness.told() == [
                "unsubscribed 2", "subscribed 1 [Granted QoS 1 (0x01), Unspecified error (0x80)]",
            ]
        )
        try harness.client.send(.subscribe(filters), call: Call(3), at: harness.now)
        harness.receive(.suback(MQTTSuback(packetIdentifier: 3, reasonCodes: [.success])))
        #expect(harness.told() == ["abandoned 3", "closed reasonCodeCountWrong(.suback)"])
    }

    @Test("Calls are abandoned once when the connection ends, in order")
    func abandoned() throws {
        var harness = try ClientHarness(.v5) { $0.inflightWindow = 1 }
        try harness.publish(.atLeastOnce, 1)
        try harness.publish(.exactlyOnce, 2)
        try harness.client.send(.unsubscribe(["a"]), call: Call(3), at: harness.now)
        harness.endOfStream()
        #expect(
            harness.told() == ["abandoned 1", "abandoned 3", "abandoned 2", "closed endOfStream"]
        )
        #expect(throws: MQTTSendError.notConnected) { try harness.publish(.atMostOnce) }
    }

    @Test("Nothing is sent after DISCONNECT, and the server's own ends it (3.14.4-1)")
    func disconnect() throws {
        var harness = try ClientHarness(.v5)
        harness.client.disconnect(at: harness.now)
        #expect(harness.sent == [.disconnect(MQTTDisconnect())])
        #expect(throws: MQTTSendError.notConnected) { try harness.publish(.atMostOnce) }
        harness.note()
        #expect(harness.told() == ["closed disconnected"])

        var other = try ClientHarness(.v5)
        other.receive(.disconnect(MQTTDisconnect(reasonCode: .sessionTakenOver)))
        #expect(other.told() == ["closed by server Session taken over (0x8E)"])
        #expect(other.sent == [])
    }
}

@Suite("MQTT client: keep alive (3.1.2.10)") struct ClientKeepAliveTests {
    private func harness(_ seconds: UInt16, server: UInt16? = nil) throws -> ClientHarness {
        var connack = MQTTConnackPacket()
        connack.properties.serverKeepAlive = server
        let connect = MQTTConnect(clientIdentifier: "c", keepAlive: seconds)
        return try ClientHarness(.v5, connect: connect, connack: connack)
    }

    @Test("PINGREQ after the interval without traffic; a PINGRESP begins it anew")
    func ping() throws {
        var harness = try harness(60)
        harness.advance(.seconds(59))
        #expect(harness.sent == [])
        harness.advance(.seconds(1))
        #expect(harness.sent == [.pingreq])
        harness.advance(.seconds(10))
        harness.receive(.pingresp)
        harness.advance(.seconds(49))
        #expect(harness.sent == [])
        harness.advance(.seconds(1))
        #expect(harness.sent == [.pingreq])
        #expect(harness.told() == [])
    }

    @Test("A side that has stopped reading pings on and does not take the server for dead")
    func heldReading() throws {
        var harness = try harness(60)
        harness.advance(.seconds(60))
        #expect(harness.sent == [.pingreq])
        harness.holdReading(true)
        for _ in 0..<5 {
            harness.advance(.seconds(60))
            #expect(harness.sent == [.pingreq])
        }
        harness.holdReading(false)
        harness.advance(.seconds(60))
        #expect(harness.sent == [.pingreq])
        #expect(harness.told() == [])
        harness.advance(.seconds(20))
        #expect(harness.told() == ["closed keepAliveTimedOut"])
    }

    @Test("A half-open peer is found within the interval and the ping's deadline")
    func halfOpen() throws {
        for (keepAlive, ping) in [(60, 20), (10, 5)] {
            var harness = try harness(UInt16(keepAlive))
            harness.advance(.seconds(keepAlive))
            #expect(harness.sent == [.pingreq])
            harness.advance(.seconds(ping) - .milliseconds(1))
            #expect(harness.told() == [])
            harness.advance(.milliseconds(1))
            #expect(harness.told() == ["closed keepAliveTimedOut"])
            #expect(harness.sent == [.disconnect(MQTTDisconnect(reasonCode: .unspecifiedError))])
        }
    }

    @Test("A call that expires when the connection does is told of the connection's end")
    func bothExpire() throws {
        var harness = try harness(60)
        try harness.publish(.atLeastOnce, timeout: .seconds(90))
        _ = harness.sent
        harness.advance(.seconds(60))
        harness.advance(.seconds(1_000))
        #expect(harness.told() == ["abandoned 0", "closed keepAliveTimedOut"])
    }

    @Test("A CONNACK before the CONNECT ends the connection, and nothing is sent")
    func earlyConnack() throws {
        var harness = try ClientHarness(connack: nil)
        harness.receive(.connack(MQTTConnackPacket()))
        #expect(harness.sent == [])
        #expect(harness.client.isFinished)
    }

    @Test("Traffic postpones the ping; a client that only sends still detects a dead peer")
    func traffic() throws {
        var harness = try harness(60)
        for _ in 0..<5 {
            harness.advance(.seconds(50))
            harness.receive(.message("x"))
            try harness.publish(.atMostOnce)
        }
        #expect(harness.sent.allSatisfy { $0.kind == .publish })
        for _ in 0..<2 {
            harness.advance(.seconds(30))
            try harness.publish(.atMostOnce)
        }
        #expect(harness.sent.contains(.pingreq))
        harness.advance(.seconds(20))
        #expect(harness.told().last == "closed keepAliveTimedOut")
    }

    @Test("The server's interval wins (3.1.2-21); zero turns it off")
    func intervals() throws {
        var shorter = try harness(60, server: 7)
        shorter.advance(.seconds(7))
        #expect(shorter.sent == [.pingreq])
        var off = try harness(0)
        off.advance(.seconds(1_000_000))
        #expect(off.sent == [])
        #expect(off.client.deadline == nil)
    }
}
