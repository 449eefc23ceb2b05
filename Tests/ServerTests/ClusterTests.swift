#if os(Linux)
    import Testing
    import Waybill
    import WaybillMQTT
    import WaybillSTOMP

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
                configuration.login = "guest"
                configuration.passcode = "guest"
                configuration.connectTimeout = .seconds(5)
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
            configuration.cleanStart = false
            configuration.keepAlive = .seconds(10)
            configuration.connectTimeout = .seconds(5)
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
            .enabled(if: Cluster(.rabbitMQMQTT) != nil, Comment(rawValue: reason))
        )
        func rabbitMQ() async throws {
            try await run("RabbitMQ, MQTT", .rabbitMQMQTT) { configuration in
                configuration.userName = "guest"
                configuration.password = "guest"
            }
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
    }
#endif
