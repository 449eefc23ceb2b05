import MQTTWire
import Testing
import WireCore
import WireTestSupport

func makeDecoder(
    _ version: MQTTVersion,
    _ role: MQTTRole,
    maximumPacketSize: Int = 1 << 20
) -> DecoderVerifier<MQTTPacket>.Decode {
    var decoder = MQTTPacketDecoder(
        version: version,
        role: role,
        maximumPacketSize: maximumPacketSize
    )
    return { buffer in try decoder.next(&buffer) }
}

@Suite("MQTT codec: golden packets") struct GoldenPacketTests {
    @Test("Encoding gives the bytes of the table", arguments: GoldenPackets.rows)
    func encode(row: GoldenPackets.Row) throws {
        var writer = ByteWriter(capacity: 1)
        try row.packet.encode(into: &writer, version: row.version)
        #expect(Hex.text(writer.bytes) == Hex.text(row.bytes))
    }

    @Test(
        "Decoding gives the packet of the table, however the bytes arrive",
        arguments: GoldenPackets.rows
    )
    func decode(row: GoldenPackets.Row) {
        let verifier = DecoderVerifier { makeDecoder(row.version, row.role) }
        #expect(verifier.verify([(row.bytes, row.packet)]) == [])
    }

    @Test("All packets of a version and role decode from one stream")
    func coalesced() {
        for version in MQTTVersion.allCases {
            for role in [MQTTRole.client, .server] {
                let rows = GoldenPackets.rows.filter { $0.version == version && $0.role == role }
                let verifier = DecoderVerifier { makeDecoder(version, role) }
                #expect(verifier.verify(rows.map { ($0.bytes, $0.packet) }) == [])
            }
        }
    }

    @Test("Every kind of packet is in the table, in each version that has it")
    func complete() {
        for version in MQTTVersion.allCases {
            let kinds = Set(GoldenPackets.rows.filter { $0.version == version }.map(\.packet.kind))
            let missing = Set(MQTTPacketKind.allCases).subtracting(kinds)
            #expect(missing == (version == .v5 ? [] : [.auth]))
        }
    }

    @Test("Every property of the specification is in the table")
    func allProperties() throws {
        var seen: Set<MQTTPropertyIdentifier> = []
        for identifier in MQTTPropertyIdentifier.allCases {
            let byte = identifier.rawValue
            if GoldenPackets.rows.contains(where: { $0.version == .v5 && $0.bytes.contains(byte) })
            {
                seen.insert(identifier)
            }
        }
        #expect(seen == Set(MQTTPropertyIdentifier.allCases))
    }

    @Test("The description of a packet holds no secrets and no payload")
    func descriptions() {
        for row in GoldenPackets.rows {
            let text = row.packet.description
            for secret in ["secret", "alice", "pw", "hello"] {
                #expect(!text.contains(secret), "\(text)")
            }
            #expect(text.hasPrefix("\(row.packet.kind)".uppercased()))
        }
    }
}

@Suite("MQTT codec: reason codes") struct ReasonCodeTests {
    @Test("Every code is written, read and named, in each packet that may carry it")
    func tables() throws {
        let kinds: [(MQTTPacketKind, (MQTTReasonCode) -> MQTTPacket)] = [
            (.connack, { .connack(MQTTConnackPacket(reasonCode: $0)) }),
            (.puback, { .puback(MQTTAcknowledgement(packetIdentifier: 1, reasonCode: $0)) }),
            (.pubrec, { .pubrec(MQTTAcknowledgement(packetIdentifier: 1, reasonCode: $0)) }),
            (.pubrel, { .pubrel(MQTTAcknowledgement(packetIdentifier: 1, reasonCode: $0)) }),
            (.pubcomp, { .pubcomp(MQTTAcknowledgement(packetIdentifier: 1, reasonCode: $0)) }),
            (.suback, { .suback(MQTTSuback(packetIdentifier: 1, reasonCodes: [$0])) }),
            (.unsuback, { .unsuback(MQTTUnsuback(packetIdentifier: 1, reasonCodes: [$0])) }),
            (.disconnect, { .disconnect(MQTTDisconnect(reasonCode: $0)) }),
            (.auth, { .auth(MQTTAuth(reasonCode: $0)) }),
        ]
        var seen: Set<MQTTReasonCode> = []
        for (kind, make) in kinds {
            for raw in UInt8.min...UInt8.max {
                let code = MQTTReasonCode(rawValue: raw)
                var writer = ByteWriter()
                guard MQTTReasonCode.isAllowed(code, in: kind, version: .v5) else {
                    #expect(throws: MQTTEncodingError.reasonCodeNotAllowed(code)) {
                        try make(code).encode(into: &writer, version: .v5)
                    }
                    #expect(writer.isEmpty)
                    continue
                }
                seen.insert(code)
                try make(code).encode(into: &writer, version: .v5)
                var buffer = ReceiveBuffer(capacity: 16)
                buffer.append(writer.bytes)
                // Only clients send this reason code.
                let role: MQTTRole = kind == .disconnect && raw == 0x04 ? .server : .client
                #expect(try makeDecoder(.v5, role)(&buffer) == make(code))
            }
        }
        #expect(seen == Set(MQTTReasonCode.names.map(\.code)))
        #expect(MQTTReasonCode.names.count == 43)
        #expect(MQTTReasonCode.notAuthorized.description == "Not authorized (0x87)")
        #expect(MQTTReasonCode(rawValue: 0x05).description == "0x05")
    }
}

