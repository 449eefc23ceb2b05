import Testing
import Waybill
import WaybillMQTT

/// An MQTT broker with the settings of its package.
private struct MQTTBroker: Sendable, CustomTestStringConvertible {
    var name: String
    /// The environment variable with its port.
    var variable: String
    var version: MQTTConfiguration.Version
    var userName: String?
    var password: String?

    var testDescription: String { "\(name), MQTT \(version == .v5 ? "5" : "3.1.1")" }

    static let all: [MQTTBroker] = [
        MQTTBroker(name: "Mosquitto", variable: "MOSQUITTO_PACKAGED", version: .v3_1_1),
        MQTTBroker(name: "Mosquitto", variable: "MOSQUITTO_PACKAGED", version: .v5),
        MQTTBroker(
            name: "RabbitMQ",
            variable: "RABBITMQ_MQTT",
            version: .v3_1_1,
            userName: "guest",
            password: "guest"
        ),
        MQTTBroker(
            name: "ejabberd",
            variable: "EJABBERD",
            version: .v3_1_1,
            userName: "alice@localhost",
            password: "secret"
        ),
        MQTTBroker(
            name: "ejabberd",
            variable: "EJABBERD",
            version: .v5,
            userName: "alice@localhost",
            password: "secret"
        ),
        MQTTBroker(name: "NATS", variable: "NATS_MQTT", version: .v3_1_1),
        MQTTBroker(name: "ActiveMQ", variable: "ACTIVEMQ_MQTT", version: .v3_1_1),
    ]

    static let running = all.filter { TestServers.port($0.variable) != nil }

    /// Connects with the default settings, except that a lost connection ends the test, and that a busy machine does not.
    func connect() async throws -> (transport: MQTTTransport, provider: Provider<WireEntry>) {
        var configuration = MQTTConfiguration(version: version)
        configuration.acknowledgementTimeout = TestServers.patience
        configuration.connectTimeout = TestServers.patience
        configuration.reconnection = .never
        let url = TestServers.url(variable, "mqtt")
        let transport = try MQTTTransport(url: url, configuration: configuration)
        let provider = Provider<WireEntry>(transport: transport)
        let options = ConnectOptions(userName: userName, password: password)
        try await provider.request(.connect(options))
        return (transport, provider)
    }
}

@Suite(
    "Delivery to a slow consumer",
    .enabled(
        if: !MQTTBroker.running.isEmpty,
        "no broker is running: Tests/Servers/with mosquitto rabbitmq activemq ejabberd nats -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct DeliveryTests {
    @Test(
        "5,000 messages of QoS 1 at full speed reach a loop that takes 1 ms for each",
        arguments: MQTTBroker.running
    )
    private func slowConsumer(broker: MQTTBroker) async throws {
        let count = 5_000
        let topic = "waybill/\(UInt64.random(in: 0 ... .max))/delivery"
        let (listener, listening) = try await broker.connect()
        let messages = try await listening.messages(.subscribe(topic, .atLeastOnce))
        let consumer = Task {
            var numbers: Set<Int> = []
            var heard = 0
            for try await message in messages {
                // Stands for the app's work. The outcome does not depend on its duration.
                try await Task.sleep(for: .milliseconds(1))
                heard += 1
                numbers.insert(message.text.flatMap { Int($0) } ?? -1)
                if numbers.count == count { break }
            }
            return (numbers, heard)
        }
        let (sender, sending) = try await broker.connect()
        try await withThrowingTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    try await sending.request(.send(.init("\(number)"), to: topic, .atLeastOnce))
                }
            }
            try await group.waitForAll()
        }
        let (numbers, heard) = try await consumer.value
        print(
            "| \(broker.testDescription) | \(count) | \(numbers.count) | \(heard - numbers.count) |"
        )
        #expect(numbers == Set(0..<count))
        await sender.shutdown()
        await listener.shutdown()
    }
}
