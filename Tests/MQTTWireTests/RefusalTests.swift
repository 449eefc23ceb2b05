import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// Every violation of the encoding: the bytes, the role that reads them, the error, and MQTT 5's reason code for it.
@Suite("MQTT codec: refusals") struct RefusalTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let hex: Hex
        let version: MQTTVersion
        let role: MQTTRole
        let violation: MQTTViolation
        let reason: MQTTReasonCode

        var testDescription: String { "\(violation): \(Hex.text(hex.bytes))" }
    }

    private static func v5(
        _ hex: Hex,
        _ violation: MQTTViolation,
        _ reason: MQTTReasonCode = .malformedPacket
    ) -> Row {
        Row(hex: hex, version: .v5, role: .client, violation: violation, reason: reason)
    }

    private static func v5(
        _ hex: Hex,
        _ role: MQTTRole,
        _ violation: MQTTViolation,
        _ reason: MQTTReasonCode = .malformedPacket
    ) -> Row {
        Row(hex: hex, version: .v5, role: role, violation: violation, reason: reason)
    }

    private static func v3(
        _ hex: Hex,
        _ violation: MQTTViolation,
        _ reason: MQTTReasonCode = .malformedPacket
    ) -> Row {
        Row(hex: hex, version: .v3_1_1, role: .client, violation: violation, reason: reason)
    }

    static let rows: [Row] =
        header + publish + acknowledgements + connect + connack + subscribe + properties + endings

    private static let header: [Row] = [
        v5("00 00", .reservedPacketKind),
        v5("21 03 00 00 00", .reservedFlags(.connack)),
        v5("41 02 0007", .reservedFlags(.puback)),
        v5("60 02 0007", .reservedFlags(.pubrel)),
        v3("60 02 0007", .reservedFlags(.pubrel)),
        v5("80 06 0001 00 0001 61 00", .server, .reservedFlags(.subscribe)),
        v5("A0 06 0001 00 0001 61", .server, .reservedFlags(.unsubscribe)),
        v5("D1 00", .reservedFlags(.pingresp)),
        v5("E1 00", .reservedFlags(.disconnect)),
        v5("F1 00", .reservedFlags(.auth)),
        v5("D0 FF FF FF FF", .variableByteIntegerInvalid),
        v5(
            "30 FF FF FF 7F",
            .server,
            .packetTooLarge(byteCount: 268_435_460, maximum: 1 << 20),
            .packetTooLarge
        ),
        v5("10 00", .unexpectedPacket(.connect), .protocolError),
        v5("82 00", .unexpectedPacket(.subscribe), .protocolError),
        v5("A2 00", .unexpectedPacket(.unsubscribe), .protocolError),
        v5("C0 00", .unexpectedPacket(.pingreq), .protocolError),
        v3("E0 00", .unexpectedPacket(.disconnect), .protocolError),
        v3("F0 00", .unexpectedPacket(.auth), .protocolError),
        v5("20 00", .server, .unexpectedPacket(.connack), .protocolError),
        v5("90 00", .server, .unexpectedPacket(.suback), .protocolError),
        v5("B0 00", .server, .unexpectedPacket(.unsuback), .protocolError),
        v5("D0 00", .server, .unexpectedPacket(.pingresp), .protocolError),
        v5("D0 01 00", .trailingBytes(.pingresp)),
        v5("C0 01 00", .server, .trailingBytes(.pingreq)),
    ]

    private static let publish: [Row] = [
        v5("36 07 0001 61 0001 00 78", .qualityOfServiceInvalid),
        v3("36 05 0001 61 0001", .qualityOfServiceInvalid),
        v5("38 04 0001 61 00", .qualityOfServiceInvalid),
        v5("30 00", .fieldTruncated(.publish)),
        v5("30 03 0002 61", .fieldTruncated(.publish)),
        v5("32 04 0001 61 00", .fieldTruncated(.publish)),
        v5("32 06 0001 61 0000 00", .packetIdentifierZero(.publish)),
        v3("32 05 0001 61 0000", .packetIdentifierZero(.publish)),
        v5("30 05 0002 C080 00", .invalidUTF8),
        v5("30 06 0003 EDA080 00", .invalidUTF8),
        v3("30 04 0002 61FF", .invalidUTF8),
        v5("30 04 0001 00 00", .nullCharacter),
        v3("30 03 0001 00", .nullCharacter),
        v5("30 04 0001 2B 00", .topicNameInvalid, .topicNameInvalid),
        v5("30 05 0002 6123 00", .topicNameInvalid, .topicNameInvalid),
        v5("30 03 0000 00", .topicNameMissing, .protocolError),
        v3("30 02 0000", .topicNameInvalid, .topicNameInvalid),
        v5("30 06 0001 61 02 01 02", .propertyOutOfRange(.publish), .protocolError),
        v5("30 07 0001 61 03 23 0000", .topicAliasInvalid, .topicAliasInvalid),
        v5("30 06 0001 61 02 0B 00", .propertyOutOfRange(.publish), .protocolError),
        v5("30 08 0001 61 04 08 0001 23", .topicNameInvalid, .topicNameInvalid),
        v5("30 04 0001 61 05", .fieldTruncated(.publish)),
    ]

    private static let acknowledgements: [Row] = [
        v5("40 02 0000", .packetIdentifierZero(.puback)),
        v5("40 01 00", .fieldTruncated(.puback)),
        v3("40 03 0001 00", .trailingBytes(.puback)),
        v5("40 03 0001 92", .reasonCodeNotAllowed(.puback), .protocolError),
        v5("50 03 0001 04", .reasonCodeNotAllowed(.pubrec), .protocolError),
        v5("62 03 0001 10", .reasonCodeNotAllowed(.pubrel), .protocolError),
        v5("70 03 0001 10", .reasonCodeNotAllowed(.pubcomp), .protocolError),
        v5("40 05 0001 00 00 00", .trailingBytes(.puback)),
        v5("70 02 0000", .packetIdentifierZero(.pubcomp)),
    ]

    private static let connect: [Row] = [
        v5("10 0D 0004 4D515445 05 02 003C 00 0000", .server, .protocolNameInvalid),
        v5(
            "10 0D 0004 4D515454 06 02 003C 00 0000",
            .server,
            .protocolVersionUnsupported,
            .unsupportedProtocolVersion
        ),
        v5("10 0D 0004 4D515454 05 03 003C 00 0000", .server, .reservedBits(.connect)),
        v5("10 0D 0004 4D515454 05 0A 003C 00 0000", .server, .reservedBits(.connect)),
        v5("10 0D 0004 4D515454 05 22 003C 00 0000", .server, .reservedBits(.connect)),
        v5("10 0D 0004 4D515454 05 1E 003C 00 0000", .server, .qualityOfServiceInvalid),
        v5(
            "10 0F 0004 4D515454 04 42 003C 0000 0001 61",
            .server,
            .passwordWithoutUserName,
            .protocolError
        ),
        v5("10 0E 0004 4D515454 05 02 003C 00 0000 00", .server, .trailingBytes(.connect)),
        v5(
            "10 11 0004 4D515454 05 02 003C 04 16 0001 61 0000",
            .server,
            .authenticationMethodMissing(.connect),
            .protocolError
        ),
        v5("10 0D 0004 4D515454 05 82 003C 00 0000", .server, .fieldTruncated(.connect)),
        v5(
            "10 13 0004 4D515454 05 06 003C 00 0000 00 0001 23 0000",
            .server,
            .topicNameInvalid,
            .topicNameInvalid
        ),
    ]

    private static let connack: [Row] = [
        v5("20 07 00 00 04 16 0001 61", .authenticationMethodMissing(.connack), .protocolError),
        v5("20 03 02 00 00", .reservedBits(.connack)),
        v3("20 02 80 00", .reservedBits(.connack)),
        v5("20 03 00 01 00", .reasonCodeNotAllowed(.connack), .protocolError),
        v3("20 02 00 06", .reasonCodeNotAllowed(.connack), .protocolError),
        v5("20 02 00 00", .fieldTruncated(.connack)),
        v3("20 03 00 00 00", .trailingBytes(.connack)),
        v5("20 06 00 00 03 21 0000", .propertyOutOfRange(.connack), .protocolError),
        v5("20 05 00 00 02 24 02", .propertyOutOfRange(.connack), .protocolError),
        v5("20 05 00 00 02 25 02", .propertyOutOfRange(.connack), .protocolError),
        v5("20 08 00 00 05 27 00000000", .propertyOutOfRange(.connack), .protocolError),
        v5("20 05 00 00 02 28 02", .propertyOutOfRange(.connack), .protocolError),
        v5("20 05 00 00 02 29 02", .propertyOutOfRange(.connack), .protocolError),
        v5("20 05 00 00 02 2A 02", .propertyOutOfRange(.connack), .protocolError),
    ]

    private static let subscribe: [Row] = [
        v5("82 03 0001 00", .server, .listEmpty(.subscribe), .protocolError),
        v5("A2 03 0001 00", .server, .listEmpty(.unsubscribe), .protocolError),
        v5("82 07 0001 00 0001 61 03", .server, .qualityOfServiceInvalid),
        v5("82 07 0001 00 0001 61 40", .server, .reservedBits(.subscribe)),
        v5("82 07 0001 00 0001 61 30", .server, .reservedBits(.subscribe)),
        v5("82 08 0001 00 0002 6123 00", .server, .topicFilterInvalid, .topicFilterInvalid),
        v5("82 06 0001 00 0000 00", .server, .topicFilterInvalid, .topicFilterInvalid),
        v5("A2 05 0001 00 0001", .server, .fieldTruncated(.unsubscribe)),
        v5("90 03 0001 00", .listEmpty(.suback), .protocolError),
        v5("90 04 0001 00 03", .reasonCodeNotAllowed(.suback), .protocolError),
        v3("90 03 0001 03", .reasonCodeNotAllowed(.suback), .protocolError),
        v3("90 03 0001 81", .reasonCodeNotAllowed(.suback), .protocolError),
        v5("B0 03 0001 00", .listEmpty(.unsuback), .protocolError),
        v5("B0 04 0001 00 12", .reasonCodeNotAllowed(.unsuback), .protocolError),
        v3("B0 03 0001 00", .trailingBytes(.unsuback)),
    ]

    private static let properties: [Row] = [
        v5("30 05 0001 61 01 04", .propertyUnknown),
        v5("30 05 0001 61 01 7F", .propertyUnknown),
        v5("30 06 0001 61 02 FF 01", .propertyUnknown),
        v5("30 09 0001 61 05 11 00000001", .propertyNotAllowed(.publish), .protocolError),
        v5("20 06 00 00 03 23 0001", .propertyNotAllowed(.connack), .protocolError),
        v5("30 08 0001 61 04 01 00 01 00", .propertyRepeated(.publish), .protocolError),
        v5("20 09 00 00 06 13 0001 13 0002", .propertyRepeated(.connack), .protocolError),
        v5("40 07 0001 00 03 1F 0005", .fieldTruncated(.puback)),
        v5("30 07 0001 61 03 80 80 00", .variableByteIntegerInvalid),
    ]

    private static let endings: [Row] = [
        v5("E0 01 8E", .server, .reasonCodeNotAllowed(.disconnect), .protocolError),
        v5("E0 01 04", .client, .reasonCodeNotAllowed(.disconnect), .protocolError),
        v5("E0 01 10", .reasonCodeNotAllowed(.disconnect), .protocolError),
        v5("E0 03 00 00 00", .trailingBytes(.disconnect)),
        v5("F0 01 10", .reasonCodeNotAllowed(.auth), .protocolError),
    ]

    @Test("Each is refused with its violation and reason, and stays refused", arguments: rows)
    func refused(row: Row) {
        let decode = makeDecoder(row.version, row.role)
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(row.hex.bytes)
        #expect(throws: row.violation) { try decode(&buffer) }
        #expect(row.violation.reasonCode == row.reason)
        buffer.append([0xD0, 0x00])
        #expect(throws: row.violation) { try decode(&buffer) }
    }

    @Test("Each is refused the same when it comes byte by byte", arguments: rows)
    func bytewise(row: Row) {
        let decode = makeDecoder(row.version, row.role)
        var buffer = ReceiveBuffer(capacity: 16)
        var found: MQTTViolation?
        for byte in row.hex.bytes where found == nil {
            buffer.append([byte])
            do {
                #expect(try decode(&buffer) == nil)
            } catch {
                found = error as? MQTTViolation
            }
        }
        #expect(found == row.violation)
    }

    @Test("Every violation that the codec can find has a row")
    func complete() {
        let names = Set(Self.rows.map { "\($0.violation)".prefix { $0 != "(" } })
        #expect(names.count == 26, "\(names.sorted())")
    }
}
