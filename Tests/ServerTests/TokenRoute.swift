#if os(Linux)
    import Testing
    import Waybill
    import WaybillMQTT
    import WaybillSSE
    import WaybillSTOMP

    /// A server that checks tokens, and the place where a request carries the token.
    struct TokenRoute: Sendable, CustomTestStringConvertible {
        enum Service: Sendable {
            case mqtt(MQTTConfiguration.Version)
            case stomp
            case eventStream
        }

        var name: String
        var service: Service
        /// The environment variable with the server's port.
        var variable: String
        /// The scheme and the path of the URL.
        var scheme: String
        var path = ""
        /// The login and passcode of routes that carry the token elsewhere; nil when the token is the passcode.
        var guest: String?
        var placement = TokenPlacement.password(userName: "ada")

        var testDescription: String { name }

        /// True when a send outlives the connection.
        var isQueued: Bool {
            if case .mqtt = service { true } else { false }
        }

        /// The routes, three at a time: they mostly wait for the second in which a token expires.
        static let groups = stride(from: 0, to: all.count, by: 3).map {
            Array(all[$0...].prefix(3))
        }

        static let all = [
            TokenRoute(
                name: "MQTT 5, password (Mosquitto)",
                service: .mqtt(.v5),
                variable: "TOKENS_MQTT",
                scheme: "mqtt"
            ),
            TokenRoute(
                name: "MQTT 5, user property of CONNECT (Mosquitto)",
                service: .mqtt(.v5),
                variable: "TOKENS_PROPERTY",
                scheme: "mqtt",
                placement: .header("token", on: [.connect]) { $0 }
            ),
            TokenRoute(
                name: "MQTT 3.1.1, password (Mosquitto)",
                service: .mqtt(.v3_1_1),
                variable: "TOKENS_MQTT",
                scheme: "mqtt"
            ),
            TokenRoute(
                name: "MQTT 3.1.1, password (RabbitMQ)",
                service: .mqtt(.v3_1_1),
                variable: "TOKENS_RABBITMQ_MQTT",
                scheme: "mqtt"
            ),
            TokenRoute(
                name: "STOMP, passcode (RabbitMQ)",
                service: .stomp,
                variable: "TOKENS_STOMP",
                scheme: "stomp"
            ),
            TokenRoute(
                name: "STOMP, header of CONNECT (RabbitMQ)",
                service: .stomp,
                variable: "TOKENS_HEADER",
                scheme: "stomp",
                guest: "guest",
                placement: .header("Authorization", on: [.connect]) { "Bearer \($0)" }
            ),
            TokenRoute(
                name: "MQTT 5, header of the upgrade (nginx before Mosquitto)",
                service: .mqtt(.v5),
                variable: "TOKENS_NGINX",
                scheme: "ws",
                path: "/mqtt",
                placement: .upgradeHeader()
            ),
            TokenRoute(
                name: "STOMP, header of the upgrade (nginx before RabbitMQ)",
                service: .stomp,
                variable: "TOKENS_NGINX",
                scheme: "ws",
                path: "/stomp",
                guest: "guest",
                placement: .upgradeHeader()
            ),
            TokenRoute(
                name: "SSE, Authorization: Bearer (nginx with nchan)",
                service: .eventStream,
                variable: "TOKENS_NGINX",
                scheme: "http",
                placement: .bearer
            ),
        ]

        /// A transport to the server through another port.
        func transport(through port: UInt16) throws -> any Transport {
            let url = "\(scheme)://127.0.0.1:\(port)\(path)"
            var reconnection = ReconnectionPolicy()
            reconnection.initialDelay = .milliseconds(5)
            reconnection.maximumDelay = .milliseconds(100)
            switch service {
            case .mqtt(let version):
                var configuration = MQTTConfiguration(version: version)
                configuration.clientIdentifier = "tokens-\(UInt32.random(in: 0 ... .max))"
                configuration.session.cleanStart = false
                configuration.session.expiry = version == .v5 ? .seconds(3_600) : nil
                configuration.reconnection = reconnection
                return try MQTTTransport(url: url, configuration: configuration)
            case .stomp:
                var configuration = STOMPConfiguration()
                configuration.host = "/"
                configuration.userName = guest
                configuration.password = guest
                configuration.reconnection = reconnection
                return try STOMPTransport(url: url, configuration: configuration)
            case .eventStream:
                var configuration = SSEConfiguration()
                configuration.reconnection = reconnection
                return try SSETransport(url: url, configuration: configuration)
            }
        }

        /// An entry that sends a number to a topic of this test.
        func send(_ number: Int, to topic: String) -> TokenEntry {
            let text = EntryBody.text("\(number)")
            return switch service {
            case .mqtt:
                TokenEntry(topic: topic, command: .send(qos: .atLeastOnce), body: text)
            case .stomp:
                TokenEntry(topic: "/queue/\(topic)", command: .send, body: text)
            case .eventStream:
                TokenEntry(topic: "/publish/\(topic)", command: .send, body: text)
            }
        }

        /// An entry that subscribes to the topic.
        func listen(to topic: String) -> TokenEntry {
            switch service {
            case .mqtt:
                TokenEntry(topic: topic, command: .subscribe(qos: .atLeastOnce))
            case .stomp:
                TokenEntry(
                    topic: "/queue/\(topic)",
                    command: .subscribe(.ackMode(.clientIndividual))
                )
            case .eventStream:
                TokenEntry(topic: "/events/\(topic)", command: .subscribe)
            }
        }
    }

    /// An entry for every service.
    struct TokenEntry: EntryType {
        var topic: String?
        var command: EntryCommand
        var body = EntryBody.none
    }
#endif
