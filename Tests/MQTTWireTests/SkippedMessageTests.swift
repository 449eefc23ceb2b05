import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT client: messages above its maximum") struct SkippedMessageTests {
    private static let long = String(repeating: "x", count: 300)

    private func harness(_ version: MQTTVersion = .v5) throws -> ClientHarness {
        var connect = MQTTConnect(version: version, clientIdentifier: "c")
        if version == .v5 { connect.properties.topicAliasMaximum = 4 }
        return try ClientHarness(version, connect: connect) { $0.maximumPacketSize = 64 }
    }

    private func bytes(_ version: MQTTVersion, _ packets: MQTTPacket...) throws -> [UInt8] {
        var writer = ByteWriter()
        for packet in packets { try packet.encode(into: &writer, version: version) }
        return writer.bytes
    }

    @Test(
        "Each quality: acknowledged in its turn, and what follows arrives, however it is cut",
        arguments: [MQTTVersion.v3_1_1, .v5]
    )
    func qualities(version: MQTTVersion) throws {
        let bytes = try bytes(
            version,
            .message("1", .atLeastOnce, id: 1),
            .message(Self.long, .atLeastOnce, id: 2),
            .message(Self.long),
            .message(Self.long, .exactlyOnce, id: 3),
            .message("4", .atLeastOnce, id: 4)
        )
        let reason = version == .v5 ? MQTTReasonCode.quotaExceeded : .success
        for pieces in [[bytes], bytes.map { [$0] }, bytes.chunks(of: 7), bytes.chunks(of: 100)] {
            var harness = try harness(version)
            for piece in pieces { harness.receive(piece) }
            #expect(
                harness.told() == [
                    "message 1", "skipped t 300", "skipped t 300", "skipped t 300", "message 4",
                ]
            )
            // The first message was not taken yet.
            #expect(harness.sent == [.pubrec(.ack(3, reason))])
            harness.take(0)
            harness.take(1)
            #expect(
                harness.sent == [
                    .puback(.ack(1)), .puback(.ack(2, reason)), .puback(.ack(4)),
                ]
            )
        }
    }

    @Test("Its topic alias is defined, and a repetition at QoS 2 is not told twice")
    func alias() throws {
        var harness = try harness()
        var publish = MQTTPublish(
            topic: "long/topic",
            payload: ByteSlice(copying: Self.long.utf8)
        )
        publish.properties.topicAlias = 3
        harness.receive(.publish(publish))
        publish.topic = ""
        harness.receive(.publish(publish))
        #expect(harness.told() == ["skipped long/topic 300", "skipped long/topic 300"])
    }

    @Test("What comes before CONNACK, another packet, and a head above the maximum are refused")
    func refused() throws {
        let long = Array(Self.long.utf8)
        var early = try ClientHarness(.v5, connack: nil) { $0.maximumPacketSize = 64 }
        try early.client.connect(
            MQTTConnect(clientIdentifier: "c"),
            hasSessionState: false,
            at: .zero
        )
        early.receive(try bytes(.v5, .message(Self.long)))
        #expect(early.told() == ["closed packetBeforeConnack(.publish)"])
        var other = try harness()
        other.receive([0x40, 0x80, 0x02])
        #expect(other.told() == ["closed packetTooLarge(byteCount: 259, maximum: 64)"])
        var head = try harness()
        head.receive([0x30, 0x80, 0x02, 0, 100] + long)
        #expect(head.told() == ["closed packetTooLarge(byteCount: 259, maximum: 64)"])
        var properties = try harness()
        properties.receive([0x30, 0x80, 0x02, 0, 1, 0x74, 0xFF, 0x7F])
        #expect(properties.told() == ["closed packetTooLarge(byteCount: 259, maximum: 64)"])
    }

    @Test("A violation at its end has the mark of its head, however it is cut")
    func mark() throws {
        for first in [0x32, 0x3A] as [UInt8] {
            // The alias 9 was never defined.
            let head = [first, 0xB4, 0x02, 0, 0, 0, 7, 3, 0x23, 0, 9]
            let bytes = head + Array(Self.long.utf8)
            for pieces in [[bytes], bytes.chunks(of: 7), bytes.chunks(of: 100)] {
                var harness = try harness()
                for piece in pieces { harness.receive(piece) }
                #expect(harness.client.violationMark == [0x32] + head.dropFirst())
            }
        }
    }

    @Test("Nothing of the payload is kept, however long it is")
    func memory() throws {
        var harness = try harness()
        // 256 MiB, less one.
        harness.receive([0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 0x74, 0])
        var buffer = ReceiveBuffer(capacity: 64)
        var rest = 268_435_455 - 4
        let piece = [UInt8](repeating: 0x30, count: 1 << 20)
        while rest > 0 {
            buffer.append(piece[..<min(rest, piece.count)])
            rest -= min(rest, piece.count)
            harness.client.receive(&buffer, at: .zero)
            #expect(buffer.count == 0)
        }
        harness.note()
        #expect(harness.told() == ["skipped t 268435451"])
        harness.receive(.message("next"))
        #expect(harness.told() == ["message next"])
    }
}

extension Array {
    fileprivate func chunks(of count: Int) -> [[Element]] {
        stride(from: 0, to: self.count, by: count).map {
            Array(self[$0..<Swift.min($0 + count, self.count)])
        }
    }
}
