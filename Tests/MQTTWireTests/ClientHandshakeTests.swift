import MQTTWire
import Testing

/// Which first packets a CONNECT permits, and which later packets may carry explanations.
@Suite("MQTT client: handshake") struct ClientHandshakeTests {
    /// What a CONNECT requests.
    enum Wish: CaseIterable {
        case nothing, session, responseInformation, authentication, noExplanations
    }

    static func handshake(_ wish: Wish) -> MQTTClientHandshake {
        var connect = MQTTConnect(clientIdentifier: "c")
        switch wish {
        case .nothing, .session: break
        case .responseInformation: connect.properties.requestResponseInformation = true
        case .authentication: connect.properties.authenticationMethod = "m"
        case .noExplanations: connect.properties.requestProblemInformation = false
        }
        return MQTTClientHandshake(connect, expectsSession: wish == .session)
    }

    static func connack(
        sessionPresent: Bool = false,
        _ reasonCode: MQTTReasonCode = .success,
        _ change: (inout MQTTProperties) -> Void = { _ in }
    ) -> MQTTPacket {
        var connack = MQTTConnackPacket(sessionPresent: sessionPresent, reasonCode: reasonCode)
        change(&connack.properties)
        return .connack(connack)
    }

    /// A first packet, the error without a wish, and the wish that permits it.
    static let rows: [(MQTTPacket, MQTTViolation?, Wish?)] = [
        (connack(), nil, nil),
        (connack(.notAuthorized), nil, nil),
        (connack(sessionPresent: true), .unexpectedSessionPresent, .session),
        (connack(sessionPresent: true, .notAuthorized), .unexpectedSessionPresent, nil),
        (
            connack { $0.responseInformation = "r" }, .unrequestedResponseInformation,
            .responseInformation
        ),
        (connack { $0.authenticationMethod = "m" }, .unexpectedAuthentication, .authentication),
        (connack { $0.reasonString = "why" }, nil, nil),
        (.auth(MQTTAuth()), .unexpectedAuthentication, nil),
        (.pingresp, .packetBeforeConnack(.pingresp), nil),
    ]

    @Test("A first packet is accepted with the wish that permits it", arguments: rows)
    func firstPackets(packet: MQTTPacket, violation: MQTTViolation?, permission: Wish?) {
        for wish in Wish.allCases {
            var handshake = Self.handshake(wish)
            #expect(handshake.hasBegun)
            #expect(handshake.isUnanswered)
            if let violation, wish != permission {
                #expect(throws: violation) { try handshake.receive(packet) }
            } else {
                #expect(throws: Never.self) { try handshake.receive(packet) }
            }
            #expect(!handshake.isUnanswered, "any packet is an answer")
        }
    }

    /// What arrives, and whether the CONNECT may yet be accepted, and the session is in doubt, then.
    static let doubtRows:
        [(MQTTPacket?, isAuthentication: Bool, mayBeLate: Bool, isInDoubt: Bool)] = [
            (nil, false, true, true),
            (nil, true, true, true),
            (connack(), false, false, true),
            (connack(.notAuthorized), false, false, false),
            (connack(.notAuthorized), true, false, false),
            (connack(sessionPresent: true, .notAuthorized), false, false, false),
            (connack(sessionPresent: true), false, false, true),
            (.pingresp, true, false, true),
        ]

    @Test(
        "From CONNECT until the connection begins or is refused, the session is in doubt",
        arguments: doubtRows
    )
    func doubt(
        packet: MQTTPacket?,
        isAuthentication: Bool,
        mayBeLate: Bool,
        isInDoubt: Bool
    ) {
        var handshake = Self.handshake(.authentication)
        if isAuthentication { handshake.noteAuthentication() }
        if let packet { _ = try? handshake.receive(packet) }
        #expect(handshake.mayBeAcceptedLate == mayBeLate)
        #expect(handshake.isInDoubt == isInDoubt)
        handshake.noteConnected()
        #expect(!handshake.isInDoubt)
    }

    @Test("Without CONNECT nothing has begun, whatever arrives")
    func notBegun() {
        var handshake = MQTTClientHandshake()
        #expect(throws: MQTTViolation.self) { try handshake.receive(.pingresp) }
        #expect(throws: MQTTViolation.packetBeforeConnack(.connack)) {
            try handshake.receive(.connack(MQTTConnackPacket()))
        }
        #expect(!handshake.hasBegun)
        #expect(!handshake.isUnanswered)
        #expect(!handshake.isInDoubt)
    }

    @Test("Explanations are refused in acknowledgements alone, and only on request")
    func explanations() {
        var explained = MQTTAcknowledgement(packetIdentifier: 1)
        explained.properties.reasonString = "why"
        let unsuback = MQTTUnsuback(packetIdentifier: 1, properties: explained.properties)
        let suback = MQTTSuback(
            packetIdentifier: 1,
            reasonCodes: [.success],
            properties: explained.properties
        )
        let refused: [MQTTPacket] = [
            .puback(explained), .pubrec(explained), .pubrel(explained), .pubcomp(explained),
            .suback(suback), .unsuback(unsuback),
        ]
        let permitted: [MQTTPacket] = [
            .puback(.ack(1)), .pingresp,
            .disconnect(MQTTDisconnect(properties: explained.properties)),
            .publish(MQTTPublish(topic: "t", properties: explained.properties)),
        ]
        for wish in Wish.allCases {
            let handshake = Self.handshake(wish)
            for packet in permitted {
                #expect(throws: Never.self) { try handshake.checkExplanation(packet) }
            }
            for packet in refused {
                if wish == .noExplanations {
                    #expect(throws: MQTTViolation.unrequestedProblemInformation) {
                        try handshake.checkExplanation(packet)
                    }
                } else {
                    #expect(throws: Never.self) { try handshake.checkExplanation(packet) }
                }
            }
        }
    }
}
