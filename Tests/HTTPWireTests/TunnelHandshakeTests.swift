import HTTPWire
import Testing
import WireCore
import WireTestSupport

/// CONNECT from the client's side (RFC 9110, 9.3.6).
@Suite("HTTP tunnel handshake") struct TunnelHandshakeTests {
    private typealias Outcome = HTTPTunnelHandshake.Outcome

    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        /// The proxy's bytes, up to the byte that decides the outcome.
        var answer: String
        var outcome: HTTPTunnelHandshake.Outcome

        var isNoHTTP: Bool { name == "garbage" }

        var testDescription: String { name }
    }

    private static func refused(
        _ status: Int,
        _ reason: String,
        _ headers: HTTPHeaders = [:],
        body: String = ""
    ) -> Outcome {
        .refused(
            HTTPResponseHead(status: status, reason: reason, headers: headers),
            body: Array(body.utf8)
        )
    }

    static let rows = [
        Row(name: "200", answer: "HTTP/1.1 200 OK\r\n\r\n", outcome: .open),
        Row(
            name: "200 of an old proxy",
            answer: "HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n",
            outcome: .open
        ),
        Row(name: "any 2xx", answer: "HTTP/1.1 299 \r\n\r\n", outcome: .open),
        Row(
            name: "2xx with a length and a coding, which count for nothing",
            answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: br\r\n\r\n",
            outcome: .open
        ),
        Row(
            name: "interim answers first",
            answer:
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nA: b\r\n\r\nHTTP/1.1 200 \r\n\r\n",
            outcome: .open
        ),
        Row(
            name: "407 with a body",
            answer:
                "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 3\r\n\r\nwho",
            outcome: refused(
                407,
                "No",
                ["Proxy-Authenticate": "Basic", "Content-Length": "3"],
                body: "who"
            )
        ),
        Row(
            name: "502 in chunks",
            answer: "HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            outcome: refused(502, "Bad", ["Transfer-Encoding": "chunked"], body: "no")
        ),
        Row(
            name: "a redirect, which is not followed",
            answer: "HTTP/1.1 302 \r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            outcome: refused(302, "", ["Location": "/", "Content-Length": "0"])
        ),
        Row(
            name: "a switch of protocols without a request for it",
            answer: "HTTP/1.1 101 \r\nUpgrade: x\r\n\r\n",
            outcome: refused(101, "", ["Upgrade": "x"])
        ),
        Row(
            name: "a body that breaks its coding: as far as it came",
            answer: "HTTP/1.1 403 \r\nTransfer-Encoding: chunked\r\n\r\n2\r\nnoxx",
            outcome: refused(403, "", ["Transfer-Encoding": "chunked"], body: "no")
        ),
        Row(
            name: "garbage",
            answer: "SSH-2.0-x\r\n\r\n",
            outcome: .violation(.malformedStatusLine)
        ),
        Row(
            name: "another version",
            answer: "HTTP/2 200 OK\r\n\r\n",
            outcome: .violation(.unsupportedVersion)
        ),
        Row(
            name: "a refusal with an impossible length",
            answer: "HTTP/1.1 403 \r\nContent-Length: x\r\n\r\n",
            outcome: .violation(.invalidContentLength)
        ),
    ]

    private static func handshake(
        _ headers: HTTPHeaders = [:]
    ) throws(HTTPEncodingError) -> HTTPTunnelHandshake {
        var handshake = try HTTPTunnelHandshake(to: "h:1", headers: headers)
        handshake.outbound.removeAll()
        return handshake
    }

    @Test("Each answer, cut at every byte, with what follows left to the tunnel", arguments: rows)
    func answers(row: Row) throws {
        let answer = Array(row.answer.utf8)
        let behind = Array("\r\nbehind".utf8)
        for split in 0...answer.count {
            var handshake = try Self.handshake()
            var buffer = ReceiveBuffer(capacity: 16)
            buffer.append(answer[..<split])
            handshake.receive(&buffer)
            if split < answer.count, !row.isNoHTTP {
                #expect(handshake.outcome == nil, "decided at \(split)")
            }
            buffer.append(answer[split...] + behind)
            handshake.receive(&buffer)
            #expect(handshake.outcome == row.outcome, "split at \(split)")
            if row.outcome == .open {
                #expect(buffer.slice(at: 0, count: buffer.count).bytes == behind)
            }
        }
        var handshake = try Self.handshake()
        var buffer = ReceiveBuffer(capacity: 16)
        for (index, byte) in answer.enumerated() {
            // What is no HTTP is refused at its first byte.
            #expect(handshake.outcome == nil || row.isNoHTTP && index > 0)
            buffer.append([byte])
            handshake.receive(&buffer)
        }
        #expect(handshake.outcome == row.outcome)
    }

    @Test("The request names the far end twice and carries further fields")
    func request() throws {
        let plain = try HTTPTunnelHandshake(to: "broker.example:1883")
        #expect(
            String(decoding: plain.outbound.bytes, as: UTF8.self)
                == "CONNECT broker.example:1883 HTTP/1.1\r\nHost: broker.example:1883\r\n\r\n"
        )
        let rich = try HTTPTunnelHandshake(
            to: "[::1]:443",
            headers: ["Proxy-Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]
        )
        #expect(
            String(decoding: rich.outbound.bytes, as: UTF8.self)
                == """
                CONNECT [::1]:443 HTTP/1.1\r
                Host: [::1]:443\r
                Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r
                \r

                """
        )
    }

    @Test("What cannot be sent is refused")
    func invalid() {
        #expect(throws: HTTPEncodingError.invalidTarget) { try HTTPTunnelHandshake(to: "a b:1") }
        #expect(throws: HTTPEncodingError.invalidTarget) { try HTTPTunnelHandshake(to: "é:1") }
        #expect(throws: HTTPEncodingError.invalidFieldName("a b")) {
            try HTTPTunnelHandshake(to: "h:1", headers: ["a b": "c"])
        }
        #expect(throws: HTTPEncodingError.invalidFieldValue(name: "a")) {
            try HTTPTunnelHandshake(to: "h:1", headers: ["a": "b\r\nc: d"])
        }
    }

    @Test("The end of the stream, and the timeout, count together with the received bytes")
    func ends() throws {
        var nothing = try Self.handshake()
        nothing.giveUp()
        #expect(nothing.outcome == nil)
        nothing.receiveEndOfStream()
        #expect(nothing.outcome == .endOfStream)
        for givesUp in [false, true] {
            var handshake = try Self.handshake()
            var buffer = ReceiveBuffer()
            buffer.append("HTTP/1.1 503 Busy\r\n\r\nla".utf8)
            handshake.receive(&buffer)
            #expect(handshake.outcome == nil)
            if givesUp { handshake.giveUp() } else { handshake.receiveEndOfStream() }
            #expect(handshake.outcome == Self.refused(503, "Busy", body: "la"))
        }
    }

    @Test("No head, no row of interim heads and no body is kept beyond its limit")
    func limits() throws {
        var handshake = try HTTPTunnelHandshake(
            to: "h:1",
            limits: HTTPHeadLimits(byteCount: 64, fieldCount: 2)
        )
        var buffer = ReceiveBuffer()
        buffer.append("HTTP/1.1 200 \(String(repeating: "x", count: 64))".utf8)
        handshake.receive(&buffer)
        #expect(handshake.outcome == .violation(.headTooLarge(maximum: 64)))

        var interim = try Self.handshake()
        buffer = ReceiveBuffer()
        buffer.append(String(repeating: "HTTP/1.1 100 \r\n\r\n", count: 17).utf8)
        interim.receive(&buffer)
        #expect(interim.outcome == .violation(.tooManyFields(maximum: 16)))

        var long = try Self.handshake()
        buffer = ReceiveBuffer()
        let limit = HTTPTunnelHandshake.maximumRefusalBody
        let body = String(repeating: "x", count: limit)
        buffer.append("HTTP/1.1 500 \r\n\r\n\(body)y".utf8)
        long.receive(&buffer)
        #expect(long.outcome == Self.refused(500, "", body: body))
    }

    @Test("Base 64 with its worked examples (RFC 4648, 10)")
    func base64() {
        let rows = [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
        ]
        for (plain, text) in rows { #expect(Base64.encode(Array(plain.utf8)) == text) }
    }
}
