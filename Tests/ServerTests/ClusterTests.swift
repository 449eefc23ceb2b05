#if os(Linux)
    import Testing
    import Waybill
    import WaybillMQTT
    import WaybillSTOMP
    import WireCore
    import WireTestSupport

    /// What the subscriber of a test has heard, and how often it has tried to connect.
    private final class Side: Sendable {
        private let texts = Locked<Set<String>>([])
        private let states = Locked((attempts: 0, connects: 0))

        var attempts: Int { states.withLock(\.attempts) }
        var connects: Int { states.withLock(\.connects) }

        func read(_ messages: Messages<Message>) async throws {
            for try await message in messages {
                _ = texts.withLock { $0.insert(message.text ?? "") }
            }
        }

        func watch(_ changes: ConnectionStates) async {
            for await change in changes {
                switch change {
                case .connecting: states.withLock { $0.attempts += 1 }
                case .connected: states.withLock { $0.connects += 1 }
                case .idle, .waiting, .paused, .disconnected: break
                }
            }
        }

        func forgetStates() { states.withLock { $0 = (0, 0) } }

        func count(_ prefix: String) -> Int {
            texts.withLock { $0.count { $0.hasPrefix(prefix) } }
        }
    }

    /// Numbered messages through clusters whose nodes are killed: what was acknowledged arrives.
    ///
    /// `WAYBILL_CLUSTER_KILLS` and `WAYBILL_CLUSTER_MESSAGES` set the length; 3 kills and 3,000 messages by default.
    @Suite(
        "Clusters whose nodes are killed",
        .serialized,
        .timeLimit(.minutes(30))
    )
    struct ClusterTests {
        private static let reason =
            "the cluster is not running: Tests/Servers/with rabbitmq-cluster nats-cluster -- swift test"

        private let name = "cluster-\(UInt32.random(in: 0 ... .max))"

        private func pause(_ policy: inout ReconnectionPolicy) {
            policy.initialDelay = .milliseconds(300)
            policy.maximumDelay = .seconds(2)
        }

        // MARK: RabbitMQ over STOMP

        @Test(
            "RabbitMQ, STOMP: receipts and a quorum queue",
            .enabled(if: Cluster(.rabbitMQSTOMP) != nil, Comment(rawValue: reason))
        )
        func stomp() async throws {
            let cluster = try #require(Cluster(.rabbitMQSTOMP))
            func transport(from node: Int) throws -> STOMPTransport {
                let hosts = cluster.hosts(from: node)
                var configuration = STOMPConfiguration()
                configuration.host = "/"
                configuration.userName = "guest"
                configuration.password = "guest"
                configuration.timeouts.connect = .seconds(5)
                configuration.failover.hosts = Array(hosts.dropFirst())
                pause(&configuration.reconnection)
                return try STOMPTransport(url: "stomp://\(hosts[0])", configuration: configuration)
            }
            let queue = "/queue/\(name)"
            let quorum: Headers = [
                "x-queue-type": "quorum", "durable": "true", "auto-delete": "false",
            ]
            let (publisher, subscriber) = (try transport(from: 0), try transport(from: 1))
            let provider = Provider<FrameEntry>(transport: publisher)
            var headers = quorum
            headers["prefetch-count"] = "100"
            let messages = try await Provider<FrameEntry>(transport: subscriber)
                .messages(.subscribe(queue, .clientIndividual, headers: headers))
            try await provider.request(.connect)
            let run = ClusterRun("RabbitMQ, STOMP", cluster)
            try await run(
                .init(
                    publisher: publisher,
                    subscriber: subscriber,
                    send: { number in
                        var headers = quorum
                        headers["persistent"] = "true"
                        try await provider.request(
                            .send(.init("\(number)"), to: queue, headers: headers)
                        )
                    },
                    messages: messages
                )
            )
        }

        // MARK: MQTT

        private func mqtt(
            _ cluster: Cluster,
            _ client: String,
            from node: Int,
            _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) throws -> MQTTTransport {
            let hosts = cluster.hosts(from: node)
            var configuration = MQTTConfiguration(version: .v3_1_1)
            configuration.clientIdentifier = "\(name)-\(client)"
            configuration.session.cleanStart = false
            configuration.keepAlive.interval = .seconds(10)
            configuration.timeouts.connect = .seconds(5)
            configuration.failover.hosts = Array(hosts.dropFirst())
            pause(&configuration.reconnection)
            change(&configuration)
            return try MQTTTransport(url: "mqtt://\(hosts[0])", configuration: configuration)
        }

        private func run(
            _ title: String,
            _ listener: Cluster.Listener,
            _ change: (inout MQTTConfiguration) -> Void = { _ in },
            passedOver: @escaping @Sendable (Cluster) async -> Int = { _ in 0 }
        ) async throws {
            let cluster = try #require(Cluster(listener))
            let publisher = try mqtt(cluster, "publisher", from: 0, change)
            let subscriber = try mqtt(cluster, "subscriber", from: 1, change)
            let provider = Provider<WireEntry>(transport: publisher)
            let topic = name
            let messages = try await Provider<WireEntry>(transport: subscriber)
                .messages(.subscribe(topic, .atLeastOnce))
            try await provider.request(.connect())
            let run = ClusterRun(title, cluster)
            try await run(
                .init(
                    publisher: publisher,
                    subscriber: subscriber,
                    send: { number in
                        try await provider.request(
                            .send(.init("\(number)"), to: topic, .atLeastOnce)
                        )
                    },
                    messages: messages,
                    passedOver: { await passedOver(cluster) }
                )
            )
        }

        @Test(
            "RabbitMQ, MQTT 3.1.1: QoS 1 and a session in a quorum queue",
            .enabled(
                if: Cluster(.rabbitMQMQTT) != nil && !Cluster.hasClassicQueues,
                Comment(rawValue: reason)
            )
        )
        func rabbitMQ() async throws {
            try await run("RabbitMQ, MQTT", .rabbitMQMQTT) { configuration in
                configuration.userName = "guest"
                configuration.password = "guest"
            }
        }

        /// The other nodes accept the session, and end the connection instead of granting its subscription. Messages
        /// that are published meanwhile reach no queue: what the server does with them is not the client's.
        @Test(
            "RabbitMQ, MQTT 3.1.1: a session whose home node is down comes back with the node",
            .enabled(
                if: Cluster(.rabbitMQMQTT) != nil && Cluster.hasClassicQueues,
                "the cluster with WAYBILL_RABBITMQ_CLUSTER_QUEUES=classic is not running"
            )
        )
        func homeNode() async throws {
            let cluster = try #require(Cluster(.rabbitMQMQTT))
            func configure(_ configuration: inout MQTTConfiguration) {
                configuration.userName = "guest"
                configuration.password = "guest"
            }
            let publisher = try mqtt(cluster, "publisher", from: 0, configure)
            let subscriber = try mqtt(cluster, "subscriber", from: 1, configure)
            let provider = Provider<WireEntry>(transport: publisher)
            let messages = try await Provider<WireEntry>(transport: subscriber)
                .messages(.subscribe(name, .atLeastOnce))
            let side = Side()
            let listener = Task { try await side.read(messages) }
            let watcher = Task { await side.watch(subscriber.states) }
            defer {
                listener.cancel()
                watcher.cancel()
            }
            func send(_ text: String) async throws {
                while true {
                    do {
                        return try await provider.request(
                            .send(.init(text), to: name, .atLeastOnce)
                        )
                    } catch let error as WaybillError where error.isRetryable {
                        // A healthy node cuts its connections, too, when another one dies, and may answer late.
                        try await Task.sleep(for: .milliseconds(100))
                    }
                }
            }
            for number in 0..<100 { try await send("before \(number)") }
            while side.count("before") < 100 { try await Task.sleep(for: .milliseconds(20)) }

            try await cluster.kill(1)
            for number in 0..<100 { try await send("meanwhile \(number)") }
            side.forgetStates()
            let kill = ContinuousClock.now
            try await Task.sleep(for: .seconds(10))
            // Each attempt tries all nodes, and a node that elects a leader may let it wait.
            try await waitUntil { side.attempts >= 3 }
            let (attempted, seconds) = (side.attempts, kill.duration(to: .now) / .seconds(1))
            #expect(side.connects == 0, "the session is on no other node")
            // The pauses between attempts grow from 0.3 s to 2 s.
            #expect(Double(attempted) <= 3 * seconds)

            let start = ContinuousClock.now
            try await cluster.start(1)
            var probes = 0
            while side.count("probe") == 0 {
                try await send("probe \(probes)")
                probes += 1
                try await Task.sleep(for: .milliseconds(100))
            }
            let time = start.duration(to: .now) / .seconds(1)
            for number in 0..<100 { try await send("after \(number)") }
            while side.count("after") < 100 { try await Task.sleep(for: .milliseconds(20)) }
            print(
                "cluster, RabbitMQ, MQTT, classic queue: \(attempted) attempts in \(seconds) s without the home node; "
                    + "traffic again \(time) s after its start; \(side.count("meanwhile")) of 100 messages kept"
            )
            for transport in [publisher, subscriber] { await transport.shutdown() }
        }

        @Test(
            "NATS, MQTT 3.1.1: QoS 1 and a session in JetStream",
            .enabled(if: Cluster(.natsMQTT) != nil, Comment(rawValue: reason))
        )
        func nats() async throws {
            try await run(
                "NATS, MQTT",
                .natsMQTT,
                passedOver: { NATSStreams(await $0.answers()).passedOver }
            )
        }

        @Test(
            "NATS: a message without an acknowledgement comes again on the same connection",
            .enabled(if: Cluster(.natsMQTT) != nil, Comment(rawValue: reason))
        )
        func repeated() async throws {
            let cluster = try #require(Cluster(.natsMQTT))
            let transport = try mqtt(cluster, "repeated", from: 0)
            let side = Side()
            let watcher = Task { await side.watch(transport.states) }
            defer { watcher.cancel() }
            let provider = Provider<AnyEntry>(transport: transport)
            let messages = try await provider.messages(
                .subscribe(topic: name, qos: .atLeastOnce, .manualAcknowledgement)
            )
            var iterator = messages.makeAsyncIterator()
            for text in ["first", "second"] {
                try await provider.request(
                    .send(topic: name, body: .text(text), qos: .atLeastOnce)
                )
            }
            // The server waits for 2 s, and sends those again that are not acknowledged.
            let first = try #require(try await iterator.next())
            let second = try #require(try await iterator.next())
            #expect([first.text, second.text] == ["first", "second"])
            #expect(!first.isDuplicate && !second.isDuplicate)
            try await provider.request(AnyEntry(command: .ack(try #require(first.id))))
            // A slow machine may get the first message again, too.
            func next(_ text: String) async throws -> Message {
                while let message = try await iterator.next() {
                    if message.text == text { return message }
                    #expect(message.isDuplicate)
                    try await provider.request(AnyEntry(command: .ack(try #require(message.id))))
                }
                throw WaybillError(.connectionLost, "the messages have ended")
            }
            let again = try await next("second")
            #expect(again.isDuplicate)
            #expect(side.connects == 1)
            try await provider.request(AnyEntry(command: .ack(try #require(again.id))))
            try await provider.request(
                .send(topic: name, body: .text("third"), qos: .atLeastOnce)
            )
            let third = try await next("third")
            try await provider.request(AnyEntry(command: .ack(try #require(third.id))))
            await transport.shutdown()
        }
    }
#endif
