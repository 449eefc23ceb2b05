import HTTPWire
import Testing
import WireCore
import WireTestSupport

/// One request after another on a connection (RFC 9112, 9).
@Suite("HTTP client connection") struct ClientConnectionTests {
    private struct Harness {
        var core = HTTPClientConnection(idleTimeout: .seconds(20))
        var buffer = ReceiveBuffer()
        var now = WireInstant.zero

        mutating func send(_ method: String = "GET", _ body: String = "") throws(HTTPRequestError) {
            let head = HTTPRequestHead(method: method, target: "/", headers: ["Host": "h"])
            try core.send(head, body: Array(body.utf8), timeout: .seconds(10), at: now)
        }

        mutating func receive(_ text: String) {
            buffer.append(text.utf8)
            core.receiveAll(&buffer, at: now)
        }

        mutating func advance(_ duration: Duration) {
            now = now.advanced(by: duration)
            core.advance(to: now)
        }

        mutating func sent() -> String {
            String(decoding: core.outbound.takeBytes(), as: UTF8.self)
        }

        mutating func events() -> [HTTPClientConnection.Event] { core.takeEvents() }
    }

    private static func end(_ isReusable: Bool) -> HTTPClientConnection.Event {
        .end(trailers: [:], isReusable: isReusable)
    }

    @Test("The length of a body is said, also of none where a body is usual")
    func lengths() throws {
        var harness = Harness()
        try harness.send("GET")
        #expect(harness.sent() == "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        var post = Harness()
        try post.send("POST")
        #expect(post.sent() == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
        var full = Harness()
        try full.send("PUT", "é")
        #expect(full.sent() == "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\né")
    }

    @Test("A connection that is kept serves the next request; only one is under way at a time")
    func keptAlive() throws {
        var harness = Harness()
        for _ in 0..<3 {
            try harness.send()
            #expect(throws: HTTPRequestError.busy) { try harness.send() }
            harness.receive(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"
            )
            harness.receive("b")
            let events = harness.events()
            #expect(events.count == 4)
            #expect(events.last == Self.end(true))
            #expect(harness.core.isIdle)
        }
    }

    @Test("Connections that the response ends are not used again")
    func notKept() throws {
        for (fields, isReusable) in [
            ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", true),
        ] {
            var harness = Harness()
            try harness.send()
            harness.receive(fields)
            #expect(harness.events().contains(Self.end(isReusable)))
            #expect(harness.core.isFinished != isReusable)
        }
        var harness = Harness()
        try harness.send()
        harness.receive("HTTP/1.1 200 OK\r\n\r\nabc")
        harness.core.receiveEndOfStream(at: .zero)
        #expect(harness.events().suffix(2) == [Self.end(false), .closed(.closed)])
        var broken = Harness()
        try broken.send()
        broken.receive("HTTP/1.1 200 OK\r\n\r\nabc")
        broken.core.receiveLoss(at: .zero)
        let events = broken.events()
        #expect(events.last == .closed(.endOfStream))
        #expect(!events.contains(Self.end(false)))
    }

    @Test("Responses without a request, invalid ones and incomplete ones end the connection")
    func faults() throws {
        var harness = Harness()
        harness.receive("HTTP/1.1 200 OK\r\n\r\n")
        #expect(harness.events() == [.closed(.unexpectedResponse)])
        var broken = Harness()
        try broken.send()
        broken.receive("HTTP/1.1 2 OK\r\n\r\n")
        #expect(broken.events() == [.closed(.violation(.malformedStatusLine))])
        var cut = Harness()
        try cut.send()
        cut.receive("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
        cut.core.receiveEndOfStream(at: .zero)
        #expect(cut.events().last == .closed(.violation(.incompleteBody)))
        var silent = Harness()
        try silent.send()
        silent.core.receiveEndOfStream(at: .zero)
        #expect(silent.events() == [.closed(.endOfStream)])
        var endless = Harness()
        try endless.send()
        for _ in 0..<20 { endless.receive("HTTP/1.1 102 Processing\r\n\r\n") }
        #expect(endless.core.isFinished)
    }

    @Test("The head must come in time, and the body must not stop for too long")
    func time() throws {
        var harness = Harness()
        try harness.send()
        harness.advance(.milliseconds(9_999))
        #expect(harness.events() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.events() == [.closed(.responseTimedOut)])
        var idle = Harness()
        try idle.send()
        idle.receive("HTTP/1.1 200 OK\r\n\r\na")
        idle.advance(.seconds(19))
        idle.receive("b")
        idle.core.holdReading(true, at: idle.now)
        idle.advance(.seconds(600))
        idle.core.holdReading(false, at: idle.now)
        idle.advance(.seconds(19))
        #expect(!idle.core.isFinished)
        idle.advance(.seconds(1))
        #expect(idle.events().last == .closed(.idleTimedOut))
    }

    @Test("With WAYBILL_REQUIRE_SERVERS=1 content codings may not be skipped")
    func codingsRequired() {
        #expect(HTTPContentDecoder.acceptedCodings != nil || !TestRequirements.areRequired)
    }

    @Test(
        "Content codings are undone, whatever the pieces; what is none is told",
        .enabled(if: HTTPContentDecoder.acceptedCodings != nil, "no zlib here")
    )
    func codings() throws {
        let expected = Array("data: a\n\ndata: b\n\n".utf8)
        let rows: [(String, Hex)] = [
            (
                "gzip",
                "1F 8B 08 00 00 00 00 00 02 03 4B 49 2C 49 B4 52 48 E4 E2 4A 01 33 92 B8 B8 00 BA 59 C7 DF 12 00 00 00"
            ),
            ("deflate", "78 9C 4B 49 2C 49 B4 52 48 E4 E2 4A 01 33 92 B8 B8 00 33 88 04 D4"),
            // Raw deflate without zlib's header, as some servers send it.
            ("deflate", "4B 49 2C 49 B4 52 48 E4 E2 4A 01 33 92 B8 B8 00"),
        ]
        for (coding, hex) in rows {
            for size in 1...hex.bytes.count {
                let decoder = try #require(HTTPContentDecoder(coding: coding))
                var found: [UInt8] = []
                for start in stride(from: 0, to: hex.bytes.count, by: size) {
                    let piece = hex.bytes[start..<min(start + size, hex.bytes.count)]
                    #expect(
                        decoder.decode(ByteSlice(copying: piece)) { bytes in
                            found += bytes
                            return true
                        }
                    )
                }
                #expect(found == expected)
            }
        }
        let decoder = try #require(HTTPContentDecoder(coding: "X-GZIP"))
        #expect(!decoder.decode(ByteSlice(copying: Array("no gzip".utf8))) { _ in true })
        #expect(HTTPContentDecoder(coding: "br") == nil)
    }
}
