import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// Enhanced authentication (MQTT 5, 3.15 and 4.12): the client's core, fed with bytes.
@Suite("MQTT client: enhanced authentication") struct AuthenticationTests {
    static func auth(
        _ code: MQTTReasonCode,
        _ data: [UInt8]? = nil,
        method: String? = "m",
        _ change: (inout MQTTProperties) -> Void = { _ in }
    ) -> MQTTPacket {
        var auth = MQTTAuth(reasonCode: code)
        auth.properties.authenticationMethod = method
        auth.properties.authenticationData = data
        change(&auth.properties)
        return .auth(auth)
    }

    static func connack(
        _ code: MQTTReasonCode = .success,
        _ data: [UInt8]? = nil,
        method: String? = "m"
    ) -> MQTTPacket {
        var connack = MQTTConnackPacket(reasonCode: code)
        connack.properties.authenticationMethod = method
        connack.properties.authenticationData = data
        return .connack(connack)
    }

    static var request: MQTTConnect {
        var connect = MQTTConnect(clientIdentifier: "c")
        connect.properties.authenticationMethod = "m"
        connect.properties.authenticationData = [1]
        return connect
    }

    /// A client that has sent CONNECT with a method.
    static func connecting(
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) throws -> ClientHarness {
        var harness = try ClientHarness(.v5, connack: nil, change)
        try harness.client.connect(request, hasSessionState: false, at: harness.now)
        #expect(harness.sent == [.connect(request)])
        return harness
    }

    /// A client that has authenticated itself.
    static func connected(
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) throws -> ClientHarness {
        var harness = try connecting(change)
        harness.receive(connack())
        harness.client.acceptServer(at: harness.now)
        harness.note()
        #expect(harness.told() == ["must verify []", "connected"])
        return harness
    }

    // MARK: Connecting

