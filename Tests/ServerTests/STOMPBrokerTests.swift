import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WireCore

@Suite(
    "STOMP brokers",
    .enabled(
        if: STOMPServer.areRunning,
        "RabbitMQ and ActiveMQ are not running: Tests/Servers/with --install rabbitmq activemq -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct STOMPBrokerTests {
    private func queue(_ name: String = #function) -> String {
        "/queue/waybill-\(UInt64.random(in: 0 ... .max))-\(name.prefix { $0 != "(" })"
    }

    private func collect(_ count: Int, _ messages: Messages<Message>) async throws -> [Message] {
        var collected: [Message] = []
        for try await message in messages {
            collected.append(message)
            if collected.count == count { break }
        }
        return collected
    }

    @Test("Messages go there and back in order, with receipts", arguments: STOMPServer.all)
    func roundTrip(server: STOMPServer) async throws {
        let (transport, provider) = try server.provider()
        let receipt = try await provider.request(.connect)
        #expect(receipt.reason?.hasPrefix("STOMP 1.2") == true)
        let queue = queue()
        let messages = try await provider.messages(.subscribe(queue, .auto))
        for number in 0..<100 { try await provider.request(.send(.init("\(number)"), to: queue)) }
        let heard = try await collect(100, messages)
        #expect(heard.map(\.text) == (0..<100).map { "\($0)" })
        #expect(heard.allSatisfy { $0.topic == queue })
        try await provider.request(.unsubscribe(queue))
        try await provider.request(.disconnect)
        await transport.shutdown()
    }

    @Test(
        "Every version of the protocol",
        arguments: STOMPServer.all,
        STOMPConfiguration.Version.allCases
    )
    func versions(server: STOMPServer, version: STOMPConfiguration.Version) async throws {
        let transport = try server.transport { $0.versions = [version] }
        let provider = Provider<FrameEntry>(transport: transport)
        let queue = queue()
        let mode: AckMode = version == .v1_0 ? .client : .clientIndividual
        let messages = try await provider.messages(.subscribe(queue, mode))
        for number in 0..<10 { try await provider.request(.send(.init("\(number)"), to: queue)) }
        #expect(try await collect(10, messages).map(\.text) == (0..<10).map { "\($0)" })
        await transport.shutdown()
    }

    @Test(
        "What is acknowledged does not come again, what is not does",
        arguments: STOMPServer.all
    )
    func acknowledgement(server: STOMPServer) async throws {
        let queue = queue()
        let first = try server.transport()
        let provider = Provider<FrameEntry>(transport: first)
        for text in ["a", "b", "c"] {
            try await provider.request(
                .send(.init(text), to: queue, headers: ["persistent": "true"])
            )
        }
        let messages = try await provider.messages(
            .subscribe(queue, .clientIndividual, isManual: true)
        )
        let heard = try await collect(3, messages)
        #expect(heard.map(\.text) == ["a", "b", "c"])
        let second = try #require(heard[1].id)
        try await provider.request(.ack(second))
        // A message can be acknowledged only once.
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.ack(second))
        }
        #expect(error?.code == .invalidEntry)
        await first.shutdown()

        let other = try server.transport()
        let again = try await Provider<FrameEntry>(transport: other)
            .messages(.subscribe(queue, .auto))
        let redelivered = try await collect(2, again)
        #expect(redelivered.map(\.text) == ["a", "c"])
        #expect(redelivered.allSatisfy { $0.isDuplicate })
        await other.shutdown()
    }

    @Test("A subscription that RabbitMQ refuses with ERROR ends alone")
    func refusedSubscription() async throws {
        let (locked, good) = (queue("locked"), queue("good"))
        let (owner, owning) = try STOMPServer.rabbitMQ.provider()
        let owned = try await owning.messages(
            .subscribe(
                locked,
                .auto,
                headers: ["exclusive": "true", "durable": "false", "auto-delete": "true"]
            )
        )
        let (transport, provider) = try STOMPServer.rabbitMQ.provider {
            $0.reconnection = ReconnectionPolicy()
            $0.reconnection.initialDelay = .milliseconds(10)
        }
        let messages = try await provider.messages(.subscribe(good, .auto))
        let error = await #expect(throws: WaybillError.self) {
            try await provider.messages(.subscribe(locked, .auto))
        }
        #expect(error?.code == .rejected)
        #expect(
            error?.peerReason?.contains("resource_locked") == true,
            "\(String(describing: error))"
        )
        try await provider.request(.send("still here", to: good))
        #expect(try await collect(1, messages).map(\.text) == ["still here"])
        await transport.shutdown()
        await owner.shutdown()
        withExtendedLifetime(owned) {}
    }

    @Test("NACK makes RabbitMQ deliver again", arguments: STOMPServer.rabbitMQs)
    func nackRedelivers(server: STOMPServer) async throws {
        let (transport, provider) = try server.provider()
        let queue = queue()
        let messages = try await provider.messages(
            .subscribe(queue, .clientIndividual, isManual: true)
        )
        try await provider.request(.send("once more", to: queue))
        var iterator = messages.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        #expect(!first.isDuplicate)
        try await provider.request(.nack(try #require(first.id)))
        let second = try #require(try await iterator.next())
        #expect(second.isDuplicate)
        #expect(second.text == "once more")
        try await provider.request(.ack(try #require(second.id)))
        await transport.shutdown()
    }

    @Test("NACK makes ActiveMQ bury the message; its ids are escaped on the wire")
    func nackBuries() async throws {
        let transport = try STOMPServer.activeMQ.transport()
        let provider = Provider<FrameEntry>(transport: transport)
        let queue = queue()
        let dead = try await provider.messages(.subscribe("/queue/ActiveMQ.DLQ", .auto))
        let messages = try await provider.messages(
            .subscribe(queue, .clientIndividual, isManual: true)
        )
        try await provider.request(.send("bury me", to: queue, headers: ["persistent": "true"]))
        var iterator = messages.makeAsyncIterator()
        let message = try #require(try await iterator.next())
        #expect(message.headers["message-id"]?.hasPrefix("ID:") == true)
        try await provider.request(.nack(try #require(message.id)))
        for try await buried in dead
        where buried.headers["original-destination"] != nil || buried.text == "bury me" {
            #expect(buried.text == "bury me")
            break
        }
        await transport.shutdown()
    }

    @Test("A transaction takes effect as a whole, or not at all", arguments: STOMPServer.all)
    func transactions(server: STOMPServer) async throws {
        let (transport, provider) = try server.provider()
        let queue = queue()
        let messages = try await provider.messages(.subscribe(queue, .auto))
        try await provider.request(.begin("t1"))
        try await provider.request(.send("aborted", to: queue, headers: ["transaction": "t1"]))
        try await provider.request(.abort("t1"))
        try await provider.request(.begin("t2"))
        try await provider.request(.send("committed 1", to: queue, headers: ["transaction": "t2"]))
        try await provider.request(.send("committed 2", to: queue, headers: ["transaction": "t2"]))
        try await provider.request(.send("outside", to: queue))
        try await provider.request(.commit("t2"))
        let heard = try await collect(3, messages).map(\.text)
        #expect(heard == ["outside", "committed 1", "committed 2"])
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.commit("t2"))
        }
        #expect(error?.code == .invalidEntry)
        await transport.shutdown()
    }

    @Test(
        "Bodies of any bytes, and headers with everything that has an escape",
        arguments: STOMPServer.all
    )
    func bodiesAndHeaders(server: STOMPServer) async throws {
        let (transport, provider) = try server.provider()
        let queue = queue()
        let messages = try await provider.messages(.subscribe(queue, .auto))
        let value = "colon: backslash\\ line\nreturn\r end é€😀"
        let payloads: [Payload] = [
            "", "\0", "a\0b\0", "line\n\nline\r\n\0\n",
            .init(String(repeating: "é", count: 1 << 19)),
        ]
        for payload in payloads {
            try await provider.request(
                .send(payload, to: queue, headers: ["x-value": value], contentType: "text/x-test")
            )
        }
        let heard = try await collect(payloads.count, messages)
        #expect(heard.map(\.body) == payloads)
        #expect(heard.map { $0.headers["x-value"] } == payloads.map { _ in value })
        #expect(heard.allSatisfy { $0.contentType == "text/x-test" })
        await transport.shutdown()
    }

    @Test("Bytes that are no text", arguments: [STOMPServer.rabbitMQ, .activeMQ])
    func binary(server: STOMPServer) async throws {
        let (transport, provider) = try server.provider()
        let queue = queue()
        let messages = try await provider.messages(.subscribe(queue, .auto))
        let bytes = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try await provider.request(.send(.init(bytes), to: queue))
        #expect(try await collect(1, messages).first?.body == Payload(bytes))
        await transport.shutdown()
    }

    @Test("A wrong password is told apart", arguments: STOMPServer.all)
    func wrongPassword(server: STOMPServer) async throws {
        let transport = try server.transport { $0.password = "wrong" }
        let error = await #expect(throws: WaybillError.self) {
            try await Provider<FrameEntry>(transport: transport).request(.connect)
        }
        #expect(error?.code == .unauthorized)
        #expect(error?.underlying is STOMPServerError)
        #expect(error?.peerReason?.isEmpty == false)
        guard case .disconnected(let cause?) = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
        #expect(cause.code == .unauthorized)
        await transport.shutdown()
    }

    @Test(
        "A destination that there is not is refused with the server's words",
        arguments: STOMPServer.rabbitMQs
    )
    func badDestination(server: STOMPServer) async throws {
        let (transport, provider) = try server.provider()
        let messages = try await provider.messages(.subscribe(queue(), .auto))
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.send("x", to: "/nowhere/at/all"))
        }
        #expect(error?.code == .rejected || error?.code == .connectionLost)
        let said = try #require(error?.underlying as? STOMPServerError)
        #expect(!said.headers.isEmpty)
        // ERROR ends the connection and every stream on it.
        await #expect(throws: WaybillError.self) {
            for try await _ in messages {}
        }
        // The next request makes a new connection.
        try await provider.request(.send("x", to: queue()))
        await transport.shutdown()
    }

    @Test("A send without a destination never leaves")
    func missingDestination() async throws {
        let transport = try STOMPServer.rabbitMQ.transport()
        let error = await #expect(throws: WaybillError.self) {
            try await Provider<FrameEntry>(transport: transport).request(.send("x", to: ""))
        }
        #expect(error?.code == .invalidEntry)
        guard case .idle = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
        await transport.shutdown()
    }

    @Test("Heart-beats keep an idle connection alive both ways, at all servers at once", .realTime)
    func realTimeHeartBeats() async throws {
        try await withThrowingTaskGroup { group in
            for server in STOMPServer.all { group.addTask { try await heartBeats(server) } }
            try await group.waitForAll()
        }
    }

    private func heartBeats(_ server: STOMPServer) async throws {
        // A busy machine delays beats, so the intervals are long where there is time.
        let beat = Duration.seconds(TestServers.isExtended ? 5 : 2)
        let beats = Beats()
        let transport = try server.transport {
            $0.heartBeat.outgoing = beat
            $0.heartBeat.incoming = beat
            $0.wireLogger = beats
        }
        let provider = Provider<FrameEntry>(transport: transport)
        let receipt = try await provider.request(.connect)
        #expect(receipt.headers["heart-beat"]?.isEmpty == false)
        // A minute in the extended set. Otherwise just long enough for a missed beat to end the connection.
        try await Task.sleep(for: .seconds(TestServers.isExtended ? 61 : 5))
        guard case .connected = transport.states.current else {
            Issue.record("\(server): \(transport.states.current)")
            return
        }
        #expect(beats.sent >= 2 && beats.received >= 2, "\(server)")
        let queue = queue()
        let messages = try await provider.messages(.subscribe(queue, .auto))
        try await provider.request(.send("still here", to: queue))
        #expect(try await collect(1, messages).first?.text == "still here")
        await transport.shutdown()
    }

    /// Counts heart-beats.
    private final class Beats: WireLogger {
        private let counts = Locked((sent: 0, received: 0))

        var sent: Int { counts.withLock { $0.sent } }
        var received: Int { counts.withLock { $0.received } }

        func log(_ record: WireRecord) {
            guard record.text == "heart-beat" else { return }
            counts.withLock { counts in
                switch record.direction {
                case .outbound: counts.sent += 1
                case .inbound: counts.received += 1
                }
            }
        }
    }
}
