import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WaybillWebSocket

@Suite("Loopback broker", .inSimulation, .timeLimit(.minutes(30))) struct LoopbackBrokerTests {
    /// A WebSocket configuration with a long timeout, since other tests run at the same time.
    private static func webSocket(_ subprotocols: [String]) -> WebSocketClient.Configuration {
        var configuration = WebSocketClient.Configuration()
        configuration.subprotocols = subprotocols
        configuration.connectTimeout = .seconds(50)
        return configuration
    }

    private func error(_ body: () async throws -> Void) async -> WaybillError? {
        do { try await body() } catch { return error as? WaybillError }
        return nil
    }

    @Test("One entry goes over every service, and reaches the subscribers of all")
    func services() async throws {
        let broker = try LoopbackBroker.started()
        #expect(broker.url == broker.url(for: .mqtt) && broker.port == broker.port(for: .mqtt))
        #expect(broker.port(for: .stompOverWebSocket) == broker.port(for: .mqttOverWebSocket))
        try await expectDeliveryAcrossServices(broker.transport)
        await broker.stop()
        #expect(broker.connectionCount == 0 && broker.port == 0)
    }

    @Test("A port that is taken: nothing is listened on")
    func portTaken() async throws {
        let first = try LoopbackBroker.started()
        let second = LoopbackBroker(
            configuration: {
                var configuration = LoopbackBroker.Configuration()
                configuration.webSocketPort = first.port(for: .mqttOverWebSocket)
                return configuration
            }()
        )
        #expect(throws: (any Error).self) { try second.start() }
        #expect(second.port == 0)
        await first.stop()
    }

    @Test("The subprotocol decides: the best version of STOMP; an unknown one is refused")
    func subprotocols() async throws {
        let broker = try LoopbackBroker.started()
        let url = broker.url(for: .stompOverWebSocket)
        for (offered, chosen) in [
            (["mqtt"], "mqtt"), (["v10.stomp", "v12.stomp", "v11.stomp"], "v12.stomp"),
            (["x", "v10.stomp"], "v10.stomp"),
        ] {
            let configuration = Self.webSocket(offered)
            let socket = try await WebSocketClient.connect(to: url, configuration: configuration)
            #expect(socket.subprotocol == chosen)
            try await socket.close()
        }
        for offered in [[], ["soap"]] {
            let error = await error {
                let configuration = Self.webSocket(offered)
                _ = try await WebSocketClient.connect(to: url, configuration: configuration)
            }
            let refusal = try #require(error?.underlying as? HTTPRefusal)
            #expect(error?.code == .rejected && refusal.status == 400)
            #expect(refusal.body.text?.contains("v12.stomp") == true)
        }
        await broker.stop()
    }

    @Test("Clients that are sent away hear it: ERROR, then Close with code 1001")
    func goingAway() async throws {
        let broker = try LoopbackBroker.started()
        let configuration = Self.webSocket(["v12.stomp"])
        let socket = try await WebSocketClient.connect(
            to: broker.url(for: .stompOverWebSocket),
            configuration: configuration
        )
        try await socket.send("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
        var frames: [String] = []
        for try await message in socket.messages {
            guard case .text(let text) = message else { continue }
            frames.append(String(text.prefix { $0 != "\n" }))
            if frames == ["CONNECTED"] { broker.disconnectClients() }
        }
        #expect(frames == ["CONNECTED", "ERROR"])
        #expect(socket.closure?.code == .goingAway)
        await broker.stop()
    }

    @Test("A silent connection does not keep the broker from stopping")
    func silence() async throws {
        let broker = try LoopbackBroker.started()
        let timers = LinkEnvironment.system.clock
        var streams: [any ByteStream] = []
        for service in LoopbackBroker.Service.allCases {
            let endpoint = Endpoint(host: "127.0.0.1", port: broker.port(for: service))
            streams.append(
                try await LinkEnvironment.system.dialer.dial(
                    endpoint,
                    timeout: .seconds(5),
                    timers: timers
                )
            )
        }
        await broker.stop()
        for stream in streams { stream.close() }
        // The broker can be started again.
        try broker.start()
        try await Provider<LoopbackEntry>(transport: broker.transport(.stompOverWebSocket)).request(
            .connect
        )
        await broker.stop()
    }

    @Test("Queues are bounded; relays rename; heart-beats are the broker's to set")
    func settings() async throws {
        let broker = try LoopbackBroker.started {
            $0.queueLimit = 2
            $0.relays = ["in": "out"]
            $0.stompHeartBeat = .seconds(7)
        }
        let stomp = Provider<LoopbackEntry>(transport: try broker.transport(.stomp))
        let receipt = try await stomp.request(.connect)
        #expect(receipt.headers["heart-beat"] == "7000,7000")
        let messages = try await stomp.messages(.subscribe("out"), as: String.self)
        let mqtt = Provider<LoopbackEntry>(transport: try broker.transport(.mqtt))
        try await mqtt.request(.send("relayed", to: "in"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "relayed")
        for _ in 0..<2 { try await stomp.request(.send("x", to: "/queue/q")) }
        let full = await error { try await stomp.request(.send("x", to: "/queue/q")) }
        #expect(full?.peerReason == "The queue is full")
        await broker.stop()
    }

    @Test("What is not there to be settled is answered with ERROR")
    func unknownMessage() async throws {
        let broker = try LoopbackBroker.started()
        let script = [
            "ACK\nid:nothing\nreceipt:7\n\n\0", "COMMIT\ntransaction:no\nreceipt:7\n\n\0",
        ]
        for frame in script {
            let configuration = Self.webSocket(["v12.stomp"])
            let socket = try await WebSocketClient.connect(
                to: broker.url(for: .stompOverWebSocket),
                configuration: configuration
            )
            try await socket.send("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
            try await socket.send(frame)
            var last = ""
            for try await message in socket.messages {
                if case .text(let text) = message { last = text }
            }
            #expect(last.hasPrefix("ERROR\n") && last.contains("receipt-id:7\n"), "\(last)")
        }
        await broker.stop()
    }
}