    @Test("An exchange before CONNACK, byte by byte, and the packet that follows it")
    func exchange() throws {
        var harness = try ClientHarness(.v5, connack: nil)
        try harness.client.connect(Self.request, hasSessionState: false, at: harness.now)
        let connect: Hex = """
            10 16 0004 4D515454 05 02 003C 08 15 0001 6D 16 0001 01 0001 63
            """
        #expect(harness.client.outbound.takeBytes() == connect.bytes)
        harness.receive(("F0 0A 18 08 15 0001 6D 16 0001 02" as Hex).bytes)
        #expect(harness.told() == ["challenged [2]"])
        try harness.client.authenticate([3], at: harness.now)
        #expect(
            harness.client.outbound.takeBytes()
                == ("F0 0A 18 08 15 0001 6D 16 0001 03" as Hex).bytes
        )
        // CONNACK and a message in one read: the message waits until the server is verified.
        harness.receive(
            ("20 0B 00 00 08 15 0001 6D 16 0001 04" as Hex).bytes
                + ("30 05 0001 74 00 78" as Hex).bytes
        )
        #expect(harness.told() == ["must verify [4]"])
        #expect(!harness.client.isConnected)
        #expect(harness.client.hasMoreInput)
        harness.client.acceptServer(at: harness.now)
        harness.note()
        #expect(harness.told() == ["connected"])
        harness.receive([])
        #expect(harness.told() == ["message x"])
    }

    @Test("Until the server is verified, only AUTH and DISCONNECT are sent (3.1.2-30)")
    func nothingElse() throws {
        var harness = try Self.connecting()
        func refuses() {
            #expect(throws: MQTTSendError.notConnected) { try harness.publish(.atMostOnce) }
            #expect(throws: MQTTSendError.notConnected) { try harness.publish(.exactlyOnce) }
            #expect(throws: MQTTSendError.notConnected) {
                try harness.client.send(
                    .subscribe([MQTTSubscription(filter: "t")]),
                    call: nil,
                    at: harness.now
                )
            }
            #expect(throws: MQTTSendError.notConnected) {
                try harness.client.reauthenticate(nil, timeout: .seconds(1), at: harness.now)
            }
        }
        refuses()
        harness.receive(Self.auth(.continueAuthentication))
        refuses()
        try harness.client.authenticate(nil, at: harness.now)
        refuses()
        harness.receive(Self.connack())
        refuses()
        harness.advance(.seconds(5))
        harness.client.disconnect(at: harness.now)
        #expect(
            harness.sent == [
                Self.auth(.continueAuthentication), .disconnect(MQTTDisconnect()),
            ]
        )
    }

    /// Packets of the server after CONNECT, each answered if it asks for data, and the violation with its reason.
    static let refusedBefore: [([MQTTPacket], String, MQTTReasonCode)] = [
        ([auth(.success)], "reasonCodeNotAllowed(.auth)", .protocolError),
        ([auth(.reauthenticate)], "reasonCodeNotAllowed(.auth)", .protocolError),
        (
            [auth(.continueAuthentication, method: nil)], "authenticationMethodChanged",
            .protocolError
        ),
        ([.auth(MQTTAuth())], "authenticationMethodChanged", .protocolError),
        (
            [auth(.continueAuthentication, method: "M")], "authenticationMethodChanged",
            .protocolError
        ),
        (
            [auth(.continueAuthentication), auth(.continueAuthentication, method: "x")],
            "authenticationMethodChanged", .protocolError
        ),
        ([connack(method: nil)], "authenticationMethodChanged", .protocolError),
        ([connack(method: "mm")], "authenticationMethodChanged", .protocolError),
        (
            Array(repeating: auth(.continueAuthentication), count: 17), "authenticationTooLong",
            .quotaExceeded
        ),
        (
            Array(
                repeating: auth(
                    .continueAuthentication,
                    [UInt8](repeating: 0, count: 65_535)
                ),
                count: 5
            ), "authenticationTooLong", .quotaExceeded
        ),
        ([.pingresp], "packetBeforeConnack(.pingresp)", .protocolError),
        (
            [auth(.continueAuthentication), .message("x")], "packetBeforeConnack(.publish)",
            .protocolError
        ),
    ]

    @Test("Each violation before CONNACK has its reason (4.12.0-5)", arguments: refusedBefore)
    func violationsBefore(
        packets: [MQTTPacket],
        violation: String,
        reason: MQTTReasonCode
    ) throws {
        var harness = try Self.connecting()
        for packet in packets {
            harness.receive(packet)
            if harness.told().contains(where: { $0.contains("challenged") }) {
                try harness.client.authenticate(nil, at: harness.now)
                _ = harness.sent
            } else {
                #expect(packet == packets.last)
            }
        }
        #expect(harness.sent == [.disconnect(MQTTDisconnect(reasonCode: reason))])
        #expect(harness.client.isFinished)
        // Sent again to see the name, which the loop has taken.
        var second = try Self.connecting()
        for packet in packets {
            second.receive(packet)
            if !second.client.isFinished {
                try second.client.authenticate(nil, at: second.now)
            }
        }
        #expect(second.told().last == "closed \(violation)")
    }

    @Test("While this side's answer is due, the server may only refuse")
    func turns() throws {
        for packet in [Self.auth(.continueAuthentication), Self.connack()] {
            var harness = try Self.connecting()
            harness.receive(Self.auth(.continueAuthentication), packet)
            #expect(harness.told() == ["challenged []", "closed unexpectedAuthentication"])
        }
        for code in [MQTTReasonCode.notAuthorized, .badAuthenticationMethod] {
            var harness = try Self.connecting()
            harness.receive(
                Self.auth(.continueAuthentication),
                Self.connack(code, method: nil)
            )
            #expect(harness.told() == ["challenged []", "closed refused \(code)"])
        }
    }

    @Test("An answer that is not due is refused, and nothing is written")
    func answersNotDue() throws {
        var harness = try Self.connecting()
        #expect(throws: MQTTSendError.authenticationNotDue) {
            try harness.client.authenticate([1], at: harness.now)
        }
        harness.receive(Self.auth(.continueAuthentication))
        try harness.client.authenticate([1], at: harness.now)
        #expect(throws: MQTTSendError.authenticationNotDue) {
            try harness.client.authenticate([1], at: harness.now)
        }
        #expect(harness.sent == [Self.auth(.continueAuthentication, [1])])
        var without = try ClientHarness(.v5)
        #expect(throws: MQTTSendError.authenticationNotDue) {
            try without.client.reauthenticate(nil, timeout: .seconds(1), at: without.now)
        }
        #expect(without.sent == [], "no AUTH without a method (4.12.0-7)")
    }

    @Test("An answer that cannot be encoded stays due")
    func tooLong() throws {
        var harness = try Self.connecting()
        harness.receive(Self.auth(.continueAuthentication))
        let long = [UInt8](repeating: 0, count: 65_536)
        #expect(throws: MQTTSendError.self) {
            try harness.client.authenticate(long, at: harness.now)
        }
        #expect(harness.sent == [])
        try harness.client.authenticate([1], at: harness.now)
        #expect(harness.sent == [Self.auth(.continueAuthentication, [1])])
    }

    @Test("The connect timeout covers every step", arguments: 0...3)
    func connectTimeout(step: Int) throws {
        var harness = try Self.connecting { $0.connectTimeout = .seconds(3) }
        if step > 0 { harness.receive(Self.auth(.continueAuthentication)) }
        if step > 1 { try harness.client.authenticate(nil, at: harness.now) }
        if step > 2 { harness.receive(Self.connack()) }
        _ = harness.told()
        _ = harness.sent
        harness.advance(.milliseconds(2_999))
        #expect(harness.told() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.told() == ["closed connectTimedOut"])
        #expect(harness.sent == [.disconnect(MQTTDisconnect())])
    }

    @Test("A client that gives up says so with 0x80, and closes")
    func abandoned() throws {
        var harness = try Self.connecting()
        harness.receive(Self.connack())
        harness.client.abandonAuthentication(at: harness.now)
        harness.note()
        #expect(harness.told() == ["must verify []", "closed authenticationAbandoned"])
        #expect(
            harness.sent == [.disconnect(MQTTDisconnect(reasonCode: .unspecifiedError))]
        )
        harness.client.acceptServer(at: harness.now)
        harness.note()
        #expect(harness.told() == [])
    }

    @Test("Without problem information AUTH carries no explanation (3.1.2-29)")
    func explanations() throws {
        let explained = Self.auth(.continueAuthentication) { $0.reasonString = "why" }
        var harness = try Self.connecting()
        harness.receive(explained)
        #expect(harness.told() == ["challenged []"])
        var connect = Self.request
        connect.properties.requestProblemInformation = false
        harness = try ClientHarness(.v5, connack: nil)
        try harness.client.connect(connect, hasSessionState: false, at: harness.now)
        harness.receive(explained)
        #expect(harness.told() == ["closed unrequestedProblemInformation"])
    }

    // MARK: Again

    @Test("A re-authentication, byte by byte, while messages flow")
    func reauthentication() throws {
        var harness = try Self.connected()
        try harness.client.reauthenticate([5], timeout: .seconds(30), at: harness.now)
        #expect(
            harness.client.outbound.takeBytes()
                == ("F0 0A 19 08 15 0001 6D 16 0001 05" as Hex).bytes
        )
        try harness.publish(.atLeastOnce, 1)
        harness.receive(
            .message("in"),
            Self.auth(.continueAuthentication, [6]),
            .puback(.ack(1))
        )
        #expect(
            harness.told() == ["message in", "challenged [6]", "published 1 Success (0x00)"]
        )
        _ = harness.sent
        try harness.client.authenticate([7], at: harness.now)
        #expect(harness.sent == [Self.auth(.continueAuthentication, [7])])
        #expect(throws: MQTTSendError.authenticationNotDue) {
            try harness.client.reauthenticate(nil, timeout: .seconds(30), at: harness.now)
        }
        harness.receive(Self.auth(.success, [8]))
        #expect(harness.told() == ["reauthenticated [8]"])
        // And once more.
        try harness.client.reauthenticate(nil, timeout: .seconds(30), at: harness.now)
        harness.receive(Self.auth(.success))
        #expect(harness.told() == ["reauthenticated []"])
    }

    /// Packets of the server on an open connection: whether a re-authentication is under way, and the violation.
    static let refusedLater: [(Bool, [MQTTPacket], String)] = [
        (false, [auth(.continueAuthentication)], "unexpectedAuthentication"),
        (false, [auth(.success)], "unexpectedAuthentication"),
        (false, [auth(.reauthenticate)], "unexpectedAuthentication"),
        (true, [auth(.reauthenticate)], "reasonCodeNotAllowed(.auth)"),
        (true, [auth(.success, method: "x")], "authenticationMethodChanged"),
        (true, [auth(.success, method: nil)], "authenticationMethodChanged"),
        (true, [auth(.continueAuthentication), auth(.success)], "unexpectedAuthentication"),
        (true, [auth(.success), auth(.success)], "unexpectedAuthentication"),
        (true, [connack()], "secondConnack"),
    ]

    @Test(
        "Each violation on an open connection ends it with 0x82 (4.12.1-1)",
        arguments: refusedLater
    )
    func violationsLater(isUnderWay: Bool, packets: [MQTTPacket], violation: String) throws {
        var harness = try Self.connected()
        if isUnderWay {
            try harness.client.reauthenticate(nil, timeout: .seconds(30), at: harness.now)
        }
        _ = harness.sent
        for packet in packets { harness.receive(packet) }
        #expect(harness.told().last == "closed \(violation)")
        #expect(harness.sent == [.disconnect(MQTTDisconnect(reasonCode: .protocolError))])
    }

    @Test("A re-authentication that the server does not complete ends the connection (4.12.1-2)")
    func reauthenticationTimeout() throws {
        var harness = try Self.connected()
        try harness.client.reauthenticate(nil, timeout: .seconds(7), at: harness.now)
        _ = harness.sent
        #expect(harness.client.deadline == harness.now.advanced(by: .seconds(7)))
        harness.receive(Self.auth(.continueAuthentication))
        try harness.client.authenticate(nil, at: harness.now)
        _ = (harness.told(), harness.sent)
        harness.advance(.seconds(7))
        #expect(harness.told() == ["closed authenticationTimedOut"])
        #expect(
            harness.sent == [.disconnect(MQTTDisconnect(reasonCode: .unspecifiedError))]
        )
    }

    @Test("A re-authentication in time leaves no deadline behind")
    func deadlines() throws {
        var harness = try Self.connected()
        let before = harness.client.deadline
        try harness.client.reauthenticate(nil, timeout: .seconds(7), at: harness.now)
        harness.receive(Self.auth(.success))
        #expect(harness.client.deadline == before)
        harness.advance(.seconds(8))
        #expect(harness.client.isConnected)
    }

    @Test("A refused re-authentication ends the connection (4.12.1-2)")
    func reauthenticationRefused() throws {
        var harness = try Self.connected()
        try harness.client.reauthenticate(nil, timeout: .seconds(7), at: harness.now)
        harness.receive(.disconnect(MQTTDisconnect(reasonCode: .notAuthorized)))
        #expect(harness.told() == ["closed by server Not authorized (0x87)"])
    }

    @Test(
        "A CONNACK that refuses is taken for the refusal of a re-authentication, as Mosquitto sends it"
    )
    func refusedByConnack() throws {
        var harness = try Self.connected()
        try harness.client.reauthenticate(nil, timeout: .seconds(7), at: harness.now)
        harness.receive(Self.connack(.notAuthorized, method: nil))
        #expect(harness.told() == ["closed refused Not authorized (0x87)"])
        // Outside of one it is a second CONNACK.
        harness = try Self.connected()
        harness.receive(Self.connack(.notAuthorized, method: nil))
        #expect(harness.told() == ["closed secondConnack"])
    }

    // MARK: Sending

    @Test("Texts of AUTH are left out if they do not fit (3.15.2-2, 3.15.2-3)")
    func texts() throws {
        var full = MQTTAuth(reasonCode: .continueAuthentication)
        full.properties.authenticationMethod = "m"
        full.properties.authenticationData = [1]
        let terse = full
        full.properties.reasonString = "why"
        full.properties.userProperties = [MQTTUserProperty(name: "a", value: "b")]
        var writer = MQTTPacketWriter(version: .v5, isTracing: false)
        try writer.write(full)
        let fullCount = writer.outbound.count
        for (maximum, expected) in [(fullCount, full), (fullCount - 1, terse)] {
            var writer = MQTTPacketWriter(version: .v5, isTracing: false)
            writer.maximumPacketSize = maximum
            try writer.write(full)
            var buffer = ReceiveBuffer(capacity: 64)
            buffer.append(writer.outbound.takeBytes())
            var decoder = MQTTPacketDecoder(
                version: .v5,
                role: .server,
                maximumPacketSize: 1 << 20
            )
            #expect(try decoder.next(&buffer) == .auth(expected))
        }
        writer.maximumPacketSize = 5
        #expect(throws: MQTTSendError.packetTooLarge(byteCount: 12, maximum: 5)) {
            try writer.write(full)
        }
    }

    @Test("Descriptions show the method, and never the data")
    func descriptions() {
        #expect(
            Self.auth(.continueAuthentication, Array("secret".utf8)).description
                == "AUTH Continue authentication (0x18) method=m data=<redacted>"
        )
        #expect(MQTTPacket.auth(MQTTAuth()).description == "AUTH Success (0x00)")
        let connect = MQTTPacket.connect(Self.request).description
        #expect(connect.hasSuffix("method=m data=<redacted>"))
        #expect(!Self.connack(.success, Array("secret".utf8)).description.contains("secret"))
    }
}
