import Testing
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillWebSocket

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A server that is reached through the proxy.
enum ProxiedServer: String, CaseIterable, CustomTestStringConvertible, Sendable {
    case mqtt = "MQTT"
    case mqttWebSocket = "MQTT over WebSocket"
    case stomp = "STOMP"
    case stompWebSocket = "STOMP over WebSocket"
    case events = "an event stream"
    case webSocket = "a WebSocket"

    var testDescription: String { rawValue }

    static let areRunning = [
        "TINYPROXY", "MOSQUITTO", "MOSQUITTO_WS", "RABBITMQ_STOMP", "RABBITMQ_WS", "NGINX",
    ].allSatisfy { TestServers.port($0) != nil }

    /// Connects through a proxy, sends a message and receives it, and disconnects.
    ///
    /// - Parameters:
    ///   - proxy: The proxy.
    ///   - host: The server's host as the proxy gets it.
    ///   - port: A port that replaces the server's.
    func roundTrip(
        through proxy: ProxyOptions?,
        host: String = "127.0.0.1",
        port: Int? = nil
    ) async throws {
        func place(_ variable: String) -> String {
            "\(host):\(port ?? TestServers.port(variable) ?? 1)"
        }
        switch self {
        case .mqtt: try await mqtt("mqtt://\(place("MOSQUITTO"))", proxy)
        case .mqttWebSocket: try await mqtt("ws://\(place("MOSQUITTO_WS"))", proxy)
        case .stomp: try await stomp("stomp://\(place("RABBITMQ_STOMP"))", proxy)
        case .stompWebSocket: try await stomp("ws://\(place("RABBITMQ_WS"))/ws", proxy)
        case .events: try await events("http://\(place("NGINX"))", proxy)
        case .webSocket: try await webSocket("ws://\(place("NGINX"))/ws", proxy)
        }
    }

    private func name() -> String { "proxied\(UInt64.random(in: 0 ... .max))" }

    private func first<M>(_ messages: Messages<M>) async throws -> M? {
        var iterator = messages.makeAsyncIterator()
        return try await iterator.next()
    }

    private func mqtt(_ url: String, _ proxy: ProxyOptions?) async throws {
        var configuration = MQTTConfiguration()
        configuration.proxy = proxy
        let transport = try MQTTTransport(url: url, configuration: configuration)
        let provider = Provider<WireEntry>(transport: transport)
        let topic = name()
        let messages = try await provider.messages(.subscribe(topic, .atLeastOnce))
        try await provider.request(.send("through", to: topic, .atLeastOnce))
        #expect(try await first(messages)?.text == "through")
        await transport.shutdown()
    }

    private func stomp(_ url: String, _ proxy: ProxyOptions?) async throws {
        var configuration = STOMPConfiguration()
        configuration.host = "/"
        configuration.userName = "guest"
        configuration.password = "guest"
        configuration.proxy = proxy
        let transport = try STOMPTransport(url: url, configuration: configuration)
        let provider = Provider<FrameEntry>(transport: transport)
        let topic = "/topic/\(name())"
        let messages = try await provider.messages(.subscribe(topic, .auto))
        try await provider.request(.send("through", to: topic))
        #expect(try await first(messages)?.text == "through")
        await transport.shutdown()
    }

    private func events(_ url: String, _ proxy: ProxyOptions?) async throws {
        var configuration = SSEConfiguration()
        configuration.proxy = proxy
        let transport = try SSETransport(url: url, configuration: configuration)
        let provider = Provider<EventStreamEntry>(transport: transport)
        let channel = name()
        try await provider.request(.post("through", to: "publish/\(channel)"))
        #expect(
            try await first(provider.messages(.listen("events/\(channel)")))?.text == "through"
        )
        await transport.shutdown()
    }

    private func webSocket(_ url: String, _ proxy: ProxyOptions?) async throws {
        var configuration = WebSocketClient.Configuration()
        configuration.proxy = proxy
        let socket = try await WebSocketClient.connect(
            to: "\(url)/\(name())",
            configuration: configuration
        )
        try await socket.send("through")
        var iterator = socket.messages.makeAsyncIterator()
        #expect(try await iterator.next() == .text("through"))
        try await socket.close()
    }
}

