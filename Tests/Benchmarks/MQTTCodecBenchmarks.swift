import MQTTWire
import WireCore

/// The MQTT encoder and decoder alone, with a PUBLISH of 256 bytes.
enum MQTTCodecBenchmarks {
    private static let payload = [UInt8](repeating: 1, count: 256)
    private static let publish = MQTTPublish(topic: "benchmark/topic")

    /// 50 topics of 60 bytes.
    static let longTopics = (10..<60).map {
        "\($0)" + String(repeating: "/topic", count: 9) + "/end"
    }

    static func codec() throws {
        let count = 5_000_000
        let (encode, decode) = (try encode(count), try decode(count))
        print(#"{"job": "codec", "encode_ns": \#(encode), "decode_ns": \#(decode)}"#)
    }

    /// Sends 100,000 messages of 64 bytes on 50 topics of 60 bytes through the core of a client.
    ///
    /// Prints the bytes on the wire and the processor time, for servers that allow 0, 10 and 50 aliases.
    static func aliases() throws {
        let count = 100_000
        let topics = longTopics
        let payload = [UInt8](repeating: 1, count: 64)
        for maximum in [0, 10, 50] as [UInt16] {
            var connack = MQTTConnackPacket()
            connack.properties.topicAliasMaximum = maximum
            var bytes = ByteWriter()
            try MQTTPacket.connack(connack).encode(into: &bytes, version: .v5)
            var client = MQTTClientConnection()
            try client.connect(MQTTConnect(), hasSessionState: false, at: .zero)
            var buffer = ReceiveBuffer()
            buffer.append(bytes.takeBytes())
            client.receive(&buffer, at: .zero)
            let publishes = topics.map { MQTTPublish(topic: $0) }
            var (byteCount, fastest) = (0, Double.infinity)
            for _ in 0..<20 {
                client.outbound.removeAll()
                byteCount = 0
                let start = Usage()
                for number in 0..<count {
                    let publish = publishes[number % topics.count]
                    try client.publishAtMostOnce(publish, payload: payload, at: .zero)
                    if client.outboundByteCount > 1 << 16 {
                        byteCount += client.outboundByteCount
                        client.outbound.removeAll()
                    }
                }
                byteCount += client.outboundByteCount
                fastest = min(fastest, start.nanoseconds(per: count))
            }
            print(
                #"{"job": "aliases", "maximum": \#(maximum), "bytes": \#(byteCount), "#
                    + #""ns_per_message": \#(fastest)}"#
            )
        }
    }

    /// - Returns: The nanoseconds for each packet.
    static func encode(_ count: Int) throws -> Double {
        var writer = ByteWriter(capacity: 4_096)
        let (publish, payload) = (publish, payload)
        let start = Usage()
        for _ in 0..<count {
            writer.removeAll()
            try publish.encode(into: &writer, version: .v5, payload: payload)
        }
        return start.nanoseconds(per: count)
    }

    /// - Returns: The nanoseconds for each packet, without the time to copy the bytes into the buffer.
    static func decode(_ count: Int) throws -> Double {
        var writer = ByteWriter(capacity: 4_096)
        try publish.encode(into: &writer, version: .v5, payload: payload)
        // One read contains many packets and is decoded repeatedly.
        let perRead = 200
        let chunk = Array(repeatElement(writer.bytes, count: perRead).joined())
        var decoder = MQTTPacketDecoder(version: .v5, role: .client, maximumPacketSize: 1 << 20)
        var bytes = 0
        let time = try decodingTime(of: count, in: count / perRead, chunk) { buffer in
            while let packet = try decoder.next(&buffer) {
                if case .publish(let publish) = packet { bytes += publish.payload.count }
            }
        }
        return bytes == count / perRead * perRead * payload.count ? time : .infinity
    }
}
