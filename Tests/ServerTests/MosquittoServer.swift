import Testing
import Waybill
import WaybillMQTT

/// The Mosquitto that `Tests/Servers/with` has started.
enum MosquittoServer {
    enum Listener: String, Sendable {
        case open = "MOSQUITTO"
        case password = "MOSQUITTO_AUTH"
        case small = "MOSQUITTO_SMALL"
        case packaged = "MOSQUITTO_PACKAGED"
        case webSocket = "MOSQUITTO_WS"
        case secure = "MOSQUITTO_TLS"
        case secureWebSocket = "MOSQUITTO_WSS"
        case mutual = "MOSQUITTO_MUTUAL"
        case mutualWebSocket = "MOSQUITTO_MUTUAL_WSS"

        var url: String {
            let isWebSocket = rawValue.hasSuffix("_WS") || rawValue.hasSuffix("_WSS")
            return TestServers.url(rawValue, isWebSocket ? "ws" : "mqtt")
        }
    }

    /// A version of the protocol and a listener of the server.
    struct Route: Sendable, CustomTestStringConvertible {
        var version: MQTTConfiguration.Version
        var listener: Listener

        var testDescription: String { "\(version), \(listener)" }

        static let all = [Listener.open, .secure, .secureWebSocket]
            .filter { TestServers.port($0.rawValue) != nil }
            .flatMap { listener in
                [.v3_1_1, .v5].map { Route(version: $0, listener: listener) }
            }
    }

    static let isRunning = TestServers.port("MOSQUITTO") != nil

    static func transport(
        _ route: Route,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        try transport(route.version, at: route.listener, change)
    }

    static func transport(
        _ version: MQTTConfiguration.Version,
        at listener: Listener = .open,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration(version: version)
        configuration.timeouts.confirmation = TestServers.patience
        configuration.timeouts.connect = TestServers.patience
        configuration.reconnection = .never
        configuration.tls.authorities = TestServers.authorities
        change(&configuration)
        return try MQTTTransport(url: listener.url, configuration: configuration)
    }

    static func provider(_ route: Route) throws -> (MQTTTransport, Provider<WireEntry>) {
        try provider(route.version, at: route.listener)
    }

    static func provider(
        _ version: MQTTConfiguration.Version,
        at listener: Listener = .open
    ) throws -> (MQTTTransport, Provider<WireEntry>) {
        let transport = try transport(version, at: listener)
        return (transport, Provider(transport: transport))
    }
}

/// An entry for all tests: any topic, any bytes.
enum WireEntry: EntryType {
    case connect([ConnectOption] = [])
    case send(Payload, to: String, QoS, [SendOption] = [])
    case subscribe(String, QoS)
    case disconnect

    var topic: String? {
        switch self {
        case .connect, .disconnect: nil
        case .send(_, let topic, _, _), .subscribe(let topic, _): topic
        }
    }

    var command: EntryCommand {
        switch self {
        case .connect(let options): .connect(options: options)
        case .send(_, _, let qos, let options): .send(qos: qos, options: options)
        case .subscribe(_, let qos): .subscribe(qos: qos)
        case .disconnect: .disconnect
        }
    }

    var body: EntryBody {
        switch self {
        case .send(let payload, _, _, _): .bytes(payload.bytes)
        default: .none
        }
    }
}
