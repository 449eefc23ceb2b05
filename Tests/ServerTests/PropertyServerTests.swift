import Testing
import Waybill
import WaybillMQTT

/// A server with MQTT 5.
struct PropertyServer: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let variable: String
    var userName: String?
    var password: String?
    /// Whether the server has shared subscriptions, and says so in CONNACK.
    var hasShares = true

    static let running = [
        PropertyServer(testDescription: "Mosquitto", variable: "MOSQUITTO"),
        PropertyServer(
            testDescription: "ejabberd",
            variable: "EJABBERD",
            userName: "alice@localhost",
            password: "secret",
            hasShares: false
        ),
    ].filter { TestServers.port($0.variable) != nil }
}

/// Properties of MQTT 5 through Mosquitto and ejabberd.
@Suite(
    "MQTT 5 properties at real servers",
    .enabled(
        if: !PropertyServer.running.isEmpty,
        "no server is running: Tests/Servers/with mosquitto ejabberd -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct PropertyServerTests {
    private let root = "waybill/\(UInt64.random(in: 0 ... .max))"

    private func connection(
        _ server: PropertyServer,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<AnyEntry>) {
        var configuration = MQTTConfiguration(version: .v5)
        configuration.timeouts.confirmation = TestServers.patience
        configuration.timeouts.connect = TestServers.patience
        configuration.reconnection = .never
        configuration.userName = server.userName
        configuration.password = server.password
        change(&configuration)
        let transport = try MQTTTransport(
            url: TestServers.url(server.variable, "mqtt"),
            configuration: configuration
        )
        return (transport, Provider(transport: transport))
    }

    private func take(_ count: Int, _ messages: Messages<Message>) async throws -> [Message] {
        var taken: [Message] = []
        guard count > 0 else { return taken }
        for try await message in messages {
            taken.append(message)
            if taken.count == count { break }
        }
        return taken
    }

    @Test("The receipt of connect has what the server states", arguments: PropertyServer.running)
    func receipt(_ server: PropertyServer) async throws {
        let (transport, provider) = try connection(server) { $0.clientIdentifier = "" }
        let receipt = try await provider.request(.connect)
        let properties = try #require(receipt.connack)
        #expect(properties.assignedClientIdentifier?.isEmpty == false)
        #expect(receipt.clientIdentifier == properties.assignedClientIdentifier)
        #expect(properties.receiveMaximum > 0)
        #expect(properties.sharedSubscriptionAvailable == server.hasShares)
        #expect(properties.retainAvailable)
        #expect(transport.connack == properties)
        await transport.shutdown()
    }

    @Test("Every property of PUBLISH comes through", arguments: PropertyServer.running)
    func publish(_ server: PropertyServer) async throws {
        let (transport, provider) = try connection(server)
        let topic = "\(root)/publish"
        let messages = try await provider.messages(.subscribe(topic: topic, qos: .atLeastOnce))
        try await provider.request(
            .send(
                topic: topic,
                body: .text("é"),
                headers: ["k": "v", "k": "w", "content-type": "text/plain"],
                qos: .atLeastOnce,
                .expiry(.seconds(600)),
                .responseTopic("r"),
                .correlationData([0, 1, 255]),
                .payloadFormat(.text)
            )
        )
        let message = try #require(try await take(1, messages).first)
        #expect(message.text == "é" && message.contentType == "text/plain")
        #expect(message.headers == ["k": "v", "k": "w"])
        #expect(message[.payloadFormat] == .text)
        #expect(message[.responseTopic] == "r")
        #expect(message[.correlationData] == [0, 1, 255])
        let expiry = try #require(message[.expiry])
        #expect(expiry <= .seconds(600) && expiry > .seconds(300))
        await transport.shutdown()
    }

    @Test("A will with all properties reaches a subscriber", arguments: PropertyServer.running)
    func will(_ server: PropertyServer) async throws {
        let (watcher, watching) = try connection(server)
        let topic = "\(root)/will"
        let messages = try await watching.messages(.subscribe(topic: topic, qos: .atLeastOnce))
        let (transport, provider) = try connection(server) {
            $0.will = Will(
                topic: topic,
                body: "gone",
                contentType: "text/plain",
                headers: ["k": "v"],
                qos: .atLeastOnce,
                .payloadFormat(.text),
                .expiry(.seconds(600)),
                .responseTopic("r"),
                .correlationData([1, 2])
            )
        }
        try await provider.request(.connect)
        try await provider.request(.disconnect(.publishesWill))
        let message = try #require(try await take(1, messages).first)
        #expect(message.text == "gone" && message.contentType == "text/plain")
        #expect(message.headers == ["k": "v"])
        #expect(message[.payloadFormat] == .text)
        #expect(message[.responseTopic] == "r")
        #expect(message[.correlationData] == [1, 2])
        #expect(message[.expiry] != nil)
        await transport.shutdown()
        await watcher.shutdown()
    }

    /// Checks that a shared subscription is refused.
    private func expectNoShares(_ server: PropertyServer) async throws {
        let (transport, provider) = try connection(server)
        let error = await #expect(throws: WaybillError.self) {
            _ = try await provider.messages(
                .subscribe(topic: "t", qos: .atLeastOnce, .shareName("workers"))
            )
        }
        #expect(error?.code == .unsupported && error?.option == .shareName)
        await transport.shutdown()
    }

    @Test(
        "A shared subscription spreads messages over two clients, or is refused",
        arguments: PropertyServer.running
    )
    func shared(_ server: PropertyServer) async throws {
        guard server.hasShares else { return try await expectNoShares(server) }
        var joined: [(MQTTTransport, Messages<Message>)] = []
        for _ in 0..<2 {
            let (transport, provider) = try connection(server)
            let entry = AnyEntry.subscribe(
                topic: "\(root)/job/+",
                qos: .atLeastOnce,
                .shareName("workers")
            )
            joined.append((transport, try await provider.messages(entry)))
        }
        let transports = joined.map(\.0)
        let (sender, sending) = try connection(server)
        for number in 0..<100 {
            try await sending.request(
                .send(
                    topic: "\(root)/job/\(number % 10)",
                    body: .text("\(number)"),
                    qos: .atLeastOnce
                )
            )
        }
        let total = Counter()
        let tasks = joined.map { _, messages in
            Task {
                var numbers: [Int] = []
                do {
                    for try await message in messages {
                        numbers.append(Int(message.text ?? "") ?? -1)
                        guard await total.next() == 100 else { continue }
                        for transport in transports { await transport.shutdown() }
                    }
                } catch let error as WaybillError where error.code == .shutDown {}
                return numbers
            }
        }
        var heard: [[Int]] = []
        for task in tasks { heard.append(try await task.value) }
        #expect(heard.flatMap { $0 }.sorted() == Array(0..<100))
        #expect(heard.allSatisfy { !$0.isEmpty }, "\(heard.map(\.count))")
        await sender.shutdown()
    }

    @Test(
        "Subscription identifiers, chosen and shared by the filters of a call",
        arguments: PropertyServer.running
    )
    func identifiers(_ server: PropertyServer) async throws {
        let (transport, provider) = try connection(server)
        let receipt = try await provider.request(.connect)
        let hasIdentifiers =
            receipt.connack?.subscriptionIdentifiersAvailable == true
        if hasIdentifiers {
            let chosen = try await provider.messages(
                .subscribe(
                    topics: ["\(root)/a/+", "\(root)/b/+"],
                    qos: .atLeastOnce,
                    options: [.subscriptionIdentifier(4_242)]
                )
            )
            for name in ["a/1", "b/1"] {
                try await provider.request(
                    .send(topic: "\(root)/\(name)", body: .text(name), qos: .atLeastOnce)
                )
            }
            let heard = try await take(2, chosen)
            #expect(heard.map(\.text) == ["a/1", "b/1"])
            #expect(heard.map { $0[.subscriptionIdentifiers] } == [[4_242], [4_242]])
        }
        let both = try await provider.messages(
            .subscribe(topics: ["\(root)/c", "\(root)/d"], qos: .atLeastOnce)
        )
        let one = try await provider.messages(.subscribe(topic: "\(root)/c", qos: .atLeastOnce))
        for name in ["d", "c"] {
            try await provider.request(
                .send(topic: "\(root)/\(name)", body: .text(name), qos: .atLeastOnce)
            )
        }
        #expect(try await take(2, both).map(\.text) == ["d", "c"])
        #expect(try await take(1, one).map(\.text) == ["c"])
        try await provider.request(.unsubscribe(topics: ["\(root)/c", "\(root)/d"]))
        await transport.shutdown()
    }

    @Test(
        "User properties and a share name in SUBSCRIBE and UNSUBSCRIBE",
        arguments: PropertyServer.running
    )
    func subscribe(_ server: PropertyServer) async throws {
        let (transport, provider) = try connection(server)
        let topic = "\(root)/subscribe"
        _ = try await provider.messages(
            .subscribe(
                topics: [EntryTopic(topic)],
                headers: ["k": "v"],
                qos: .atLeastOnce,
                options: server.hasShares ? [.shareName("g")] : []
            )
        )
        try await provider.request(
            .unsubscribe(
                topics: [EntryTopic(topic)],
                headers: ["k": "v"],
                options: server.hasShares ? [.shareName("g")] : []
            )
        )
        await transport.shutdown()
    }

    @Test(
        "The acknowledgement of a QoS 2 message completes with its exchange",
        arguments: PropertyServer.running
    )
    func exchange(_ server: PropertyServer) async throws {
        let (transport, provider) = try connection(server)
        let topic = "\(root)/exchange"
        let messages = try await provider.messages(
            .subscribe(topic: topic, qos: .exactlyOnce, .manualAcknowledgement)
        )
        for number in 0..<5 {
            try await provider.request(
                .send(topic: topic, body: .text("\(number)"), qos: .exactlyOnce)
            )
        }
        // One after the other, because ejabberd has one unacknowledged message under way.
        var iterator = messages.makeAsyncIterator()
        for number in 0..<5 {
            let message = try #require(try await iterator.next())
            #expect(message.text == "\(number)")
            let id = try #require(message.id)
            try await provider.request(AnyEntry(command: .ack(id, .awaitsCompletion)))
        }
        await transport.shutdown()
    }
}

/// Counts what several tasks have received.
private actor Counter {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}
