import HTTPWire
import Testing
import WireCore
import WireTestSupport

/// The server's end of a connection (RFC 9112).
@Suite("HTTP server connection") struct ServerConnectionTests {
    /// A server core and the events that it has returned.
    private struct Server {
        var core: HTTPServerConnection
        var events: [HTTPServerConnection.Event] = []
        var now = WireInstant.zero

        init(body: Int = 16, head: HTTPHeadLimits = HTTPHeadLimits(byteCount: 256)) {
            core = HTTPServerConnection(
                limits: .init(head: head, bodyByteCount: body),
                requestTimeout: .seconds(10),
                at: .zero
            )
        }

        mutating func receive(_ text: String, byByte: Bool = false) {
            var buffer = ReceiveBuffer()
            for piece in byByte ? text.utf8.map({ [$0] }) : [Array(text.utf8)] {
                buffer.append(piece)
                core.receive(&buffer, at: now)
                events += core.takeEvents()
            }
        }

        var written: String {
            mutating get { String(decoding: core.outbound.takeBytes(), as: UTF8.self) }
        }

        var requests: [String] {
            events.compactMap { event in
                guard case .request(let head, let body) = event else { return nil }
                return "\(head.method) \(head.target) \(String(decoding: body, as: UTF8.self))"
            }
        }

        var closure: HTTPServerClosure? {
            guard case .closed(let closure)? = events.last else { return nil }
            return closure
        }
    }

    @Test(
        "Requests are told whole, one after another, however they come",
        arguments: [true, false]
    )
    func requests(byByte: Bool) throws {
        var server = Server()
        server.receive(
            """
            POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\
            PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
            GET /c HTTP/1.1\r\nHost: h\r\n\r\n
            """,
            byByte: byByte
        )
        #expect(server.requests == ["POST /a hello"])
        try server.core.respond(HTTPResponseHead(status: 200), body: Array("ok".utf8), at: .zero)
        #expect(server.written == "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok")
        server.receive("")
        #expect(server.requests == ["POST /a hello", "PUT /b hi"])
        try server.core.respond(HTTPResponseHead(status: 204), at: .zero)
        #expect(server.written == "HTTP/1.1 204 \r\n\r\n")
        server.receive("")
        #expect(server.requests.last == "GET /c ")
        #expect(!server.core.isFinished)
    }

