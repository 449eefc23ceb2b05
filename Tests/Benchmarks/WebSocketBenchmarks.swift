import Waybill
import WaybillWebSocket
import WebSocketWire
import WireCore

/// WebSocket against the local server `websocket_sink`, and its codec alone.
enum WebSocketBenchmarks {
    @concurrent
    static func run(_ job: String, port: Int, _ count: Int, size: Int) async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.compression = nil
        let base = "ws://127.0.0.1:\(port)"
        let payload = [UInt8](repeating: UInt8(ascii: "x"), count: size)
        switch job {
        case "send":
            let socket = try await connect("\(base)/sink?count=\(count)", configuration)
            let before = Usage()
            for _ in 0..<count { try await socket.send(payload) }
            var iterator = socket.messages.makeAsyncIterator()
            _ = try await iterator.next()
            before.report("waybill", count)
        case "receive":
            let socket = try await connect(
                "\(base)/pour?count=\(count)&size=\(size)",
                configuration
            )
            let before = Usage()
            try await socket.send("go")
            var received = 0
            for try await message in socket.messages where message.byteCount == size {
                received += 1
                if received == count { break }
            }
            before.report("waybill", count)
        default:
            let socket = try await connect("\(base)/echo", configuration)
            var iterator = socket.messages.makeAsyncIterator()
            var times: [Double] = []
            let before = Usage()
            for _ in 0..<count {
                let start = ContinuousClock().now
                try await socket.send(payload)
                _ = try await iterator.next()
                times.append((ContinuousClock().now - start) / .microseconds(1))
            }
            before.report("waybill", count, times: times)
        }
    }

    private static func connect(
        _ url: String,
        _ configuration: WebSocketClient.Configuration
    ) async throws -> WebSocketClient {
        try await WebSocketClient.connect(to: url, configuration: configuration)
    }

    static func codec() throws {
        var fields: [String] = []
        for size in [4_096, 65_536] {
            let source = [UInt8](repeating: 7, count: size)
            var target = [UInt8](repeating: 0, count: size)
            let count = (8 << 30) / size
            let start = Usage()
            for round in 0..<count {
                target.withUnsafeMutableBytes { target in
                    guard let base = target.baseAddress else { return }
                    source.withUnsafeBytes {
                        let key = UInt32(truncatingIfNeeded: round)
                        WebSocketMasking.apply($0, to: base, key: key)
                    }
                }
            }
            let time = start.nanoseconds(per: count)
            fields.append(#""mask_\#(size)_ns": \#(time)"#)
            fields.append(#""mask_\#(size)_gb_per_second": \#(Double(size) / time)"#)
        }
        fields.append(#""decode_16_ns": \#(try decode(5_000_000))"#)
        print(#"{"job": "waybill", \#(fields.joined(separator: ", "))}"#)
    }

    /// Decodes frames of 16 bytes from a read of many.
    static func decode(_ count: Int) throws -> Double {
        var writer = ByteWriter()
        let perRead = 1_000
        for _ in 0..<perRead {
            WebSocketFrameHeader(opcode: .binary, payloadByteCount: 16).encode(into: &writer)
            writer.append(contentsOf: [UInt8](repeating: 1, count: 16))
        }
        let chunk = writer.bytes
        var reader = WebSocketReader(role: .client, maximumMessageSize: 1 << 20)
        var bytes = 0
        let time = try decodingTime(of: count, in: count / perRead, chunk) { buffer in
            while let input = try reader.next(&buffer) {
                if case .message(let message) = input { bytes += message.payload.count }
            }
        }
        return bytes == count * 16 ? time : .infinity
    }
}
