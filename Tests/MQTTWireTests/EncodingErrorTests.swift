import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT codec: what is not sent") struct EncodingErrorTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let packet: MQTTPacket
        var version = MQTTVersion.v5
        let error: MQTTEncodingError

        var testDescription: String { "\(error)" }
    }

    private static let long = String(repeating: "x", count: 65_536)

    private static func publish(_ body: (inout MQTTPublish) -> Void) -> MQTTPacket {
        var publish = MQTTPublish(topic: "t")
        body(&publish)
        return .publish(publish)
    }

    private static func connect(_ body: (inout MQTTConnect) -> Void) -> MQTTPacket {
        var connect = MQTTConnect()
        body(&connect)
        return .connect(connect)
    }

    private static func subscribe(_ filter: String, noLocal: Bool = false) -> MQTTPacket {
        .subscribe(
            MQTTSubscribe(
                packetIdentifier: 1,
                subscriptions: [MQTTSubscription(filter: filter, noLocal: noLocal)]
            )
        )
    }

    static let rows: [Row] = [
        Row(packet: publish { $0.topic = long }, error: .fieldTooLong("topic name")),
        Row(packet: publish { $0.topic = "a\0" }, error: .nullCharacter("topic name")),
        Row(packet: publish { $0.topic = "" }, error: .topicNameEmpty),
        Row(packet: publish { $0.topic = "a/+" }, error: .topicNameHasWildcard),
        Row(packet: publish { $0.topic = "a/#" }, version: .v3_1_1, error: .topicNameHasWildcard),
        Row(
            packet: publish { $0.qos = .atLeastOnce },
            error: .packetIdentifierMissing
        ),
        Row(packet: publish { $0.packetIdentifier = 1 }, error: .packetIdentifierNotAllowed),
        Row(packet: publish { $0.isDuplicate = true }, error: .duplicateNotAllowed),
        Row(packet: publish { $0.properties.responseTopic = "a/#" }, error: .topicNameHasWildcard),
        Row(
            packet: publish { $0.properties.topicAlias = 0 },
            error: .propertyOutOfRange(.topicAlias)
        ),
        Row(
            packet: publish { $0.properties.subscriptionIdentifiers = [268_435_456] },
            error: .propertyOutOfRange(.subscriptionIdentifier)
        ),
        Row(
            packet: publish { $0.properties.sessionExpiryInterval = 1 },
            error: .propertyNotAllowed(.sessionExpiryInterval)
        ),
        Row(
            packet: publish { $0.properties.contentType = "t" },
            version: .v3_1_1,
            error: .needsVersion5
        ),
        Row(
            packet: publish { $0.properties.userProperties = [.init(name: long, value: "")] },
            error: .fieldTooLong("user property name")
        ),
        Row(
            packet: connect { $0.clientIdentifier = "a\0" },
            error: .nullCharacter("client identifier")
        ),
        Row(packet: connect { $0.userName = long }, error: .fieldTooLong("user name")),
        Row(
            packet: connect { $0.password = Array(long.utf8) },
            error: .fieldTooLong("password")
        ),
        Row(packet: connect { $0.will = MQTTWill(topic: "#") }, error: .topicNameHasWildcard),
        Row(
            packet: connect { $0.properties.receiveMaximum = 0 },
            error: .propertyOutOfRange(.receiveMaximum)
        ),
        Row(
            packet: connect {
                $0.version = .v3_1_1
                $0.password = []
            },
            error: .passwordWithoutUserName
        ),
        Row(
            packet: connect {
                $0.version = .v3_1_1
                $0.cleanStart = false
            },
            error: .clientIdentifierMissing
        ),
        Row(packet: subscribe(""), error: .topicFilterInvalid(.empty)),
        Row(packet: subscribe("a#"), error: .topicFilterInvalid(.multiLevelWildcard)),
        Row(packet: subscribe("$share/g/a", noLocal: true), error: .noLocalOnSharedSubscription),
        Row(packet: subscribe("a", noLocal: true), version: .v3_1_1, error: .needsVersion5),
        Row(
            packet: .subscribe(MQTTSubscribe(packetIdentifier: 1, subscriptions: [])),
            error: .noFilter
        ),
        Row(
            packet: .unsubscribe(MQTTUnsubscribe(packetIdentifier: 1, filters: [])),
            error: .noFilter
        ),
        Row(
            packet: .unsubscribe(MQTTUnsubscribe(packetIdentifier: 0, filters: ["a"])),
            error: .packetIdentifierMissing
        ),
        Row(
            packet: .puback(MQTTAcknowledgement(packetIdentifier: 0)),
            error: .packetIdentifierMissing
        ),
        Row(
            packet: .pubcomp(
                MQTTAcknowledgement(packetIdentifier: 1, reasonCode: .noMatchingSubscribers)
            ),
            error: .reasonCodeNotAllowed(.noMatchingSubscribers)
        ),
        Row(
            packet: .disconnect(MQTTDisconnect(reasonCode: .serverBusy)),
            version: .v3_1_1,
            error: .needsVersion5
        ),
        Row(packet: .auth(MQTTAuth()), version: .v3_1_1, error: .needsVersion5),
    ]

    @Test("Each is refused, and nothing is written", arguments: rows)
    func refused(row: Row) {
        var writer = ByteWriter()
        writer.append(0xAA as UInt8)
        #expect(throws: row.error) { try row.packet.encode(into: &writer, version: row.version) }
        #expect(writer.bytes == [0xAA])
    }

    @Test("A packet beyond 268,435,455 bytes is refused before a byte of it is copied")
    func tooLarge() {
        struct Huge: WireBytes {
            var wireByteCount: Int { 268_435_456 }
            func withWireBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
                Issue.record("the payload was asked for")
            }
        }
        var writer = ByteWriter()
        #expect(throws: MQTTEncodingError.packetTooLarge(byteCount: 268_435_456 + 4)) {
            try MQTTPublish(topic: "t").encode(into: &writer, version: .v5, payload: Huge())
        }
    }

    @Test("Every encoding error has a row")
    func complete() {
        let names = Set(Self.rows.map { "\($0.error)".prefix { $0 != "(" } })
        // packetTooLarge has a test of its own.
        #expect(names.count == 16, "\(names.sorted())")
    }

    @Test("A topic name holds any ASCII character but NUL and the wildcards, wherever it stands")
    func everyCharacterEverywhere() throws {
        for length in 1...20 {
            for place in 0..<length {
                for byte in UInt8(0)..<0x80 {
                    var bytes = [UInt8](repeating: UInt8(ascii: "x"), count: length)
                    bytes[place] = byte
                    let publish = MQTTPublish(topic: String(decoding: bytes, as: UTF8.self))
                    var writer = ByteWriter()
                    let expected: MQTTEncodingError? =
                        switch byte {
                        case 0: .nullCharacter("topic name")
                        case UInt8(ascii: "#"), UInt8(ascii: "+"): .topicNameHasWildcard
                        default: nil
                        }
                    var found: MQTTEncodingError?
                    do throws(MQTTEncodingError) {
                        try publish.encode(into: &writer, version: .v5)
                    } catch {
                        found = error
                    }
                    try #require(found == expected, "byte \(byte) at \(place) of \(length)")
                }
            }
        }
    }
}
