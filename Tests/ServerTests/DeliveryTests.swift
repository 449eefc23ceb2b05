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
    /// How many messages it keeps for a subscriber that is absent; nil for all that are sent here.
    var kept: Int?

    var testDescription: String { "\(name), MQTT \(version == .v5 ? "5" : "3.1.1")" }

    static let all: [MQTTBroker] = [
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

    /// Mosquitto with a queue that has no limit.
    static let unlimited = [MQTTConfiguration.Version.v3_1_1, .v5]
        .map { MQTTBroker(name: "Mosquitto", variable: "MOSQUITTO_PACKAGED", version: $0) }
        .filter { _ in TestServers.port("MOSQUITTO_PACKAGED") != nil }

    static let packaged = [MQTTConfiguration.Version.v3_1_1, .v5]
        .map {
            MQTTBroker(
                name: "Mosquitto",
                variable: "MOSQUITTO_DEFAULTS",
                version: $0,
                kept: 1_000
            )
        }
        .filter { _ in TestServers.port("MOSQUITTO_DEFAULTS") != nil }

    /// Connects with the default settings, except that a lost connection ends the test, and that a busy machine does not.
    ///
    /// - Parameter name: The client identifier of a session that is kept; nil for none.
    func connect(keepingSessionOf name: String? = nil) async throws
        -> (transport: MQTTTransport, provider: Provider<WireEntry>)
    {
        var configuration = MQTTConfiguration(version: version)
        configuration.timeouts.confirmation = TestServers.patience
        configuration.timeouts.connect = TestServers.patience
        configuration.reconnection = .never
        configuration.userName = userName
        configuration.password = password
        if let name {
            configuration.clientIdentifier = name
            configuration.session.cleanStart = false
            configuration.session.expiry = .seconds(600)
        }
        let url = TestServers.url(variable, "mqtt")
        let transport = try MQTTTransport(url: url, configuration: configuration)
        let provider = Provider<WireEntry>(transport: transport)
        // A session is resumed by the subscription, or its messages would come before their listener.
        if name == nil { try await provider.request(.connect()) }
        return (transport, provider)
    }
}

@Suite(
    "Delivery to a slow consumer",
    .enabled(
        if: !(MQTTBroker.running + MQTTBroker.packaged).isEmpty,
        "no broker is running: Tests/Servers/with mosquitto rabbitmq activemq ejabberd nats -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct DeliveryTests {
    @Test(
        "5,000 messages of QoS 1 at full speed reach a loop that takes 1 ms for each",
        arguments: MQTTBroker.running + MQTTBroker.unlimited
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

    @Test(
        "1,500 messages of QoS 1 for an absent subscriber: what each broker keeps by default",
        arguments: MQTTBroker.running + MQTTBroker.packaged
    )
    private func absent(broker: MQTTBroker) async throws {
        let count = 1_500
        let name = "absent\(UInt32.random(in: 0 ... .max))"
        let topic = "waybill/\(name)"
        func listen() async throws -> (MQTTTransport, Messages<Message>) {
            let (transport, provider) = try await broker.connect(keepingSessionOf: name)
            return (transport, try await provider.messages(.subscribe(topic, .atLeastOnce)))
        }
        let (first, messages) = try await listen()
        await first.shutdown()
        withExtendedLifetime(messages) {}
        let (sender, sending) = try await broker.connect()
        // The publisher hears of no loss.
        for number in 0..<count {
            try await sending.request(.send(.init("\(number)"), to: topic, .atLeastOnce))
        }
        let (second, rest) = try await listen()
        let caller = Task {
            while !Task.isCancelled {
                try await sending.request(.send(.init("over"), to: topic, .atLeastOnce))
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        var numbers: Set<Int> = []
        var ends = 0
        for try await message in rest {
            if let number = message.text.flatMap({ Int($0) }) {
                numbers.insert(number)
            } else {
                // Brokers let new messages overtake those that they keep.
                ends += 1
                if ends == 10 { break }
            }
        }
        caller.cancel()
        print("| \(broker.testDescription) | \(count) | \(numbers.count) |")
        #expect(numbers.count == broker.kept ?? count)
        _ = await caller.result
        await sender.shutdown()
        await second.shutdown()
    }
}
