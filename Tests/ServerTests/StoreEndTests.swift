#if os(Linux)
    import Foundation
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
    import WireTestSupport

    /// Processes that send one message each to a broker, one after another, with the same store.
    @Suite(
        "Ended clients with a store",
        .enabled(
            if: MosquittoServer.isRunning && STOMPServer.areRabbitMQsRunning,
            "Mosquitto or RabbitMQ is not running: Tests/Servers/with --install -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct StoreEndTests {
        enum Broker: String, CaseIterable, CustomTestStringConvertible {
            case mosquitto3_1_1 = "3"
            case mosquitto5 = "5"
            case rabbitMQ = "stomp"

            var testDescription: String { rawValue }

            var port: Int? {
                TestServers.port(self == .rabbitMQ ? "RABBITMQ_STOMP" : "MOSQUITTO")
            }

            /// A client that hears what arrives.
            func receiver() throws -> any Transport {
                switch self {
                case .mosquitto3_1_1: try MosquittoServer.transport(.v3_1_1)
                case .mosquitto5: try MosquittoServer.transport(.v5)
                case .rabbitMQ: try STOMPServer.rabbitMQ.transport()
                }
            }

            func qos(_ qos: Int) -> QoS {
                self == .rabbitMQ ? .atLeastOnce : qos == 2 ? .exactlyOnce : .atLeastOnce
            }
        }

        /// The name of the client and of the topic, which RabbitMQ takes for that of a queue.
        private let name = "/queue/end-\(UInt64.random(in: 0 ... .max))"

        private var store: String {
            FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-\(name.dropFirst(7))").path
        }

        private func process(
            _ broker: Broker,
            to port: Int,
            waits: Bool = false,
            _ words: String...
        ) throws -> ChildProcess {
            try ChildProcess(
                "WaybillStoreProcess",
                [words[0], "\(port)", broker.rawValue, name, store] + words.dropFirst(),
                environment: waits ? [:] : ["WAYBILL_WAITS": "no"]
            )
        }

        /// What a receiver hears until the last message, which the test itself sends.
        private func heard(
            _ messages: Messages<Message>,
            _ provider: Provider<AnyEntry>,
            _ broker: Broker
        ) async throws -> [String] {
            try await provider.request(
                .send(topic: name, body: .text("over"), qos: broker.qos(2))
            )
            var heard: [String] = []
            for try await message in messages {
                heard.append(message.body.text ?? "")
                if heard.last == "over" { break }
            }
            return heard
        }

        @Test(
            "What was acknowledged before a clean end, or a kill, is not sent again; what failed, not at all",
            arguments: Broker.allCases,
            [
                ("disconnect", 1), ("disconnect", 2), ("shutdown", 1), ("withConnection", 1),
                ("kill", 2),
            ]
        )
        func ends(_ broker: Broker, _ end: (name: String, qos: Int)) async throws {
            defer { try? FileManager.default.removeItem(atPath: store) }
            let port = try #require(broker.port)
            let receiver = try broker.receiver()
            let provider = Provider<AnyEntry>(transport: receiver)
            let messages = try await provider.messages(
                .subscribe(topic: name, qos: broker.qos(2))
            )
            let bodies = (1...6).map(String.init)
            for body in bodies {
                // A port without a server: the caller is told that nothing arrives. One process at a time has the store.
                for (body, port, line) in [
                    ("failed", 1, "connectionRefused false"), (body, port, "sent"),
                ] {
                    let process = try process(
                        broker,
                        to: port,
                        "once",
                        body,
                        "\(broker.qos(end.qos).rawValue)",
                        end.name
                    )
                    try await process.waitForLine(line)
                    if end.name == "kill" {
                        try await process.killNow()
                    } else {
                        try await process.waitForEnd()
                    }
                }
            }
            try await process(broker, to: port, "finish").waitForEnd()
            var all = try await heard(messages, provider, broker)
            if broker == .rabbitMQ, end.name == "kill" {
                // Killed between the receipt and its note on the disk, a message without a session comes twice.
                all = all.enumerated().filter { !all[..<$0.offset].contains($0.element) }.map(
                    \.element
                )
            }
            #expect(all == bodies + ["over"])
            await receiver.shutdown()
        }

        @Test(
            "What waits offline is sent by the process after a kill, once",
            arguments: Broker.allCases
        )
        func offline(_ broker: Broker) async throws {
            defer { try? FileManager.default.removeItem(atPath: store) }
            let port = try #require(broker.port)
            let receiver = try broker.receiver()
            let provider = Provider<AnyEntry>(transport: receiver)
            let messages = try await provider.messages(
                .subscribe(topic: name, qos: broker.qos(2))
            )
            let away = try process(broker, to: 1, waits: true, "once", "away", "1", "vanish")
            try await away.waitForLine("stored")
            try await away.killNow()
            try await process(broker, to: port, waits: true, "finish").waitForEnd()
            try await process(broker, to: port, waits: true, "finish").waitForEnd()
            #expect(try await heard(messages, provider, broker) == ["away", "over"])
            await receiver.shutdown()
        }
    }
#endif
