import HTTPWire
import Testing
import WireCore
import WireTestSupport

/// Heads of responses and requests (RFC 9112, 2 to 5).
@Suite("HTTP heads") struct HeadTests {
    static let responses: [(String, HTTPResponseHead)] = [
        ("HTTP/1.1 200 OK\r\n\r\n", HTTPResponseHead(status: 200, reason: "OK")),
        ("HTTP/1.1 204\r\n\r\n", HTTPResponseHead(status: 204)),
        ("HTTP/1.1 204 \r\n\r\n", HTTPResponseHead(status: 204)),
        (
            "HTTP/1.0 404 Not Found Here\nServer: x\n\n",
            HTTPResponseHead(
                status: 404,
                reason: "Not Found Here",
                headers: ["Server": "x"],
                isVersion1_0: true
            )
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection:Upgrade\r\n\r\n",
            HTTPResponseHead(
                status: 101,
                reason: "Switching Protocols",
                headers: ["Upgrade": "websocket", "Connection": "Upgrade"]
            )
        ),
        (
            "HTTP/1.1 200 OK\r\nA: \t padded \t\r\nB:\r\nA: again\r\nC: a:b, \"c\"\r\n\r\n",
            HTTPResponseHead(
                status: 200,
                reason: "OK",
                headers: ["A": "padded", "B": "", "A": "again", "C": "a:b, \"c\""]
            )
        ),
        (
            "HTTP/1.1 200 OK\r\nX: h\u{E9}\r\n\r\n",
            HTTPResponseHead(status: 200, reason: "OK", headers: ["X": "h\u{E9}"])
        ),
    ]

    @Test("Responses, in every way that a network may deliver them")
    func responseTable() {
        let verifier = DecoderVerifier<HTTPResponseHead> {
            var decoder = HTTPHeadDecoder()
            return { try decoder.nextResponse(&$0) }
        }
        #expect(verifier.verify(Self.responses.map { (Array($0.0.utf8), $0.1) }) == [])
    }

    @Test("Marks that join the space or comma before them are bytes like others (RFC 9112, 2.2)")
    func oddBytes() throws {
        var buffer = ReceiveBuffer()
        buffer.append("HTTP/1.1 200 \u{301}OK\r\nA: \u{301}b \r\nC: d,\u{301}e\r\n\r\n".utf8)
        buffer.append("HTTP/1.1 200 OK\r\nA: ".utf8)
        buffer.append([0xFF, 0x20, 0xC3, 0x0D, 0x0A, 0x0D, 0x0A])
        var decoder = HTTPHeadDecoder()
        let first = try #require(try decoder.nextResponse(&buffer))
        #expect(first.status == 200)
        #expect(first.reason == "\u{301}OK")
        #expect(first.headers.first("a") == "\u{301}b")
        #expect(first.headers.members("c") == ["d", "\u{301}e"])
        let second = try #require(try decoder.nextResponse(&buffer))
        #expect(second.headers.first("a") == "\u{FF} \u{C3}")
    }

