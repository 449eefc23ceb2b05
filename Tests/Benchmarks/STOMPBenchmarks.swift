import STOMPWire
import WireCore

enum STOMPBenchmarks {
    static func codec() throws {
        let fields = try [100, 1_024, 16_384].map { size in
            #""parse_\#(size)_ns": \#(try parse(size, 200_000_000 / (size + 100)))"#
        }
        print(#"{"job": "waybill", \#(fields.joined(separator: ", "))}"#)
    }

    /// Parses MESSAGE frames with five headers from a read of many, and copies their bodies.
    static func parse(_ size: Int, _ wanted: Int) throws -> Double {
        var writer = ByteWriter()
        let headers: STOMPHeaders = [
            "subscription": "0", "message-id": "007", "destination": "/queue/benchmark",
            "content-type": "text/plain",
        ]
        let body = [UInt8](repeating: UInt8(ascii: "x"), count: size)
        let perRead = max(1, min(wanted, 1_000_000 / (size + 200)))
        for _ in 0..<perRead {
            try STOMPFrameEncoder.encode(
                .message,
                headers,
                body: body,
                version: .v1_2,
                into: &writer
            )
        }
        let chunk = writer.bytes
        let count = wanted / perRead * perRead
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_2)
        var bytes = 0
        let time = try decodingTime(of: count, in: count / perRead, chunk) { buffer in
            while let frame = try decoder.next(&buffer) { bytes += frame.body.bytes.count }
        }
        return bytes == count * size ? time : .infinity
    }
}
