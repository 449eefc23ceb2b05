import MQTTWire
import WireCore

/// The MQTT encoder and decoder alone, with a PUBLISH of 256 bytes.
enum MQTTCodecBenchmarks {
    private static let payload = [UInt8](repeating: 1, count: 256)
    private static let publish = MQTTPublish(topic: "benchmark/topic")

    static func codec() throws {
        let count = 5_000_000
        let (encode, decode) = (try encode(count), try decode(count))
        print(#"{"job": "codec", "encode_ns": \#(encode), "decode_ns": \#(decode)}"#)
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
