import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting

typealias MQTTEntry = CommandEntry

extension CommandEntry {
    static func send(
        _ text: String,
        to topic: String = "t",
        qos: QoS = .atMostOnce,
        _ options: SendOption...
    ) -> MQTTEntry {
        .command(
            .send(qos: qos, options: options),
            topic: topic,
            body: .bytes(Array(text.utf8))
        )
    }

    static func subscribe(
        _ topic: String = "t",
        qos: QoS = .exactlyOnce,
        _ options: SubscribeOption...
    ) -> MQTTEntry {
        .command(.subscribe(qos: qos, options: options), topic: topic)
    }
}

extension Fixture {
    init(
        _ service: LoopbackBroker.Service = .mqtt,
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws {
        try self.init(service: service, change)
    }

    func transport(
        _ version: MQTTConfiguration.Version = .v5,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration(version: version)
        configuration.reconnection = .never
        // A machine that also builds is slow.
        configuration.timeouts.connect = .seconds(60)
        configuration.timeouts.reply = .seconds(120)
        change(&configuration)
        return try MQTTTransport(url: broker.url(for: service), configuration: configuration)
    }

    func provider(
        _ version: MQTTConfiguration.Version = .v5,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        let transport = try transport(version, change)
        return (transport, Provider(transport: transport))
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
