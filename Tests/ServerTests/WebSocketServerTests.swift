import Testing
import Waybill
import WaybillMQTT
import WaybillWebSocket

@Suite(
    "WebSocket servers",
    .enabled(
        if: TestServers.port("WEBSOCKETS") != nil && TestServers.port("NGINX") != nil,
        "Python's websockets and nginx are not running: Tests/Servers/with --install -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct WebSocketServerTests {
    private static let peers = ["WEBSOCKETS", "WEBSOCKETS_PLAIN", "WEBSOCKETS_SMALL_WINDOW"]

    private func connect(
        _ variable: String,
        _ path: String,
        _ change: (inout WebSocketClient.Configuration) -> Void = { _ in }
    ) async throws -> WebSocketClient {
        var configuration = WebSocketClient.Configuration()
        configuration.maximumMessageSize = 4 << 20
        configuration.tls.authorities = TestServers.authorities
        change(&configuration)
        return try await WebSocketClient.connect(
            to: TestServers.url(variable, "ws") + path,
            configuration: configuration
        )
    }

    @Test("Text and bytes of all sizes are echoed, compressed or not", arguments: peers)
    func echo(_ peer: String) async throws {
        let socket = try await connect(peer, "/echo")
        #expect(socket.isCompressed == (peer != "WEBSOCKETS_PLAIN"))
        var iterator = socket.messages.makeAsyncIterator()
        for size in [0, 1, 125, 126, 65_535, 65_536, 1_000_000] {
            let text = String(repeating: "é", count: size / 2)
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ ($0 >> 8)) }
            try await socket.send(text)
            try await socket.send(bytes)
            #expect(try await iterator.next() == .text(text))
            #expect(try await iterator.next() == .binary(bytes))
        }
        #expect(try await socket.ping() >= .zero)
        try await socket.close(reason: "done")
        #expect(socket.closure?.code == .normalClosure)
    }

    @Test("Fragments with a ping in between are one message")
    func fragments() async throws {
        let socket = try await connect("WEBSOCKETS", "/fragments")
        #expect(try await socket.messages.first { _ in true } == .text("one, twö, three"))
        try await socket.close()
    }

    @Test("The server's close code and reason arrive")
    func closeCodes() async throws {
        for (code, isNormal) in [(1_000, true), (1_001, true), (4_000, false), (1_011, false)] {
            let socket = try await connect("WEBSOCKETS", "/close?code=\(code)&reason=bye")
            do {
                for try await _ in socket.messages {}
                #expect(isNormal)
            } catch let error as WaybillError {
                #expect(!isNormal)
                #expect(error.peerReason == "\(code) bye")
            }
            #expect(socket.closure == .init(code: .init(rawValue: UInt16(code)), reason: "bye"))
            try await socket.close()
        }
    }

    @Test("A connection that is cut is 1006, after what came before")
    func abort() async throws {
        let socket = try await connect("WEBSOCKETS", "/abort")
        var iterator = socket.messages.makeAsyncIterator()
        #expect(try await iterator.next() == .text("the last words"))
        let error = await #expect(throws: WaybillError.self) { try await iterator.next() }
        #expect(error?.code == .connectionLost)
        #expect(socket.closure?.code == .abnormalClosure)
    }

    @Test("A refused upgrade comes with its status, fields and body")
    func refused() async throws {
        let rows: [(String, String, Int, WaybillError.Code)] = [
            ("WEBSOCKETS", "/refuse", 401, .unauthorized), ("WEBSOCKETS", "/none", 404, .rejected),
            ("NGINX", "/refused", 403, .unauthorized), ("NGINX", "/gone", 410, .rejected),
            ("NGINX", "/busy", 503, .connectionRefused), ("NGINX", "/moved", 302, .rejected),
            ("NGINX", "/ok", 200, .rejected),
        ]
        for (server, path, status, code) in rows {
            let error = await #expect(throws: WaybillError.self) {
                try await connect(server, path)
            }
            #expect(error?.code == code, "\(path)")
            let refusal = try #require(error?.underlying as? HTTPRefusal)
            #expect(refusal.status == status)
            #expect(!refusal.body.isEmpty || status == 302, "\(path)")
        }
    }

    @Test("Fields and subprotocols of the request arrive")
    func request() async throws {
        let socket = try await connect("WEBSOCKETS", "/headers") {
            $0.headers = ["X-Token": "t"]
        }
        guard case .text(let text)? = try await socket.messages.first(where: { _ in true }) else {
            Issue.record("no text")
            return
        }
        #expect(text.lowercased().contains("x-token"))
        try await socket.close()
        let chosen = try await connect("WEBSOCKETS", "/subprotocol") {
            $0.subprotocols = ["chat.v1", "chat.v2"]
        }
        #expect(chosen.subprotocol == "chat.v2")
        try await chosen.close()
    }

    @Test("A message over the limit ends the connection, also when only its inflated size is")
    func limit() async throws {
        for peer in Self.peers {
            let socket = try await connect(peer, "/big?size=2000000") {
                $0.maximumMessageSize = 1_000_000
            }
            let error = await #expect(throws: WaybillError.self) {
                try await socket.messages.first { _ in true }
            }
            #expect(error?.code == .limitExceeded)
            #expect(socket.closure?.code == .messageTooBig)
        }
    }

    @Test(
        "nginx with nchan: what one client sends the others hear",
        arguments: TestServers.nginxes
    )
    func nchan(server: String) async throws {
        let path = "/ws/channel\(UInt32.random(in: 0 ... .max))"
        let ada = try await connect(server, path)
        let bob = try await connect(server, path) { $0.compression = nil }
        #expect(ada.isCompressed && !bob.isCompressed)
        let long = String(repeating: "a long message, ", count: 10_000)
        try await bob.send("hello")
        try await bob.send(long)
        for socket in [ada, bob] {
            var iterator = socket.messages.makeAsyncIterator()
            #expect(try await iterator.next() == .text("hello"))
            #expect(try await iterator.next() == .text(long))
        }
        try await ada.close()
        try await bob.close()
    }

    @Test(
        "Mosquitto over WebSocket, every quality of service",
        .enabled(if: TestServers.port("MOSQUITTO_WS") != nil, "Mosquitto is not running"),
        arguments: [MQTTConfiguration.Version.v3_1_1, .v5],
        QoS.allCases
    )
    func mosquitto(_ version: MQTTConfiguration.Version, _ qos: QoS) async throws {
        let (transport, provider) = try MosquittoServer.provider(version, at: .webSocket)
        let topic = "waybill/\(UInt64.random(in: 0 ... .max))"
        let messages = try await provider.messages(.subscribe(topic, qos))
        let big = Payload([UInt8](repeating: 7, count: 256 << 10))
        for number in 0..<10 {
            try await provider.request(.send(.init("\(number)"), to: topic, qos))
        }
        try await provider.request(.send(big, to: topic, qos))
        var count = 0
        for try await message in messages {
            #expect(message.body == (count == 10 ? big : Payload("\(count)")))
            count += 1
            if count == 11 { break }
        }
        await transport.shutdown()
    }
}
