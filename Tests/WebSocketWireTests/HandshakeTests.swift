import HTTPWire
import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// The opening handshake (RFC 6455, 4).
@Suite("RFC 6455, 4: the opening handshake") struct HandshakeTests {
    private func request(_ harness: SocketHarness) throws -> HTTPRequestHead {
        var buffer = ReceiveBuffer()
        buffer.append(harness.core.outbound.bytes)
        var decoder = HTTPHeadDecoder()
        return try #require(try decoder.nextRequest(&buffer))
    }

    @Test("The accept key of the RFC's own example (1.3)")
    func acceptKey() {
        #expect(
            SocketHarness.acceptKey(for: "dGhlIHNhbXBsZSBub25jZQ==")
                == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        )
    }

    @Test("The request has all that 4.1 asks for, and what the caller adds")
    func requestHead() throws {
        let asked = WebSocketClientHandshake.Request(
            host: "example.com:8080",
            target: "/chat?room=1",
            subprotocols: ["chat.v2", "chat.v1"],
            headers: ["Authorization": "Bearer t", "Origin": "https://example.com"]
        )
        var configuration = SocketHarness.configuration(deflate: PermessageDeflate())
        configuration.randomWords = { Array(repeating: 0x0807_0605_0403_0201, count: $0) }
        let client = SocketHarness(
            try WebSocketConnection(connecting: asked, configuration: configuration, at: .zero)
        )
        var expected: HTTPHeaders = [
            "Host": "example.com:8080", "Upgrade": "websocket", "Connection": "Upgrade",
            "Sec-WebSocket-Key": "AQIDBAUGBwgBAgMEBQYHCA==", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "chat.v2, chat.v1",
        ]
        // The client offers compression only where the system has zlib.
        if Compression.isAvailable {
            expected.append(
                name: "Sec-WebSocket-Extensions",
                value: "permessage-deflate; client_max_window_bits"
            )
        }
        expected.append(name: "Authorization", value: "Bearer t")
        expected.append(name: "Origin", value: "https://example.com")
        #expect(
            try request(client)
                == HTTPRequestHead(method: "GET", target: "/chat?room=1", headers: expected)
        )
    }

    @Test("Requests that cannot be sent are refused before anything is")
    func requestErrors() {
        typealias Fault = WebSocketClientHandshake.RequestError
        let rows: [(WebSocketClientHandshake.Request, Fault)] = [
            (.init(host: "h", target: "/a b"), .http(.invalidTarget)),
            (.init(host: "h\r\nX: y"), .http(.invalidFieldValue(name: "Host"))),
            (.init(host: "h", headers: ["A b": "c"]), .http(.invalidFieldName("A b"))),
            (.init(host: "h", headers: ["A": "c\n"]), .http(.invalidFieldValue(name: "A"))),
            (.init(host: "h", headers: ["upgrade": "x"]), .reservedField("upgrade")),
            (
                .init(host: "h", headers: ["Sec-WebSocket-Key": "x"]),
                .reservedField("Sec-WebSocket-Key")
            ),
            (.init(host: "h", subprotocols: ["a b"]), .invalidSubprotocol("a b")),
            (.init(host: "h", subprotocols: ["a", "a"]), .invalidSubprotocol("a")),
        ]
        for (request, fault) in rows {
            #expect(throws: fault) {
                try WebSocketConnection(
                    connecting: request,
                    configuration: SocketHarness.configuration(),
                    at: .zero
                )
            }
        }
    }

    /// An answer to the harness's client, whose key is always the same.
    private func answer(
        _ fields: String,
        status: String = "101 Switching Protocols",
        subprotocols: [String] = [],
        requiresSubprotocol: Bool = false,
        deflate: PermessageDeflate? = nil
    ) throws -> [WebSocketEvent] {
        var client = try SocketHarness.connecting(
            SocketHarness.configuration(deflate: deflate),
            subprotocols: subprotocols,
            requiresSubprotocol: requiresSubprotocol
        )
        let key = client.sentHeader("Sec-WebSocket-Key") ?? ""
        let accept = SocketHarness.acceptKey(for: key)
        let text = fields.replacing("ACCEPT", with: accept)
        client.receive(Array("HTTP/1.1 \(status)\r\n\(text)\r\n".utf8))
        return client.events()
    }

    private static let good =
        "Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n"

    @Test("A good answer opens, whatever the case of its words")
    func opens() throws {
        let events = try answer(Self.good + "X: y\r\n")
        guard case .opened(let opening)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(opening.subprotocol == nil)
        #expect(opening.headers.first("x") == "y")
    }

    @Test("An interim answer comes before the real one (RFC 9110, 15.2)")
    func interim() throws {
        var client = try SocketHarness.connecting()
        let key = client.sentHeader("Sec-WebSocket-Key") ?? ""
        client.receive(Array("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".utf8))
        #expect(client.events() == [])
        let accept = "Sec-WebSocket-Accept: \(SocketHarness.acceptKey(for: key))\r\n\r\n"
        client.receive(Array((SocketHarness.switching + accept).utf8) + Frame.text("early"))
        #expect(client.events().last == .text("early"))
    }

    @Test(
        "Answers that break the rules fail the connection (4.1)",
        arguments: [
            (
                "Connection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n",
                WebSocketHandshakeFault.noUpgrade
            ),
            ("Upgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n", .noUpgrade),
            ("Upgrade: websocket\r\nSec-WebSocket-Accept: ACCEPT\r\n", .noConnectionUpgrade),
            ("Upgrade: websocket\r\nConnection: Upgrade\r\n", .wrongAcceptKey),
            (
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n",
                .wrongAcceptKey
            ),
            (good + "Sec-WebSocket-Protocol: other\r\n", .unexpectedSubprotocol),
            (
                good + "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n",
                .unexpectedSubprotocol
            ),
            (good + "Sec-WebSocket-Extensions: permessage-deflate\r\n", .unexpectedExtension),
            (good + "Sec-WebSocket-Extensions: ;\r\n", .unexpectedExtension),
            (good + "no colon\r\n", .http(.malformedField)),
        ]
    )
    func badAnswers(_ fields: String, _ fault: WebSocketHandshakeFault) throws {
        #expect(try answer(fields, subprotocols: ["a"]) == [.closed(.handshakeFailed(fault))])
    }

    @Test("A subprotocol that is needed must be chosen")
    func requiredSubprotocol() throws {
        #expect(
            try answer(Self.good, subprotocols: ["mqtt"], requiresSubprotocol: true)
                == [.closed(.handshakeFailed(.missingSubprotocol))]
        )
        let events = try answer(
            Self.good + "Sec-WebSocket-Protocol: mqtt\r\n",
            subprotocols: ["mqtt"],
            requiresSubprotocol: true
        )
        guard case .opened(let opening)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(opening.subprotocol == "mqtt")
    }

    @Test("A refused upgrade is told with its status, fields and body (4.1, item 1)")
    func refused() throws {
        let events = try answer(
            "Content-Length: 6\r\nWWW-Authenticate: Bearer\r\n\r\ndenied",
            status: "401 Unauthorized"
        )
        let head = HTTPResponseHead(
            status: 401,
            reason: "Unauthorized",
            headers: ["Content-Length": "6", "WWW-Authenticate": "Bearer"]
        )
        #expect(events == [.closed(.refused(head, body: Array("denied".utf8)))])
    }

    @Test("The body of a refusal may be chunked, end with the stream, be cut off or too long")
    func refusalBodies() throws {
        func body(_ pieces: [[UInt8]], end: (inout SocketHarness) -> Void) throws -> [UInt8]? {
            var client = try SocketHarness.connecting()
            for piece in pieces { client.receive(piece) }
            end(&client)
            #expect(client.core.isFinished)
            guard case .closed(.refused(_, let body))? = client.events().last else { return nil }
            return body
        }
        let chunked = Array(
            "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n".utf8
        )
        #expect(try body(chunked.map { [$0] }, end: { _ in }) == Array("ab".utf8))
        let open = Array("HTTP/1.1 500 X\r\n\r\nabc".utf8)
        #expect(
            try body([open], end: { $0.core.receiveEndOfStream(at: .zero) }) == Array("abc".utf8)
        )
        #expect(try body([open], end: { $0.advance(.seconds(10)) }) == Array("abc".utf8))
        let long = open + [UInt8](repeating: 0x78, count: 100_000)
        #expect(try body([long], end: { _ in })?.count == 65_536)
        let broken = Array(
            "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n".utf8
        )
        #expect(try body([broken], end: { _ in }) == Array("ab".utf8))
    }

    @Test("A name of the list, but not in its case, is not one that was offered (4.1, item 6)")
    func subprotocolCase() throws {
        #expect(
            try answer(Self.good + "Sec-WebSocket-Protocol: MQTT\r\n", subprotocols: ["mqtt"])
                == [.closed(.handshakeFailed(.unexpectedSubprotocol))]
        )
    }

    @Test("A redirect is a refusal: its fields are told, and it is not followed (4.1, item 1)")
    func redirect() throws {
        let events = try answer(
            "Location: ws://elsewhere/\r\nContent-Length: 0\r\n",
            status: "302 Found"
        )
        let head = HTTPResponseHead(
            status: 302,
            reason: "Found",
            headers: ["Location": "ws://elsewhere/", "Content-Length": "0"]
        )
        #expect(events == [.closed(.refused(head, body: []))])
    }

    @Test("Nothing but the request leaves before the answer is there (4.1, 6.1)")
    func beforeTheAnswer() throws {
        var client = try SocketHarness.connecting()
        let request = client.sent()
        #expect(request.suffix(4) == Array("\r\n\r\n".utf8)[...])
        #expect(throws: WebSocketSendError.notOpen) { try client.core.send(.text, [0x61]) }
        #expect(throws: WebSocketSendError.notOpen) { try client.core.ping() }
        client.advance(.seconds(5))
        #expect(client.sent() == [])
    }

    @Test("The nonce is 16 bytes, new for each connection (4.1, item 7)")
    func nonce() throws {
        let next = Locked<UInt64>(0)
        var configuration = SocketHarness.configuration()
        configuration.randomWords = { count in
            next.withLock { next in
                (0..<count).map { _ in
                    next += 1; return next
                }
            }
        }
        let keys = try (0..<10).compactMap { _ in
            try SocketHarness.connecting(configuration).sentHeader("Sec-WebSocket-Key")
        }
        #expect(Set(keys).count == 10)
        #expect(keys.allSatisfy { $0.utf8.count == 24 && $0.hasSuffix("==") })
    }

    @Test("No answer in time, or none at all, ends the attempt")
    func silence() throws {
        var client = try SocketHarness.connecting()
        client.receive(Array("HTTP/1.1 101".utf8))
        client.advance(.seconds(10))
        #expect(client.events() == [.closed(.timedOut(.handshake))])
        var cut = try SocketHarness.connecting()
        cut.core.receiveEndOfStream(at: .zero)
        #expect(cut.events() == [.closed(.handshakeFailed(.endOfStream))])
    }

    // MARK: The server's half (4.2)

    @Test("A server answers its own client, and subprotocol and fields arrive")
    func pair() throws {
        var client = try SocketHarness.connecting(
            SocketHarness.configuration(deflate: PermessageDeflate()),
            subprotocols: ["a", "b"]
        )
        var server = SocketHarness(
            WebSocketConnection(
                serverWith: SocketHarness.configuration(deflate: PermessageDeflate()),
                at: .zero
            )
        )
        server.receive(client.sent())
        guard case .requested(let head)? = server.events().first else {
            Issue.record("no request")
            return
        }
        #expect(head.headers.members("sec-websocket-protocol") == ["a", "b"])
        server.core.accept(subprotocol: "b", headers: ["X": "y"])
        client.receive(server.sent())
        guard case .opened(let opening)? = client.events().first else {
            Issue.record("not opened")
            return
        }
        #expect(opening.subprotocol == "b")
        #expect(opening.headers.first("X") == "y")
        #expect(opening.deflate == (Compression.isAvailable ? PermessageDeflate() : nil))
        try client.core.send(.text, Array("hello hello hello".utf8))
        server.receive(client.sent())
        #expect(server.events().last == .text("hello hello hello"))
    }

    @Test(
        "A server refuses what is no opening handshake (4.2.1)",
        arguments: [
            ("POST / HTTP/1.1", "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", 400),
            ("GET / HTTP/1.0", "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", 400),
            ("GET / HTTP/1.1", "Upgrade: websocket\r\nConnection: Upgrade\r\n", 400),
            ("GET / HTTP/1.1", "Host: h\r\nConnection: Upgrade\r\n", 400),
            ("GET / HTTP/1.1", "Host: h\r\nUpgrade: websocket\r\n", 400),
            (
                "GET / HTTP/1.1",
                "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Extensions: a; ;\r\n",
                400
            ),
            ("GET /", "", 400),
        ]
    )
    func serverRefusals(_ line: String, _ fields: String, _ status: Int) {
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        expectRefusal("\(line)\r\n\(fields)\(key)\r\n", status)
    }

    @Test("A server refuses a key that is not 16 bytes, and another version (4.2.1, 4.4)")
    func serverKeyAndVersion() {
        let begin = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        for key in ["", "c2hvcnQ=", "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZQ=!"] {
            expectRefusal(
                "\(begin)Sec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n\r\n",
                400
            )
        }
        expectRefusal(
            "\(begin)Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n",
            426
        )
    }

    private func expectRefusal(_ text: String, _ status: Int) {
        var server = SocketHarness(
            WebSocketConnection(serverWith: SocketHarness.configuration(), at: .zero)
        )
        server.receive(Array(text.utf8))
        #expect(server.core.isFinished)
        let sent = String(decoding: server.sent(), as: UTF8.self)
        #expect(sent.hasPrefix("HTTP/1.1 \(status) "), "\(text)")
        #expect(sent.contains("Connection: close\r\n"))
    }
}