/// The servers through tinyproxy, which accepts the user ada with the password lovelace.
@Suite(
    "Through a proxy",
    .enabled(
        if: ProxiedServer.areRunning,
        "tinyproxy or a server is not running: Tests/Servers/with --install ... -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct ProxyTests {
    private func proxy(_ userName: String? = nil, _ password: String? = nil) -> ProxyOptions {
        ProxyOptions(
            host: "localhost",
            port: TestServers.port("TINYPROXY") ?? 1,
            userName: userName,
            password: password
        )
    }

    private func failure(
        _ server: ProxiedServer,
        _ proxy: ProxyOptions,
        host: String = "127.0.0.1",
        port: Int? = nil
    ) async -> WaybillError? {
        do {
            try await server.roundTrip(through: proxy, host: host, port: port)
            Issue.record("no error")
            return nil
        } catch {
            return error as? WaybillError
        }
    }

    @Test("There and back with the right credentials", arguments: ProxiedServer.allCases)
    func right(server: ProxiedServer) async throws {
        try await server.roundTrip(through: proxy("ada", "lovelace"))
    }

    @Test(
        "TLS runs within the tunnel, and the server is verified as ever",
        .enabled(if: TestServers.areSecure, "servers with TLS are not running"),
        arguments: TLSRoute.allCases
    )
    func secured(route: TLSRoute) async throws {
        let proxy = proxy("ada", "lovelace")
        #expect(try await route.visit(through: proxy) != nil)
        let error = await #expect(throws: WaybillError.self) {
            try await route.visit(route.refusedURL, through: proxy) {
                $0.serverName = "elsewhere.test"
            }
        }
        #expect((error?.underlying as? TLSFailure)?.reason == .hostMismatch)
        let refused = await #expect(throws: WaybillError.self) {
            try await route.visit(through: self.proxy())
        }
        #expect(refused?.code == .unauthorized)
    }

    @Test(
        "Wrong credentials, and none, are a typed error that says nothing of them",
        arguments: ProxiedServer.allCases,
        [false, true]
    )
    func refused(server: ProxiedServer, hasCredentials: Bool) async throws {
        let proxy = hasCredentials ? proxy("ada", "byron") : proxy()
        let error = await failure(server, proxy)
        #expect(error?.code == .unauthorized)
        #expect(error?.isRetryable == false)
        let refusal = try #require(error?.underlying as? HTTPRefusal)
        // With wrong credentials, tinyproxy answers with a server's status code, 401.
        #expect(refusal.status == (hasCredentials ? 401 : 407))
        #expect(refusal.isFromProxy)
        #expect(refusal.headers.contains { $0.name.lowercased().hasSuffix("-authenticate") })
        #expect(error.map { "\($0)" }?.contains("byron") == false)
    }

    @Test(
        "A server that the proxy cannot reach, and a name that only it looks for",
        arguments: ProxiedServer.allCases,
        ["127.0.0.1", "nowhere.invalid"]
    )
    func unreachable(server: ProxiedServer, host: String) async throws {
        let error = await failure(server, proxy("ada", "lovelace"), host: host, port: 1)
        #expect(error?.code == .connectionRefused)
        let refusal = try #require(error?.underlying as? HTTPRefusal)
        #expect((500...599).contains(refusal.status))
        #expect(refusal.isFromProxy)
    }

    @Test("A proxy that is not there", arguments: ProxiedServer.allCases)
    func noProxy(server: ProxiedServer) async {
        let error = await failure(server, ProxyOptions(host: "127.0.0.1", port: 1))
        #expect(error?.code == .connectionRefused)
        #expect(error?.message.hasPrefix("the proxy: ") == true)
        #expect(error?.underlying is HTTPRefusal == false)
    }

    @Test("An exempt host is reached without it", arguments: ProxiedServer.allCases)
    func exempt(server: ProxiedServer) async throws {
        var dead = ProxyOptions(host: "127.0.0.1", port: 1)
        dead.exemptHosts = ["127.0.0.1"]
        try await server.roundTrip(through: dead)
    }
}
