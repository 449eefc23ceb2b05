import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// Packets and their bytes, derived by hand from the formats of chapter 3.
enum GoldenPackets {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let version: MQTTVersion
        let role: MQTTRole
        let bytes: [UInt8]
        let packet: MQTTPacket

        var testDescription: String { name }
    }

    private static func row(
        _ name: String,
        _ version: MQTTVersion,
        _ role: MQTTRole,
        _ hex: Hex,
        _ packet: MQTTPacket
    ) -> Row {
        Row(name: name, version: version, role: role, bytes: hex.bytes, packet: packet)
    }

    private static func properties(_ body: (inout MQTTProperties) -> Void) -> MQTTProperties {
        var properties = MQTTProperties()
        body(&properties)
        return properties
    }

    static let rows: [Row] = version3 + version5

    private static let version3: [Row] = [
        // The three packets of a minimal client that was written by hand.
        row(
            "3.1.1 CONNECT, plain client",
            .v3_1_1,
            .server,
            "10 1C 0004 4D515454 04 02 00B4 0010 74776F6B 30313233 34353637 3839326B",
            .connect(
                MQTTConnect(
                    version: .v3_1_1,
                    clientIdentifier: "twok01234567892k",
                    keepAlive: 180
                )
            )
        ),
        row(
            "3.1.1 SUBSCRIBE, plain client",
            .v3_1_1,
            .server,
            "82 09 0001 0004 74776F6B 00",
            .subscribe(
                MQTTSubscribe(
                    packetIdentifier: 1,
                    subscriptions: [MQTTSubscription(filter: "twok")]
                )
            )
        ),
        row(
            "3.1.1 PUBLISH, plain client",
            .v3_1_1,
            .server,
            "30 0B 0004 74776F6B 68656C6C6F",
            .publish(MQTTPublish(topic: "twok", payload: ByteSlice(copying: "hello".utf8)))
        ),
        row(
            "3.1.1 CONNECT, everything",
            .v3_1_1,
            .server,
            """
            10 29 0004 4D515454 04 F4 000A 0003 616263
            0004 77696C6C 0003 01 02 03
            0005 616C696365 0006 736563726574
            """,
            .connect(
                MQTTConnect(
                    version: .v3_1_1,
                    clientIdentifier: "abc",
                    cleanStart: false,
                    keepAlive: 10,
                    will: MQTTWill(
                        topic: "will",
                        payload: [1, 2, 3],
                        qos: .exactlyOnce,
                        isRetained: true
                    ),
                    userName: "alice",
                    password: Array("secret".utf8)
                )
            )
        ),
        row(
            "3.1.1 CONNACK accepted, session present",
            .v3_1_1,
            .client,
            "20 02 01 00",
            .connack(MQTTConnackPacket(sessionPresent: true))
        ),
        row(
            "3.1.1 CONNACK 1",
            .v3_1_1,
            .client,
            "20 02 00 01",
            .connack(MQTTConnackPacket(reasonCode: .unsupportedProtocolVersion))
        ),
        row(
            "3.1.1 CONNACK 2",
            .v3_1_1,
            .client,
            "20 02 00 02",
            .connack(MQTTConnackPacket(reasonCode: .clientIdentifierNotValid))
        ),
        row(
            "3.1.1 CONNACK 3",
            .v3_1_1,
            .client,
            "20 02 00 03",
            .connack(MQTTConnackPacket(reasonCode: .serverUnavailable))
        ),
        row(
            "3.1.1 CONNACK 4",
            .v3_1_1,
            .client,
            "20 02 00 04",
            .connack(MQTTConnackPacket(reasonCode: .badUserNameOrPassword))
        ),
        row(
            "3.1.1 CONNACK 5",
            .v3_1_1,
            .client,
            "20 02 00 05",
            .connack(MQTTConnackPacket(reasonCode: .notAuthorized))
        ),
        row(
            "3.1.1 PUBLISH QoS 2, dup, retain",
            .v3_1_1,
            .client,
            "3D 07 0003 612F62 1234",
            .publish(
                MQTTPublish(
                    topic: "a/b",
                    qos: .exactlyOnce,
                    isRetained: true,
                    isDuplicate: true,
                    packetIdentifier: 0x1234
                )
            )
        ),
        row(
            "3.1.1 PUBACK",
            .v3_1_1,
            .client,
            "40 02 0007",
            .puback(MQTTAcknowledgement(packetIdentifier: 7))
        ),
        row(
            "3.1.1 PUBREC",
            .v3_1_1,
            .client,
            "50 02 FFFF",
            .pubrec(MQTTAcknowledgement(packetIdentifier: 0xFFFF))
        ),
        row(
            "3.1.1 PUBREL",
            .v3_1_1,
            .client,
            "62 02 0007",
            .pubrel(MQTTAcknowledgement(packetIdentifier: 7))
        ),
        row(
            "3.1.1 PUBCOMP",
            .v3_1_1,
            .client,
            "70 02 0007",
            .pubcomp(MQTTAcknowledgement(packetIdentifier: 7))
        ),
        row(
            "3.1.1 SUBSCRIBE, two filters",
            .v3_1_1,
            .server,
            "82 0E 000A 0003 612F62 01 0003 632F64 02",
            .subscribe(
                MQTTSubscribe(
                    packetIdentifier: 10,
                    subscriptions: [
                        MQTTSubscription(filter: "a/b", qos: .atLeastOnce),
                        MQTTSubscription(filter: "c/d", qos: .exactlyOnce),
                    ]
                )
            )
        ),
        row(
            "3.1.1 SUBACK",
            .v3_1_1,
            .client,
            "90 06 000A 00 01 02 80",
            .suback(
                MQTTSuback(
                    packetIdentifier: 10,
                    reasonCodes: [.grantedQoS0, .grantedQoS1, .grantedQoS2, .unspecifiedError]
                )
            )
        ),
        row(
            "3.1.1 UNSUBSCRIBE",
            .v3_1_1,
            .server,
            "A2 0C 000B 0003 612F62 0003 632F64",
            .unsubscribe(MQTTUnsubscribe(packetIdentifier: 11, filters: ["a/b", "c/d"]))
        ),
        row(
            "3.1.1 UNSUBACK",
            .v3_1_1,
            .client,
            "B0 02 000B",
            .unsuback(MQTTUnsuback(packetIdentifier: 11))
        ),
        row("3.1.1 PINGREQ", .v3_1_1, .server, "C0 00", .pingreq),
        row("3.1.1 PINGRESP", .v3_1_1, .client, "D0 00", .pingresp),
        row("3.1.1 DISCONNECT", .v3_1_1, .server, "E0 00", .disconnect(MQTTDisconnect())),
        row(
            "3.1.1 PUBLISH, byte order mark kept",
            .v3_1_1,
            .client,
            "30 06 0004 EFBBBF 61",
            .publish(MQTTPublish(topic: "\u{FEFF}a"))
        ),
    ]

    private static let version5: [Row] = [
        row(
            "5 CONNECT, least",
            .v5,
            .server,
            "10 0D 0004 4D515454 05 02 003C 00 0000",
            .connect(MQTTConnect())
        ),
        row(
            "5 CONNECT, everything",
            .v5,
            .server,
            """
            10 5E 0004 4D515454 05 CE 000A
            28 11 0000003C 21 0014 27 00001000 22 000A 19 01 17 00
               15 0005 5343524D2D 16 0002 0102
               26 0001 61 0001 62
            0003 616263
            14 18 00000005 01 01 02 0000000A 03 0001 74 09 0001 FF
            0004 77696C6C 0002 6869
            0001 75 0002 7077
            """,
            .connect(
                MQTTConnect(
                    clientIdentifier: "abc",
                    keepAlive: 10,
                    will: MQTTWill(
                        topic: "will",
                        payload: Array("hi".utf8),
                        qos: .atLeastOnce,
                        properties: properties {
                            $0.willDelayInterval = 5
                            $0.payloadFormatIndicator = 1
                            $0.messageExpiryInterval = 10
                            $0.contentType = "t"
                            $0.correlationData = [0xFF]
                        }
                    ),
                    userName: "u",
                    password: Array("pw".utf8),
                    properties: properties {
                        $0.sessionExpiryInterval = 60
                        $0.receiveMaximum = 20
                        $0.maximumPacketSize = 4_096
                        $0.topicAliasMaximum = 10
                        $0.requestResponseInformation = true
                        $0.requestProblemInformation = false
                        $0.authenticationMethod = "SCRM-"
                        $0.authenticationData = [1, 2]
                        $0.userProperties = [MQTTUserProperty(name: "a", value: "b")]
                    }
                )
            )
        ),
        row(
            "5 CONNACK, everything",
            .v5,
            .client,
            """
            20 40 01 00 3D
            11 00000001 21 0002 24 01 25 00 27 00000400 12 0002 6964 22 0003
            1F 0001 72 28 00 29 01 2A 00 13 001E
            1A 0001 69 1C 0001 73 15 0001 6D 16 0001 64 26 0001 6E 0001 76
            """,
            .connack(
                MQTTConnackPacket(
                    sessionPresent: true,
                    properties: properties {
                        $0.sessionExpiryInterval = 1
                        $0.receiveMaximum = 2
                        $0.maximumQoS = .atLeastOnce
                        $0.retainAvailable = false
                        $0.maximumPacketSize = 1_024
                        $0.assignedClientIdentifier = "id"
                        $0.topicAliasMaximum = 3
                        $0.reasonString = "r"
                        $0.wildcardSubscriptionAvailable = false
                        $0.subscriptionIdentifiersAvailable = true
                        $0.sharedSubscriptionAvailable = false
                        $0.serverKeepAlive = 30
                        $0.responseInformation = "i"
                        $0.serverReference = "s"
                        $0.authenticationMethod = "m"
                        $0.authenticationData = [0x64]
                        $0.userProperties = [MQTTUserProperty(name: "n", value: "v")]
                    }
                )
            )
        ),
        row(
            "5 CONNACK, not authorized",
            .v5,
            .client,
            "20 03 00 87 00",
            .connack(MQTTConnackPacket(reasonCode: .notAuthorized))
        ),
        row(
            "5 PUBLISH QoS 0",
            .v5,
            .client,
            "30 08 0003 612F62 00 6869",
            .publish(MQTTPublish(topic: "a/b", payload: ByteSlice(copying: "hi".utf8)))
        ),
        row(
            "5 PUBLISH, everything",
            .v5,
            .client,
            """
            35 2A 0001 74 0102
            23 01 01 02 00000009 23 0004 08 0001 72 09 0002 0A0B
               0B 07 0B 80 01 03 0001 63 26 0001 6B 0001 76
            FF
            """,
            .publish(
                MQTTPublish(
                    topic: "t",
                    qos: .exactlyOnce,
                    isRetained: true,
                    packetIdentifier: 0x0102,
                    properties: properties {
                        $0.payloadFormatIndicator = 1
                        $0.messageExpiryInterval = 9
                        $0.topicAlias = 4
                        $0.responseTopic = "r"
                        $0.correlationData = [0x0A, 0x0B]
                        $0.subscriptionIdentifiers = [7, 128]
                        $0.contentType = "c"
                        $0.userProperties = [MQTTUserProperty(name: "k", value: "v")]
                    },
                    payload: [0xFF]
                )
            )
        ),
        row(
            "5 PUBLISH by alias alone",
            .v5,
            .client,
            "30 06 0000 03 23 0004",
            .publish(MQTTPublish(topic: "", properties: properties { $0.topicAlias = 4 }))
        ),
        row(
            "5 PUBACK, short",
            .v5,
            .client,
            "40 02 0007",
            .puback(MQTTAcknowledgement(packetIdentifier: 7))
        ),
        row(
            "5 PUBACK, reason",
            .v5,
            .client,
            "40 03 0007 10",
            .puback(MQTTAcknowledgement(packetIdentifier: 7, reasonCode: .noMatchingSubscribers))
        ),
        row(
            "5 PUBREC, reason and properties",
            .v5,
            .client,
            "50 08 0007 97 04 1F 0001 71",
            .pubrec(
                MQTTAcknowledgement(
                    packetIdentifier: 7,
                    reasonCode: .quotaExceeded,
                    properties: properties { $0.reasonString = "q" }
                )
            )
        ),
        row(
            "5 PUBREL, not found",
            .v5,
            .client,
            "62 03 0007 92",
            .pubrel(MQTTAcknowledgement(packetIdentifier: 7, reasonCode: .packetIdentifierNotFound))
        ),
        row(
            "5 PUBCOMP",
            .v5,
            .client,
            "70 03 0007 92",
            .pubcomp(
                MQTTAcknowledgement(packetIdentifier: 7, reasonCode: .packetIdentifierNotFound)
            )
        ),
        row(
            "5 SUBSCRIBE, options and identifier",
            .v5,
            .server,
            "82 0D 000A 02 0B 05 0005 612F622F23 2E",
            .subscribe(
                MQTTSubscribe(
                    packetIdentifier: 10,
                    subscriptions: [
                        MQTTSubscription(
                            filter: "a/b/#",
                            qos: .exactlyOnce,
                            noLocal: true,
                            retainAsPublished: true,
                            retainHandling: .doNotSend
                        )
                    ],
                    properties: properties { $0.subscriptionIdentifiers = [5] }
                )
            )
        ),
        row(
            "5 SUBACK",
            .v5,
            .client,
            "90 05 000A 00 01 87",
            .suback(MQTTSuback(packetIdentifier: 10, reasonCodes: [.grantedQoS1, .notAuthorized]))
        ),
        row(
            "5 UNSUBSCRIBE",
            .v5,
            .server,
            "A2 08 000B 00 0003 612F62",
            .unsubscribe(MQTTUnsubscribe(packetIdentifier: 11, filters: ["a/b"]))
        ),
        row(
            "5 UNSUBACK",
            .v5,
            .client,
            "B0 05 000B 00 00 11",
            .unsuback(
                MQTTUnsuback(packetIdentifier: 11, reasonCodes: [.success, .noSubscriptionExisted])
            )
        ),
        row("5 PINGREQ", .v5, .server, "C0 00", .pingreq),
        row("5 PINGRESP", .v5, .client, "D0 00", .pingresp),
        row("5 DISCONNECT, normal", .v5, .client, "E0 00", .disconnect(MQTTDisconnect())),
        row(
            "5 DISCONNECT, reason",
            .v5,
            .client,
            "E0 01 8E",
            .disconnect(MQTTDisconnect(reasonCode: .sessionTakenOver))
        ),
        row(
            "5 DISCONNECT, server reference",
            .v5,
            .client,
            "E0 06 9C 04 1C 0001 73",
            .disconnect(
                MQTTDisconnect(
                    reasonCode: .useAnotherServer,
                    properties: properties { $0.serverReference = "s" }
                )
            )
        ),
        row("5 AUTH, success", .v5, .client, "F0 00", .auth(MQTTAuth())),
        row(
            "5 AUTH, continue",
            .v5,
            .client,
            "F0 06 18 04 15 0001 6D",
            .auth(
                MQTTAuth(
                    reasonCode: .continueAuthentication,
                    properties: properties { $0.authenticationMethod = "m" }
                )
            )
        ),
    ]
}