    @Test("Nothing is answered that was not asked")
    func notAsked() throws {
        var server = Server()
        #expect(throws: HTTPResponseError.notAsked) {
            try server.core.respond(HTTPResponseHead(status: 200), at: .zero)
        }
        server.receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(throws: HTTPResponseError.self) {
            try server.core.respond(
                HTTPResponseHead(status: 200, headers: ["X": "a\r\nb"]),
                at: .zero
            )
        }
        #expect(server.written.isEmpty)
        try server.core.respond(HTTPResponseHead(status: 200), at: .zero)
        #expect(throws: HTTPResponseError.notAsked) {
            try server.core.respond(HTTPResponseHead(status: 200), at: .zero)
        }
    }

    @Test("A stream goes out in chunks, and the next request follows its end")
    func stream() throws {
        var server = Server()
        server.receive("GET /s HTTP/1.1\r\nHost: h\r\n\r\n")
        try server.core.beginStream(HTTPResponseHead(status: 200), at: .zero)
        server.core.stream(Array("0123456789abcdef".utf8))
        server.core.stream([UInt8]())
        #expect(
            server.written == "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"
                + "10\r\n0123456789abcdef\r\n"
        )
        server.receive("GET /t HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(server.requests.count == 1 && server.core.isStreaming)
        server.core.endStream(at: .zero)
        #expect(server.written == "0\r\n\r\n")
        server.receive("")
        #expect(server.requests.last == "GET /t ")
    }

    @Test("A client of HTTP/1.0 hears until the end; so does one that closes")
    func lastResponses() throws {
        var old = Server()
        old.receive("GET / HTTP/1.0\r\n\r\n")
        try old.core.beginStream(HTTPResponseHead(status: 200), at: .zero)
        old.core.stream(Array("x".utf8))
        old.core.endStream(at: .zero)
        #expect(old.written == "HTTP/1.1 200 \r\nConnection: close\r\n\r\nx")
        #expect(old.core.isFinished)

        var closing = Server()
        closing.receive("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n")
        try closing.core.respond(HTTPResponseHead(status: 200), at: .zero)
        #expect(
            closing.written == "HTTP/1.1 200 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        closing.receive("")
        #expect(closing.core.isFinished && closing.closure == .closed)
    }

    @Test("HEAD has the fields and no body")
    func head() throws {
        var server = Server()
        server.receive("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        try server.core.respond(HTTPResponseHead(status: 200), body: Array("abc".utf8), at: .zero)
        #expect(server.written == "HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\n")
        server.receive("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        try server.core.beginStream(HTTPResponseHead(status: 200), at: .zero)
        #expect(!server.core.isStreaming)
    }

    @Test("A request that expects 100 (Continue) gets it")
    func expectation() {
        var server = Server()
        server.receive(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"
        )
        #expect(server.written == "HTTP/1.1 100 Continue\r\n\r\n")
        server.receive("x")
        #expect(server.requests == ["POST / x"])
    }

    static let refusals: [(String, Int, HTTPServerClosure)] = [
        ("rubbish\r\n\r\n", 400, .violation(.malformedRequestLine)),
        ("GET / HTTP/1.1\r\n\r\n", 400, .violation(.malformedField)),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, .violation(.malformedField)),
        ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400, .violation(.obsoleteLineFolding)),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, .violation(.unsupportedVersion)),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "x", count: 256), 431,
            .violation(.headTooLarge(maximum: 256))
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n", 413,
            .bodyTooLarge(maximum: 16)
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n"
                + String(repeating: "x", count: 17), 413, .bodyTooLarge(maximum: 16)
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400,
            .violation(.invalidContentLength)
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400, .violation(.invalidContentLength)
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501,
            .violation(.unsupportedTransferCoding)
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400,
            .violation(.malformedChunk)
        ),
    ]

    @Test("What is no sound request is answered so, and ends the connection", arguments: refusals)
    func refusal(text: String, status: Int, closure: HTTPServerClosure) {
        for byByte in [false, true] {
            var server = Server()
            server.receive(text, byByte: byByte)
            #expect(server.closure == closure, "\(text)")
            #expect(
                server.written
                    == "HTTP/1.1 \(status) \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            #expect(server.core.isFinished && server.requests.isEmpty)
            server.receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A request has its time from its first byte on; between requests there is none")
    func time() throws {
        var server = Server()
        #expect(server.core.deadline == .zero.advanced(by: .seconds(10)))
        server.receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(server.core.deadline == nil)
        try server.core.respond(HTTPResponseHead(status: 200), at: .zero)
        #expect(server.core.deadline == nil)
        server.now = .zero.advanced(by: .seconds(50))
        server.receive("GET")
        #expect(server.core.deadline == .zero.advanced(by: .seconds(60)))
        _ = server.written
        server.core.advance(to: .zero.advanced(by: .seconds(60)))
        #expect(server.written.hasPrefix("HTTP/1.1 408 "))
        #expect(server.core.isFinished)
    }

    @Test("Mutated requests are told, refused or waited for; nothing is kept beyond the limits")
    func mutated() async {
        let seeds = [
            "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
            "PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "GET /c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /d HTTP/1.0\r\n\r\n",
        ].map { Array($0.utf8) }
        var requests = 0
        var refusals = 0
        await Mutations.run(seeds, count: Mutations.count, seed: 7) { bytes in
            var core = HTTPServerConnection(
                limits: .init(head: HTTPHeadLimits(byteCount: 256), bodyByteCount: 16),
                requestTimeout: .seconds(10),
                at: .zero
            )
            var buffer = ReceiveBuffer()
            buffer.append(bytes)
            core.receive(&buffer, at: .zero)
            for event in core.takeEvents() {
                switch event {
                case .request(_, let body):
                    requests += 1
                    #expect(body.count <= 16)
                    try? core.respond(HTTPResponseHead(status: 200), at: .zero)
                case .closed: refusals += 1
                }
            }
        }
        #expect(requests > Mutations.count / 20 && refusals > Mutations.count / 20)
    }

    @Test("What comes before an answer is bounded")
    func eager() {
        var server = Server()
        server.receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        for _ in 0..<3 { server.receive(String(repeating: "x", count: 100)) }
        #expect(server.closure == .tooEager)
        var gone = Server()
        gone.core.receiveEndOfStream(at: .zero)
        gone.receive("")
        #expect(gone.core.isFinished)
    }
}
