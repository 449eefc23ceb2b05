import HTTPWire
import Testing
import WireCore
import WireTestSupport

/// Bodies and how a reader finds their end (RFC 9112, 6 and 7).
@Suite("HTTP bodies") struct BodyTests {
    struct Body: Equatable {
        var text = ""
        var trailers: HTTPHeaders?
        var left = 0
    }

    /// Decodes the pieces one by one. With `endsStream`, the stream ends after the last one.
    private func decode(
        _ framing: HTTPBodyFraming,
        _ pieces: [[UInt8]],
        endsStream: Bool = false
    ) throws -> Body {
        var decoder = HTTPBodyDecoder(framing, trailerLimits: HTTPHeadLimits(byteCount: 64))
        var buffer = ReceiveBuffer()
        var body = Body()
        var bytes: [UInt8] = []
        func take(_ part: HTTPBodyDecoder.Part?) {
            switch part {
            case .bytes(let slice): bytes += slice.bytes
            case .end(let trailers): body.trailers = trailers
            case nil: break
            }
        }
        for piece in pieces + [[]] {
            buffer.append(piece)
            while let part = try decoder.next(&buffer) { take(part) }
        }
        if endsStream { take(try decoder.receiveEndOfStream()) }
        body.text = String(decoding: bytes, as: UTF8.self)
        body.left = buffer.count
        return body
    }

    static let bodies: [(HTTPBodyFraming, String, Body)] = [
        (.length(5), "helloHTTP", Body(text: "hello", trailers: [:], left: 4)),
        (.length(0), "", Body(text: "", trailers: [:])),
        (.chunked, "5\r\nhello\r\n0\r\n\r\n", Body(text: "hello", trailers: [:])),
        (
            .chunked, "A;name=\"x\"\r\n0123456789\r\n00b ; y\r\nabcdefghijk\r\n0\r\n\r\nrest",
            Body(text: "0123456789abcdefghijk", trailers: [:], left: 4)
        ),
        (
            .chunked,
            "aB\r\n\(String(repeating: "x", count: 171))\r\n000000000000001\r\ny\r\n00\r\n\r\n",
            Body(text: String(repeating: "x", count: 171) + "y", trailers: [:])
        ),
        (.chunked, "1\r\na\r\n0\r\nX: y\n\n", Body(text: "a", trailers: ["X": "y"])),
    ]

    @Test("Bodies, whole, byte by byte and split anywhere", arguments: bodies)
    func table(_ framing: HTTPBodyFraming, _ text: String, _ body: Body) throws {
        let bytes = Array(text.utf8)
        #expect(try decode(framing, [bytes]) == body)
        #expect(try decode(framing, bytes.map { [$0] }) == body)
        for split in 0...bytes.count {
            let pieces = [Array(bytes[..<split]), Array(bytes[split...])]
            #expect(try decode(framing, pieces) == body)
        }
    }

    @Test("A body without a length lasts until the connection ends")
    func untilClose() throws {
        let body = try decode(.untilClose, [Array("ab".utf8), Array("c".utf8)], endsStream: true)
        #expect(body == Body(text: "abc", trailers: [:]))
        let open = try decode(.untilClose, [Array("ab".utf8)])
        #expect(open == Body(text: "ab"))
    }