@Suite("MQTT codec: lengths") struct RemainingLengthTests {
    /// The smallest and largest lengths of one to four bytes (MQTT 5, table 2-3).
    static let borders = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]

    @Test("A PUBLISH at each border is written and read", arguments: borders.dropFirst(2))
    func publish(length: Int) throws {
        let payload = [UInt8](repeating: 0x61, count: length - 3)
        let packet = MQTTPublish(topic: "t", payload: ByteSlice(copying: payload))
        var writer = ByteWriter()
        try packet.encode(into: &writer, version: .v3_1_1)
        #expect(
            writer.count == packet.encodedSize(version: .v3_1_1, payloadByteCount: payload.count)
        )
        let headerLength = length < 128 ? 2 : length < 16_384 ? 3 : length < 2_097_152 ? 4 : 5
        #expect(writer.count == headerLength + length)
        var buffer = ReceiveBuffer()
        buffer.append(writer.bytes)
        let decode = makeDecoder(.v3_1_1, .client, maximumPacketSize: 1 << 22)
        #expect(try decode(&buffer) == .publish(packet))
    }

    @Test("The longest remaining length is read, and refused only for its size")
    func longest() throws {
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(("30 FF FF FF 7F" as Hex).bytes)
        #expect(throws: MQTTViolation.packetTooLarge(byteCount: 268_435_460, maximum: 1 << 20)) {
            try makeDecoder(.v5, .server)(&buffer)
        }
        // Even under a limit that allows the length, the decoder must not reserve a buffer before the bytes arrive.
        var other = ReceiveBuffer(capacity: 16)
        other.append(("30 80 80 01" as Hex).bytes)
        #expect(try makeDecoder(.v5, .client)(&other) == nil)
    }

    @Test("Five bytes of remaining length, or more bytes than needed, are malformed")
    func malformed() {
        for hex in ["30 FF FF FF FF", "30 80 80 80 80 01", "30 80 00", "D0 80 80 00"] as [Hex] {
            var buffer = ReceiveBuffer(capacity: 16)
            buffer.append(hex.bytes)
            #expect(throws: MQTTViolation.variableByteIntegerInvalid) {
                try makeDecoder(.v5, .client)(&buffer)
            }
        }
    }

    @Test("A packet at the limit passes, one byte more does not")
    func limit() throws {
        for (size, passes) in [(64, true), (65, false)] {
            var writer = ByteWriter()
            let payload = [UInt8](repeating: 1, count: size - 5)
            try MQTTPublish(topic: "t", payload: ByteSlice(copying: payload))
                .encode(into: &writer, version: .v3_1_1)
            #expect(writer.count == size)
            var buffer = ReceiveBuffer(capacity: 16)
            buffer.append(writer.bytes)
            let decode = makeDecoder(.v3_1_1, .server, maximumPacketSize: 64)
            if passes {
                #expect(try decode(&buffer) != nil)
            } else {
                #expect(throws: MQTTViolation.packetTooLarge(byteCount: 65, maximum: 64)) {
                    try decode(&buffer)
                }
            }
        }
    }
}
