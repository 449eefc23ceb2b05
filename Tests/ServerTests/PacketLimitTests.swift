#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
    import WaybillTesting
    import WireTestSupport

    /// A Mosquitto that closes the connection when a packet has more than 2,000 bytes.
    ///
    /// In MQTT 3.1.1 it cannot tell the limit. In MQTT 5 CONNACK has it, so the transport refuses such a message.
    @Suite(
        "Mosquitto with a limit of packets",
        .enabled(
            if: MosquittoServer.isRunning,
            "Mosquitto is not running: Tests/Servers/with --install -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct PacketLimitTests {
        private static let long = String(repeating: "x", count: 5_000)

        private func transport(
            _ broker: PersistentBroker,
            _ identifier: String,
            _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) throws -> MQTTTransport {
            var configuration = MQTTConfiguration(version: .v3_1_1)
            configuration.clientIdentifier = identifier
            configuration.reconnection.initialDelay = .milliseconds(5)
            configuration.reconnection.maximumDelay = .milliseconds(50)
            change(&configuration)
            return try MQTTTransport(
                url: "mqtt://127.0.0.1:\(broker.port)",
                configuration: configuration
            )
        }

        @Test(
            "A message that is too long fails, and those behind it arrive in order",
            // With a lost session, a message of QoS 2 fails at once.
            arguments: [(true, QoS.atLeastOnce), (false, .atLeastOnce), (false, .exactlyOnce)]
        )
        func tooLong(cleanStart: Bool, qos: QoS) async throws {
            let broker = try await PersistentBroker(["max_packet_size 2000"])
            defer { broker.kill() }
            let receiver = try transport(broker, "receiver")
            let messages = try await Provider<WireEntry>(transport: receiver)
                .messages(.subscribe("t", qos))
            let sender = try transport(broker, "sender") { $0.session.cleanStart = cleanStart }
            let provider = Provider<WireEntry>(transport: sender)
            let first = provider.enqueue(.send(.init("first"), to: "t", qos))
            let bad = provider.enqueue(.send(.init(Self.long), to: "t", qos))
            let others = (0..<30).map { provider.enqueue(.send(.init("\($0)"), to: "t", qos)) }
            await expectError(.rejected) { try await bad.receipt }
            _ = try await first.receipt
            for send in others { _ = try await send.receipt }
            var arrived: [String] = []
            for text in try await texts(31, messages) where !arrived.contains(text) {
                arrived.append(text)
            }
            #expect(arrived == ["first"] + (0..<30).map { "\($0)" })
            await sender.shutdown()
            await receiver.shutdown()
            await broker.stop()
        }

        @Test(
            "With a store, the next transport goes on with the count, and the message leaves the store"
        )
        func stored() async throws {
            let broker = try await PersistentBroker(["max_packet_size 2000"])
            defer { broker.kill() }
            let store = InMemorySessionStore()
            func client(_ change: (inout MQTTConfiguration) -> Void) throws -> MQTTTransport {
                try transport(broker, "sender") {
                    $0.session.cleanStart = false
                    $0.session.store = store
                    change(&$0)
                }
            }
            // No connection follows the first one in time.
            let first = try client {
                $0.reconnection.initialDelay = .seconds(36_000)
                $0.reconnection.maximumDelay = .seconds(36_000)
            }
            let send = Provider<WireEntry>(transport: first)
                .enqueue(.send(.init(Self.long), to: "t", .atLeastOnce))
            try await waitUntil { store.messages().first?.suspiciousEnds == 1 }
            await first.shutdown()
            _ = try? await send.receipt
            let next = try client { _ in }
            var events = next.events.makeAsyncIterator()
            let good = Provider<WireEntry>(transport: next)
                .enqueue(.send(.init("good"), to: "t", .atLeastOnce))
            _ = try await good.receipt
            let failure = await take(to: .sendFailed, &events).last
            #expect(failure?.error?.code == .rejected)
            try await waitUntil { store.messages().isEmpty }
            await next.shutdown()
            await broker.stop()
        }
    }
#endif
