import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

/// The framings and codings of a stream's body, in pieces of every size.
@Suite("Event stream transport: framing", .inSimulation, .timeLimit(.minutes(30)))
struct FramingTests {
    private static let plain = Array("data: a\n\ndata: b\n\n".utf8)
    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4B, 0x49, 0x2C, 0x49, 0xB4,
        0x52, 0x48, 0xE4, 0xE2, 0x4A, 0x01, 0x33, 0x92, 0xB8, 0xB8, 0x00, 0xBA, 0x59, 0xC7, 0xDF,
        0x12, 0x00, 0x00, 0x00,
    ]
    private static let deflate: [UInt8] = [
        0x78, 0x9C, 0x4B, 0x49, 0x2C, 0x49, 0xB4, 0x52, 0x48, 0xE4, 0xE2, 0x4A, 0x01, 0x33, 0x92,
        0xB8, 0xB8, 0x00, 0x33, 0x88, 0x04, 0xD4,
    ]

    /// The content coding of a body.
    enum Coding: String, CaseIterable {
        case identity, gzip, deflate
        /// Deflate without zlib's header, as some servers send it.
        case raw

        var bytes: [UInt8] {
            switch self {
            case .identity: FramingTests.plain
            case .gzip: FramingTests.gzip
            case .deflate: FramingTests.deflate
            case .raw: Array(FramingTests.deflate.dropFirst(2).dropLast(4))
            }
        }

        var field: String { "Content-Encoding: \(self == .raw ? "deflate" : rawValue)\r\n" }
    }

    /// The framing that tells the end of a body.
    enum Framing: CaseIterable {
        case untilClose, length, chunks

        func head(_ coding: Coding) -> [UInt8] {
            switch self {
            case .untilClose: Say.stream("", coding.field)
            case .length:
                Say.stream("", coding.field + "Content-Length: \(coding.bytes.count)\r\n")
            case .chunks: Say.stream("", coding.field + "Transfer-Encoding: chunked\r\n")
            }
        }

        func body(_ coding: Coding) -> [UInt8] {
            guard self == .chunks else { return coding.bytes }
            // Chunks of 1, 2, 3 ... bytes.
            var left = coding.bytes[...]
            var body: [UInt8] = []
            var size = 1
            while !left.isEmpty {
                let chunk = left.prefix(size)
                body += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
                left = left.dropFirst(size)
                size += 1
            }
            return body + Array("0\r\n\r\n".utf8)
        }
    }

    @Test(
        "Each framing with each coding, in pieces of each size",
        arguments: Framing.allCases,
        Coding.allCases
    )
    func pieces(_ framing: Framing, _ coding: Coding) async throws {
        guard coding == .identity || HTTPContentDecoder.acceptedCodings != nil else {
            // Without zlib the client offers no other coding.
            return
        }
        let bytes = framing.head(coding) + framing.body(coding)
        for size in [1, 2, 3, 5, 7, 11, 16, 64, bytes.count] {
            let server = HTTPServer([.open([])])
            let transport = try server.transport { $0.reconnection = .never }
            async let opening = Provider<StreamEntry>(transport: transport).messages(.listen())
            try await waitUntil { !server.requests.isEmpty }
            for start in stride(from: 0, to: bytes.count, by: size) {
                server.send(Array(bytes[start..<min(start + size, bytes.count)]), on: 0)
            }
            server.endOfStream()
            var heard: [String?] = []
            for try await message in try await opening { heard.append(message.text) }
            #expect(heard == ["a", "b"], "pieces of \(size)")
            await transport.shutdown()
        }
    }
}
