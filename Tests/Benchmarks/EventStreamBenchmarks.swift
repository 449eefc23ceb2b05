import EventStreamWire
import Waybill
import WaybillSSE
import WireCore

/// Server-sent events: the parser alone, and the whole way from a local server to the consumer's loop.
enum EventStreamBenchmarks {
    private enum Entry: EntryType {
        case listen(String)

        var topic: String? {
            switch self {
            case .listen(let path): path
            }
        }
        var command: EntryCommand { .subscribe }
    }

    private static func transport(_ port: Int) throws -> SSETransport {
        var configuration = SSEConfiguration()
        configuration.reconnection = .never
        return try SSETransport(url: "http://127.0.0.1:\(port)", configuration: configuration)
    }

    /// Receives events and checks the id and the length of each.
    @concurrent
    static func run(port: Int, _ count: Int, size: Int, isChunked: Bool) async throws {
        let transport = try transport(port)
        let provider = Provider<Entry>(transport: transport)
        let path = "/pour?count=\(count)&size=\(size)&chunked=\(isChunked ? 1 : 0)"
        let before = Usage()
        var number = 10_000_000
        for try await message in try await provider.messages(.listen(path)) {
            guard message.body.count == size, message.id.flatMap({ Int($0.description) }) == number
            else { break }
            number += 1
            if number == 10_000_000 + count { break }
        }
        if number == 10_000_000 + count { before.report("waybill", count) }
        await transport.shutdown()
    }

    /// Does the same and decodes each event as JSON.
    @concurrent
    static func decode(port: Int, _ count: Int, size: Int) async throws {
        struct Poured: Decodable {
            let a: String
        }
        let transport = try transport(port)
        let provider = Provider<Entry>(transport: transport)
        let path = "/pour?count=\(count)&size=\(size)&chunked=0"
        let before = Usage()
        var received = 0
        for try await value in try await provider.messages(.listen(path), as: Poured.self) {
            guard value.a.utf8.count == size - 8 else { break }
            received += 1
            if received == count { break }
        }
        if received == count { before.report("waybill", count) }
        await transport.shutdown()
    }

    static func codec() throws {
        var fields: [String] = []
        for size in [16, 100, 1_024] {
            fields.append(#""parse_\#(size)_ns": \#(try parse(size, hasID: false))"#)
            fields.append(#""parse_id_\#(size)_ns": \#(try parse(size, hasID: true))"#)
        }
        print(#"{"job": "waybill", \#(fields.joined(separator: ", "))}"#)
    }

    /// Parses a stream of 1 MiB in pieces of 16 KiB, which are cut at odd places. The copying of pieces counts.
    static func parse(_ size: Int, hasID: Bool, events wanted: Int? = nil) throws -> Double {
        var stream: [UInt8] = []
        var inStream = 0
        while stream.count + size + 64 < 1 << 20 {
            if hasID { stream += "id: \(10_000_000 + inStream)\n".utf8 }
            stream += "data: ".utf8
            stream += repeatElement(UInt8(ascii: "x"), count: size)
            stream += "\n\n".utf8
            inStream += 1
        }
        let rounds = wanted.map { max($0 / inStream, 1) } ?? 200
        let piece = 16_381
        var parser = EventStreamParser()
        var buffer = ReceiveBuffer()
        var events = 0
        var bytes = 0
        let start = Usage()
        for _ in 0..<rounds {
            try stream.withUnsafeBytes { stream in
                for at in Swift.stride(from: 0, to: stream.count, by: piece) {
                    let part = UnsafeRawBufferPointer(
                        rebasing: stream[at..<min(at + piece, stream.count)]
                    )
                    _ = buffer.fill(atLeast: part.count) { space in
                        space.copyMemory(from: part)
                        return part.count
                    }
                    while let event = try parser.next(&buffer) {
                        events += 1
                        bytes += event.data.count
                    }
                }
            }
        }
        let time = start.processorNanoseconds(per: events)
        return events == rounds * inStream && bytes == events * size ? time : .infinity
    }
}
