import Testing
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillWebSocket

/// A protocol over TLS to a real server.
enum TLSRoute: String, CaseIterable, Sendable {
    case mqtts
    case mqttOverWSS
    case stomps
    case stompOverWSS
    case https
    case wss

    /// The routes whose server also shows bad certificates.
    static let badlyServed = allCases.filter { $0 != .mqttOverWSS }

    /// The bad certificates of `Tests/Servers/certificates`, in the order of Mosquitto's listeners.
    static let badCertificates = [
        "wronghost", "untrusted", "expired", "notyet", "selfsigned", "clientonly", "sha1",
    ]

    var isHTTP: Bool { self == .https || self == .wss }

    private var isRabbitMQ: Bool { self == .stomps || self == .stompOverWSS }

    /// True when the server's TLS is OpenSSL's, which shows every certificate that it is given.
    var showsAnything: Bool { !isRabbitMQ }

    var url: String {
        switch self {
        case .mqtts: TestServers.url("MOSQUITTO_TLS", "mqtt")
        case .mqttOverWSS: TestServers.url("MOSQUITTO_WSS", "ws")
        case .stomps: TestServers.url("RABBITMQ_STOMPS", "stomp")
        case .stompOverWSS: TestServers.url("RABBITMQ_WSS", "ws") + "/ws"
        case .https: TestServers.url("NGINX_TLS", "http")
        case .wss: TestServers.url("NGINX_TLS", "ws") + "/ws/secure"
        }
    }

    /// A URL with the same scheme, and a port that does not speak TLS.
    var urlOfPlainPort: String {
        switch self {
        case .mqtts: "mqtts://127.0.0.1:\(TestServers.port("MOSQUITTO") ?? 0)"
        case .mqttOverWSS: "wss://127.0.0.1:\(TestServers.port("MOSQUITTO_WS") ?? 0)"
        case .stomps: "stomps://127.0.0.1:\(TestServers.port("RABBITMQ_STOMP") ?? 0)"
        case .stompOverWSS: "wss://127.0.0.1:\(TestServers.port("RABBITMQ_WS") ?? 0)/ws"
        case .https: "https://127.0.0.1:\(TestServers.port("NGINX") ?? 0)"
        case .wss: "wss://127.0.0.1:\(TestServers.port("NGINX") ?? 0)/ws/secure"
        }
    }

    /// A URL for handshakes that may fail. After a failed one, Mosquitto also closes other connections of the same
    /// process.
    var refusedURL: String {
        switch self {
        case .mqtts: TestServers.url("MOSQUITTO_REFUSED_TLS", "mqtt")
        case .mqttOverWSS: TestServers.url("MOSQUITTO_REFUSED_WSS", "ws")
        default: url
        }
    }

    /// The URL of ``refusedURL`` without TLS.
    var refusedURLWithoutTLS: String {
        let scheme = refusedURL.prefix { $0 != ":" }
        return String(scheme.dropLast() + refusedURL.dropFirst(scheme.count))
    }

    /// The URL of a listener with a bad certificate, and the name to ask for.
    func bad(_ name: String) -> (url: String, serverName: String?) {
        guard self == .mqtts else { return (url, "\(name).waybill.test") }
        let port = TestServers.port("MOSQUITTO_BAD") ?? 0
        return ("mqtts://127.0.0.1:\(port + (Self.badCertificates.firstIndex(of: name) ?? 0))", nil)
    }

    /// The URL of a listener that asks for a client certificate, and the name to ask for.
    var mutual: (url: String, serverName: String?) {
        switch self {
        case .mqtts: (TestServers.url("MOSQUITTO_MUTUAL", "mqtt"), nil)
        case .mqttOverWSS: (TestServers.url("MOSQUITTO_MUTUAL_WSS", "ws"), nil)
        case .stomps, .stompOverWSS: (url, "mutual.waybill.test")
        case .https: (TestServers.url("NGINX_MUTUAL", "http"), nil)
        case .wss: (TestServers.url("NGINX_MUTUAL", "ws") + "/ws/secure", nil)
        }
    }

    /// Connects, makes a request of the protocol, and disconnects.
    ///
    /// - Returns: The negotiated parameters.
    /// - Throws: The error of the transport.
    @discardableResult
    func visit(
        _ url: String? = nil,
        timeout: Duration = .seconds(20),
        through proxy: ProxyOptions? = nil,
        orAt hosts: [String] = [],
        _ change: (inout TLSOptions) -> Void = { _ in }
    ) async throws -> NegotiatedTLS? {
        var tls = TLSOptions()
        tls.authorities = TestServers.authorities
        change(&tls)
        let url = url ?? self.url
        let failover = FailoverOptions(hosts: hosts)
        switch self {
        case .mqtts, .mqttOverWSS:
            var configuration = MQTTConfiguration()
            configuration.tls = tls
            configuration.proxy = proxy
            configuration.failover = failover
            configuration.timeouts.connect = timeout
            let transport = try MQTTTransport(url: url, configuration: configuration)
            return try await Self.answer(of: transport, to: Request(topic: nil, command: .connect))
        case .stomps, .stompOverWSS:
            var configuration = STOMPConfiguration()
            configuration.host = "/"
            configuration.userName = "guest"
            configuration.password = "guest"
            configuration.tls = tls
            configuration.proxy = proxy
            configuration.failover = failover
            configuration.timeouts.connect = timeout
            let transport = try STOMPTransport(url: url, configuration: configuration)
            return try await Self.answer(of: transport, to: Request(topic: nil, command: .connect))
        case .https:
            var configuration = SSEConfiguration()
            configuration.tls = tls
            configuration.proxy = proxy
            configuration.failover = failover
            configuration.timeouts.connect = timeout
            let transport = try SSETransport(url: url, configuration: configuration)
            let request = Request(topic: "/publish/secure", command: .send, body: "hello")
            return try await Self.answer(of: transport, to: request)
        case .wss:
            var configuration = WebSocketClient.Configuration()
            configuration.tls = tls
            configuration.proxy = proxy
            configuration.failover = failover
            configuration.connectTimeout = timeout
            let socket = try await WebSocketClient.connect(to: url, configuration: configuration)
            try await socket.ping()
            try await socket.close()
            return socket.tls
        }
    }

    private static func answer(
        of transport: some Transport,
        to request: Request
    ) async throws -> NegotiatedTLS? {
        let answer = await Result { try await transport.perform(request) }
        await transport.shutdown()
        return try answer.get().tls
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