    @Test(
        "A body cut short is told apart",
        arguments: [
            (HTTPBodyFraming.length(3), "ab"), (.chunked, ""), (.chunked, "3\r\nab"),
            (.chunked, "2\r\nab\r\n"), (.chunked, "2\r\nab\r\n0\r\n"),
        ]
    )
    func incomplete(_ framing: HTTPBodyFraming, _ text: String) {
        #expect(throws: HTTPViolation.incompleteBody) {
            try decode(framing, [Array(text.utf8)], endsStream: true)
        }
    }

    @Test(
        "Chunks that break the rules are refused",
        arguments: [
            ("g\r\n", HTTPViolation.malformedChunk), ("\r\n", .malformedChunk),
            ("-1\r\n", .malformedChunk), ("1 2\r\n", .malformedChunk),
            ("1000000000000000\r\n", .malformedChunk), ("0000000000000001\r\n", .malformedChunk),
            ("1\r\nab\r\n", .malformedChunk),
            ("1\na\r\n", .malformedChunk), ("1;x\na\r\n", .malformedChunk),
            ("1\r\na\n0\r\n\r\n", .malformedChunk), ("1\r\na\r\n0\n\r\n", .malformedChunk),
            ("1\r\na\rb", .malformedChunk), ("1;x\u{0}\r\n", .malformedChunk),
            (String(repeating: "1", count: 5_000), .malformedChunk),
            ("0\r\nX\r\n\r\n", .malformedField),
            ("0\r\n" + String(repeating: "A: b\r\n", count: 20), .headTooLarge(maximum: 64)),
        ]
    )
    func chunkRefusals(_ text: String, _ violation: HTTPViolation) {
        #expect(throws: violation) { try decode(.chunked, [Array(text.utf8)]) }
    }

    @Test("What a head says about its body (RFC 9112, 6.3)")
    func framing() throws {
        let rows: [(Int, HTTPHeaders, String, HTTPBodyFraming)] = [
            (200, [:], "GET", .untilClose),
            (200, ["Content-Length": "12"], "GET", .length(12)),
            (200, ["Content-Length": "12", "content-length": "12"], "GET", .length(12)),
            (200, ["Content-Length": "12, 12"], "GET", .length(12)),
            (200, ["Transfer-Encoding": "Chunked"], "GET", .chunked),
            (204, ["Content-Length": "12"], "GET", .length(0)),
            (304, [:], "GET", .length(0)),
            (101, ["Content-Length": "1"], "GET", .length(0)),
            (200, ["Content-Length": "12"], "HEAD", .length(0)),
        ]
        for (status, headers, method, expected) in rows {
            let head = HTTPResponseHead(status: status, headers: headers)
            #expect(try HTTPBodyFraming(head, to: method) == expected)
        }
        let refusals: [(HTTPHeaders, HTTPViolation)] = [
            (["Content-Length": "1", "content-length": "2"], .invalidContentLength),
            (["Content-Length": "-1"], .invalidContentLength),
            (["Content-Length": "+1"], .invalidContentLength),
            (["Content-Length": ""], .invalidContentLength),
            (["Content-Length": "9999999999999999999"], .invalidContentLength),
            (["Transfer-Encoding": "chunked", "Content-Length": "3"], .invalidContentLength),
            (["Content-Length": "3", "transfer-encoding": "chunked"], .invalidContentLength),
            (["Transfer-Encoding": "gzip, chunked"], .unsupportedTransferCoding),
            (["Transfer-Encoding": "identity"], .unsupportedTransferCoding),
        ]
        for (headers, violation) in refusals {
            let head = HTTPResponseHead(status: 200, headers: headers)
            #expect(throws: violation) { try HTTPBodyFraming(head) }
        }
    }

    @Test("Mutated heads and bodies end in a value, a request for more or a violation")
    func mutations() async {
        let seeds = HeadTests.responses.map { Array($0.0.utf8) }
        let bodies = Self.bodies.map { Array($0.1.utf8) }
        let count = Mutations.count
        await Mutations.run(seeds, count: count / 2, seed: 0x9112) { bytes in
            var decoder = HTTPHeadDecoder(limits: HTTPHeadLimits(byteCount: 256, fieldCount: 8))
            var buffer = ReceiveBuffer(capacity: 16)
            buffer.append(bytes)
            if let head = try? decoder.nextResponse(&buffer) { _ = try? HTTPBodyFraming(head) }
        }
        await Mutations.run(bodies, count: count / 2, seed: 0x9110) { bytes in
            var decoder = HTTPBodyDecoder(.chunked)
            var buffer = ReceiveBuffer(capacity: 16)
            buffer.append(bytes)
            var total = 0
            while let part = try? decoder.next(&buffer), case .bytes(let slice) = part {
                total += slice.count
            }
            #expect(total <= bytes.count)
        }
    }
}
