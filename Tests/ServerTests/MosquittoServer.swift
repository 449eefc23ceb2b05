import Testing
import Waybill
import WaybillMQTT

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The Mosquitto that `Tests/Servers/with` has started.
enum MosquittoServer {
    enum Listener: String {
        case open = "WAYBILL_MOSQUITTO_PORT"
        case password = "WAYBILL_MOSQUITTO_AUTH_PORT"
        case small = "WAYBILL_MOSQUITTO_SMALL_PORT"
        case webSocket = "WAYBILL_MOSQUITTO_WS_PORT"
    }

    static func port(_ listener: Listener) -> Int? {
        ProcessInfo.processInfo.environment[listener.rawValue].flatMap { Int($0) }
    }

    static let isRunning = port(.open) != nil

    static func transport(
        _ version: MQTTConfiguration.Version,
        at listener: Listener = .open,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration(version: version)
        change(&configuration)
        let port = try #require(Self.port(listener))
        let scheme = listener == .webSocket ? "ws" : "mqtt"
        return try MQTTTransport(
            url: "\(scheme)://127.0.0.1:\(port)",
            configuration: configuration
        )
    }
}

/// One enum for all the tests: any topic, any bytes.
enum WireEntry: EntryType {
    case connect(ConnectOptions = ConnectOptions())
    case send(Payload, to: String, QualityOfService, retain: Bool = false)
    case subscribe(String, QualityOfService)
    case disconnect

    var topic: String? {
        switch self {
        case .connect, .disconnect: nil
        case .send(_, let topic, _, _), .subscribe(let topic, _): topic
        }
    }

    var command: EntryCommand {
        switch self {
        case .connect(let options): .connect(options)
        case .send(_, _, let qos, let retain): .send(qos: qos, retain: retain)
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
