import Testing
import Waybill
import WaybillMQTT
import WaybillTesting

/// An entry for all tests: any command on any topic.
enum MQTTEntry: EntryType {
    case command(
        EntryCommand,
        topic: String? = nil,
        body: EntryBody = .none,
        headers: Headers = [:]
    )

    static func send(
        _ text: String,
        to topic: String = "t",
        qos: QoS = .atMostOnce,
        retain: Bool = false
    ) -> MQTTEntry {
        .command(.send(qos: qos, retain: retain), topic: topic, body: .bytes(Array(text.utf8)))
    }

    static func subscribe(
        _ topic: String = "t",
        qos: QoS = .exactlyOnce,
        acknowledgement: AcknowledgementMode = .whenTaken
    ) -> MQTTEntry {
        .command(.subscribe(qos: qos, acknowledgement: acknowledgement), topic: topic)
    }

    static let connect = MQTTEntry.command(.connect)
    static let disconnect = MQTTEntry.command(.disconnect)

    var topic: String? { if case .command(_, let topic, _, _) = self { topic } else { nil } }

    var command: EntryCommand {
        if case .command(let command, _, _, _) = self { command } else { .connect }
    }

    var body: EntryBody { if case .command(_, _, let body, _) = self { body } else { .none } }

    var headers: Headers { if case .command(_, _, _, let headers) = self { headers } else { [:] } }
}

/// A broker for one test, and transports to it.
struct Fixture {
    let broker: LoopbackBroker
    let service: LoopbackBroker.Service

    init(
        _ service: LoopbackBroker.Service = .mqtt,
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws {
        self.service = service
        var configuration = LoopbackBroker.Configuration()
        change(&configuration)
        broker = LoopbackBroker(configuration: configuration)
        try broker.start()
    }

    func transport(
        _ version: MQTTConfiguration.Version = .v5,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration(version: version)
        configuration.reconnection = .never
        // A machine that also builds is slow.
        configuration.connectTimeout = .seconds(60)
        configuration.replyTimeout = .seconds(120)
        change(&configuration)
        return try MQTTTransport(url: broker.url(for: service), configuration: configuration)
    }
}

let versions: [MQTTConfiguration.Version] = [.v3_1_1, .v5]

/// A protocol version over TCP or WebSocket.
struct Way: Sendable, CustomTestStringConvertible {
    let service: LoopbackBroker.Service
    let version: MQTTConfiguration.Version

    var testDescription: String { "\(version) \(service)" }
}

/// Every version, over TCP and over WebSocket.
let ways: [Way] = versions.flatMap { version in
    [LoopbackBroker.Service.mqtt, .mqttOverWebSocket].map { Way(service: $0, version: version) }
}

@discardableResult
func expectError<T>(
    _ code: WaybillError.Code,
    _ location: SourceLocation = #_sourceLocation,
    _ body: () async throws -> T
) async -> WaybillError? {
    do {
        _ = try await body()
        Issue.record("no error", sourceLocation: location)
        return nil
    } catch {
        let found = error as? WaybillError
        #expect(found?.code == code, "\(error)", sourceLocation: location)
        return found
    }
}