    @Test("White space before the first field is not skipped (RFC 9112, 2.2)")
    func spaceBeforeFields() {
        for space in [" ", "\t"] {
            var decoder = HTTPHeadDecoder()
            var buffer = ReceiveBuffer()
            buffer.append("HTTP/1.1 200 OK\r\n\(space)A: b\r\n\r\n".utf8)
            #expect(throws: HTTPViolation.obsoleteLineFolding) {
                try decoder.nextResponse(&buffer)
            }
        }
    }

    @Test("Requests, written and read in every way that a network may deliver them")
    func requestTable() throws {
        let requests = [
            HTTPRequestHead(method: "GET", target: "/"),
            HTTPRequestHead(
                method: "POST",
                target: "/a?b=c",
                headers: ["Host": "h", "X-Y": "1 2"]
            ),
        ]
        let rows = try requests.map { request in
            var writer = ByteWriter()
            try request.encode(into: &writer)
            return (writer.bytes, request)
        }
        #expect(
            String(decoding: rows[1].0, as: UTF8.self)
                == "POST /a?b=c HTTP/1.1\r\nHost: h\r\nX-Y: 1 2\r\n\r\n"
        )
        let verifier = DecoderVerifier<HTTPRequestHead> {
            var decoder = HTTPHeadDecoder()
            return { try decoder.nextRequest(&$0) }
        }
        #expect(verifier.verify(rows) == [])
    }

    @Test("Empty lines before a request are skipped (RFC 9112, 2.2)")
    func emptyLinesBeforeRequest() throws {
        var buffer = ReceiveBuffer()
        buffer.append("\r\n\r\nGET / HTTP/1.1\r\n\r\n".utf8)
        var decoder = HTTPHeadDecoder()
        #expect(try decoder.nextRequest(&buffer) == HTTPRequestHead(method: "GET", target: "/"))
    }

    @Test("A response is written as it is read")
    func responseEncoding() throws {
        var writer = ByteWriter()
        try HTTPResponseHead(status: 426, reason: "Upgrade Required", headers: ["A": "b"])
            .encode(into: &writer)
        #expect(
            String(decoding: writer.bytes, as: UTF8.self)
                == "HTTP/1.1 426 Upgrade Required\r\nA: b\r\n\r\n"
        )
    }

    static let refusals: [(String, HTTPViolation)] = [
        (
            "HTTP/1.1 200 OK\r\nA: " + String(repeating: "x", count: 300),
            .headTooLarge(maximum: 256)
        ),
        (
            "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 6) + "\r\n",
            .tooManyFields(maximum: 5)
        ),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        ("ICY 200 OK\r\n\r\n", .malformedStatusLine),
        ("SSH-2.0-without an end", .malformedStatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 600 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 2a0 OK\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1\r\n\r\n", .malformedStatusLine),
        ("HTTP/1.1 200 O\u{1}K\r\n\r\n", .malformedStatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n", .unsupportedVersion),
        (
            "HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", .unsupportedVersion
        ),
        ("HTTP/1.1 200 OK\r\nNo colon\r\n\r\n", .malformedField),
        ("HTTP/1.1 200 OK\r\n: empty\r\n\r\n", .malformedField),
        ("HTTP/1.1 200 OK\r\nA : space\r\n\r\n", .malformedField),
        ("HTTP/1.1 200 OK\r\nA: \u{0}\r\n\r\n", .invalidFieldValue),
        ("HTTP/1.1 200 OK\r\nA: b\u{7F}\r\n\r\n", .invalidFieldValue),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", .obsoleteLineFolding),
        ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", .bareCarriageReturn),
    ]

    @Test("What is no response is refused, and stays refused", arguments: refusals)
    func refusal(_ text: String, _ violation: HTTPViolation) {
        for pieces in [[Array(text.utf8)], text.utf8.map { [$0] }] {
            var decoder = HTTPHeadDecoder(limits: HTTPHeadLimits(byteCount: 256, fieldCount: 5))
            var buffer = ReceiveBuffer()
            var found: HTTPViolation?
            for piece in pieces where found == nil {
                buffer.append(piece)
                do throws(HTTPViolation) { _ = try decoder.nextResponse(&buffer) } catch {
                    found = error
                }
            }
            #expect(found == violation)
            #expect(throws: violation) { try decoder.nextResponse(&buffer) }
        }
    }

    @Test(
        "What is no request is refused",
        arguments: [
            ("GET /\r\n\r\n", HTTPViolation.malformedRequestLine),
            ("GET  / HTTP/1.1\r\n\r\n", .malformedRequestLine),
            ("G(T / HTTP/1.1\r\n\r\n", .malformedRequestLine),
            ("GET /\u{E9} HTTP/1.1\r\n\r\n", .malformedRequestLine),
            ("GET / FTP/1.1\r\n\r\n", .malformedRequestLine),
            ("GET / HTTP/3\r\n\r\n", .unsupportedVersion),
        ]
    )
    func requestRefusal(_ text: String, _ violation: HTTPViolation) {
        var decoder = HTTPHeadDecoder()
        var buffer = ReceiveBuffer()
        buffer.append(text.utf8)
        #expect(throws: violation) { try decoder.nextRequest(&buffer) }
    }

    @Test("What cannot be sent is refused and leaves nothing behind")
    func encodingErrors() {
        let rows: [(HTTPRequestHead, HTTPEncodingError)] = [
            (HTTPRequestHead(method: "G T", target: "/"), .invalidMethod),
            (HTTPRequestHead(method: "GET", target: ""), .invalidTarget),
            (HTTPRequestHead(method: "GET", target: "/a b"), .invalidTarget),
            (HTTPRequestHead(method: "GET", target: "/\r\nX: y"), .invalidTarget),
            (
                HTTPRequestHead(method: "GET", target: "/", headers: ["A b": "c"]),
                .invalidFieldName("A b")
            ),
            (
                HTTPRequestHead(method: "GET", target: "/", headers: ["A": "c\r\nX: y"]),
                .invalidFieldValue(name: "A")
            ),
        ]
        for (head, error) in rows {
            var writer = ByteWriter()
            #expect(throws: error) { try head.encode(into: &writer) }
            #expect(writer.isEmpty)
        }
    }

    @Test("Names are compared without case, lists are joined over fields")
    func lists() {
        let headers: HTTPHeaders = ["Connection": "keep-alive, Upgrade", "connection": " , x"]
        #expect(headers.members("CONNECTION") == ["keep-alive", "Upgrade", "x"])
        #expect(headers.contains("connection", member: "upgrade"))
        #expect(!headers.contains("connection", member: "up"))
        #expect(headers.first("none") == nil)
    }
}
