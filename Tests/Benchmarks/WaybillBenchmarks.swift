import MQTTWire
import WireCore

/// Our side of the benchmarks: one job a run, one line of JSON.
///
///     WaybillBenchmarks mqtt publish|receive|echo PORT QOS COUNT SIZE WINDOW
///     WaybillBenchmarks mqtt intercepted PORT INTERCEPTORS COUNT SIZE
///     WaybillBenchmarks mqtt decoded|subscriptions|connections|latency PORT NUMBER COUNT SIZE
///     WaybillBenchmarks mqtt idle PORT COUNT
///     WaybillBenchmarks json COUNT SIZE
///     WaybillBenchmarks codec
///     WaybillBenchmarks websocket PORT send|receive|echo COUNT SIZE
///     WaybillBenchmarks websocket-codec
///     WaybillBenchmarks stomp
///     WaybillBenchmarks event-stream PORT COUNT SIZE CHUNKED
///     WaybillBenchmarks event-stream-codec
///     WaybillBenchmarks tls receive|cycle PORT COUNT AUTHORITY
@main
struct WaybillBenchmarks {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let numbers = arguments.dropFirst().compactMap { Int($0) }
        switch arguments.first {
        case "mqtt" where numbers.count >= 2:
            try await MQTTBenchmarks.run(
                Array(arguments)[1],
                port: numbers[0],
                Array(numbers[1...])
            )
        case "json" where numbers.count == 2:
            try MQTTBenchmarks.json(numbers[0], size: numbers[1])
        case "codec": try codec()
        case "websocket" where numbers.count == 3:
            let job = Array(arguments)[2]
            try await WebSocketBenchmarks.run(job, port: numbers[0], numbers[1], size: numbers[2])
        case "websocket-codec": try WebSocketBenchmarks.codec()
        case "stomp": try STOMPBenchmarks.codec()
        case "event-stream" where numbers.count == 4:
            try await EventStreamBenchmarks.run(
                port: numbers[0],
                numbers[1],
                size: numbers[2],
                isChunked: numbers[3] != 0
            )
        case "event-stream-codec": try EventStreamBenchmarks.codec()
        #if os(Linux)
            case "tls" where numbers.count == 2:
                let (job, authority) = (Array(arguments)[1], Array(arguments)[4])
                if job == "cycle" {
                    try await TLSBenchmarks.cycle(
                        port: numbers[0],
                        numbers[1],
                        authority: authority
                    )
                } else {
                    try await TLSBenchmarks.receive(
                        port: numbers[0],
                        numbers[1],
                        authority: authority
                    )
                }
        #endif
        default: print("usage: see Tests/Benchmarks/WaybillBenchmarks.swift")
        }
    }

    private static func codec() throws {
        let count = 5_000_000
        let payload = [UInt8](repeating: 1, count: 256)
        let publish = MQTTPublish(topic: "benchmark/topic")
        var writer = ByteWriter(capacity: 4_096)
        let encodeStart = Usage()
        for _ in 0..<count {
            writer.removeAll()
            try publish.encode(into: &writer, version: .v5, payload: payload)
        }
        let encode = encodeStart.nanoseconds(per: count)
        let packet = writer.bytes

        // A read of many packets, decoded over and over.
        let perRead = 200
        let chunk = Array(repeatElement(packet, count: perRead).joined())
        var decoder = MQTTPacketDecoder(version: .v5, role: .client, maximumPacketSize: 1 << 20)
        var buffer = ReceiveBuffer(capacity: chunk.count)
        var copying = 0.0
        var bytes = 0
        let decodeStart = Usage()
        for _ in 0..<count / perRead {
            let copyStart = Usage()
            buffer.append(chunk)
            copying += copyStart.nanoseconds(per: 1)
            while let packet = try decoder.next(&buffer) {
                if case .publish(let publish) = packet { bytes += publish.payload.count }
            }
        }
        let decode = decodeStart.nanoseconds(per: count) - copying / Double(count)
        print(
            #"{"job": "codec", "encode_ns": \#(encode), "decode_ns": \#(decode), "bytes": \#(bytes)}"#
        )
    }
}
