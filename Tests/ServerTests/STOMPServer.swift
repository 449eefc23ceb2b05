import Testing
import Waybill
import WaybillSTOMP

/// A STOMP broker and the transport to it.
enum STOMPServer: String, CaseIterable, CustomTestStringConvertible, Sendable {
    case rabbitMQ = "RabbitMQ over TCP"
    case rabbitMQWebSocket = "RabbitMQ over WebSocket"
    case rabbitMQCompressed = "RabbitMQ over WebSocket, compressed"
    case rabbitMQSecure = "RabbitMQ over TLS"
    case rabbitMQSecureWebSocket = "RabbitMQ over WebSocket over TLS"
    case activeMQ = "ActiveMQ over TCP"

    var testDescription: String { rawValue }

    var isOverTCP: Bool { self == .rabbitMQ || self == .rabbitMQSecure || self == .activeMQ }

    var isRabbitMQ: Bool { self != .activeMQ }

    static let all = allCases.filter { TestServers.areSecure || !$0.isSecure }

    var isSecure: Bool { self == .rabbitMQSecure || self == .rabbitMQSecureWebSocket }

    static let rabbitMQs = all.filter(\.isRabbitMQ)

    static let areRabbitMQsRunning =
        TestServers.port("RABBITMQ_STOMP") != nil && TestServers.port("RABBITMQ_WS") != nil

    static let areRunning =
        TestServers.port("RABBITMQ_STOMP") != nil && TestServers.port("RABBITMQ_WS") != nil
        && TestServers.port("ACTIVEMQ_STOMP") != nil

    var url: String {
        switch self {
        case .rabbitMQ: TestServers.url("RABBITMQ_STOMP", "stomp")
        case .rabbitMQSecure: TestServers.url("RABBITMQ_STOMPS", "stomp")
        case .rabbitMQWebSocket, .rabbitMQCompressed: TestServers.url("RABBITMQ_WS", "ws") + "/ws"
        case .rabbitMQSecureWebSocket: TestServers.url("RABBITMQ_WSS", "ws") + "/ws"
        case .activeMQ: TestServers.url("ACTIVEMQ_STOMP", "stomp")
        }
    }

    func transport(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> STOMPTransport {
        var configuration = STOMPConfiguration()
        configuration.timeouts.confirmation = TestServers.patience
        configuration.timeouts.connect = TestServers.patience
        configuration.reconnection = .never
        configuration.host = "/"
        configuration.userName = isRabbitMQ ? "guest" : "alice"
        configuration.password = isRabbitMQ ? "guest" : "secret"
        configuration.webSocket.offersCompression = self == .rabbitMQCompressed
        configuration.tls.authorities = TestServers.authorities
        change(&configuration)
        return try STOMPTransport(url: url, configuration: configuration)
    }

    func provider(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<FrameEntry>) {
        let transport = try transport(change)
        return (transport, Provider(transport: transport))
    }
}

/// An entry for all tests: any destination, any body, any headers.
enum FrameEntry: EntryType {
    case connect
    case send(Payload, to: String, headers: Headers = [:], contentType: String? = nil)
    case subscribe(String, AckMode, isManual: Bool = false, headers: Headers = [:])
    case unsubscribe(String)
    case ack(Message.ID, transaction: String? = nil)
    case nack(Message.ID)
    case begin(String)
    case commit(String)
    case abort(String)
    case disconnect

    var topic: String? {
        switch self {
        case .send(_, let topic, _, _), .subscribe(let topic, _, _, _), .unsubscribe(let topic):
            topic
        default: nil
        }
    }

    var command: EntryCommand {
        switch self {
        case .connect: .connect
        case .send: .send
        case .subscribe(_, let mode, let isManual, _):
            .subscribe(
                options: isManual ? [.ackMode(mode), .manualAcknowledgement] : [.ackMode(mode)]
            )
        case .unsubscribe: .unsubscribe
        case .ack(let id, let transaction):
            .ack(id, options: transaction.map { [.transaction($0)] } ?? [])
        case .nack(let id): .nack(id)
        case .begin(let name): .begin(transaction: name)
        case .commit(let name): .commit(transaction: name)
        case .abort(let name): .abort(transaction: name)
        case .disconnect: .disconnect
        }
    }

    var body: EntryBody {
        switch self {
        case .send(let payload, _, _, let contentType):
            .bytes(payload.bytes, contentType: contentType)
        default: .none
        }
    }

    var headers: Headers {
        switch self {
        case .send(_, _, let headers, _), .subscribe(_, _, _, let headers): headers
        default: [:]
        }
    }
}
