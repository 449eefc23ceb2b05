import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT codec: mutated input") struct MutationTests {
    /// The number of inputs for each of the four seeds.
    static let count = Mutations.count / 4

    @Test(
        "Whatever comes, the decoder yields packets, asks for more or refuses",
        arguments: 41...44
    )
    func mutated(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        let rows = GoldenPackets.rows
        var packets = 0
        var refusals = 0
        var bytes: [UInt8] = []
        for index in 0..<Self.count {
            await Mutations.giveWay(at: index)
            let row = rows[Int(generator.next() % UInt64(rows.count))]
            bytes = row.bytes
            for _ in 0...generator.next() % 4 { mutate(&bytes, &generator) }
            var decoder = MQTTPacketDecoder(
                version: row.version,
                role: row.role,
                maximumPacketSize: 4_096
            )
            var buffer = ReceiveBuffer(capacity: 256)
            buffer.append(bytes)
            do {
                while let packet = try decoder.next(&buffer) {
                    packets += 1
                    if packets % 64 == 0 { check(packet, decoder.version) }
                }
            } catch {
                refusals += 1
            }
        }
        // Both outcomes must be frequent. Otherwise the mutations change too much or too little.
        #expect(packets > Self.count / 20)
        #expect(refusals > Self.count / 20)
    }

    private func mutate(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        guard !bytes.isEmpty else {
            return bytes.append(UInt8(truncatingIfNeeded: generator.next()))
        }
        let random = generator.next()
        let index = Int(random >> 16 % UInt64(bytes.count))
        switch random & 0x07 {
        case 0: bytes[index] = UInt8(truncatingIfNeeded: random >> 8)
        case 1: bytes[index] ^= 1 << UInt8(random >> 8 & 7)
        case 2: bytes.remove(at: index)
        case 3: bytes.insert(UInt8(truncatingIfNeeded: random >> 8), at: index)
        case 4: bytes.removeLast(min(bytes.count, Int(random >> 8 & 3)))
        case 5: bytes += bytes.prefix(Int(random >> 8 & 15))
        case 6: bytes[index] = 0xFF
        default: bytes[index] = 0
        }
    }

    /// Checks that a decoded packet can be encoded, and that the result decodes to the same packet.
    private func check(_ packet: MQTTPacket, _ version: MQTTVersion) {
        var writer = ByteWriter()
        do {
            try packet.encode(into: &writer, version: version)
        } catch MQTTEncodingError.clientIdentifierMissing {
            // A client must not send an empty identifier. A server answers it with a return code (3.1.1, 3.1.3-8).
            return
        } catch {
            Issue.record("\(error) for \(packet)")
            return
        }
        var buffer = ReceiveBuffer(capacity: 256)
        buffer.append(writer.bytes)
        for role in [MQTTRole.client, .server] {
            var decoder = MQTTPacketDecoder(
                version: version,
                role: role,
                maximumPacketSize: 1 << 20
            )
            var copy = buffer
            if let again = try? decoder.next(&copy) {
                #expect(again == packet)
                return
            }
        }
        Issue.record("cannot be decoded again: \(packet)")
    }
}
