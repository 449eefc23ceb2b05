import Testing
import Waybill
import WaybillMQTT
import WaybillTesting

@Suite(
    "Mosquitto",
    .enabled(
        if: MosquittoServer.isRunning,
        "Mosquitto is not running: Tests/Servers/with --install -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct MosquittoTests {
    static let routes = MosquittoServer.Route.all

    private func topic(_ name: String = #function) -> String {
        "waybill/\(UInt64.random(in: 0 ... .max))/\(name.prefix { $0 != "(" })"
    }

    private func collect(_ count: Int, _ messages: Messages<Message>) async throws -> [Message] {
        var collected: [Message] = []
        guard count > 0 else { return [] }
        for try await message in messages {
            collected.append(message)
            if collected.count == count { break }
        }
        return collected
    }

    @Test("Every quality of service both ways", arguments: routes, QoS.allCases)
    func qualities(route: MosquittoServer.Route, qos: QoS) async throws {
        let (transport, provider) = try MosquittoServer.provider(route)
        let topic = topic()
        let messages = try await provider.messages(.subscribe(topic, qos))
        for number in 0..<100 {
            try await provider.request(.send(.init("\(number)"), to: topic, qos))
        }
        let heard = try await collect(100, messages)
        #expect(heard.map { $0.text } == (0..<100).map { "\($0)" })
        #expect(heard.allSatisfy { $0.qos == qos && !$0.isRetained })
        await transport.shutdown()
    }

    @Test(
        "A retained message goes to later subscribers, and can be deleted",
        arguments: routes
    )
    func retained(route: MosquittoServer.Route) async throws {
        let (transport, provider) = try MosquittoServer.provider(route)
        let topic = topic()
        try await provider.request(.send("kept", to: topic, .atLeastOnce, [.retained]))
        let messages = try await provider.messages(.subscribe(topic, .atLeastOnce))
        let first = try #require(try await collect(1, messages).first)
        #expect(first.text == "kept")
        #expect(first.isRetained)
        try await provider.request(.send(Payload(), to: topic, .atLeastOnce, [.retained]))
        await transport.shutdown()

        let (later, laterProvider) = try MosquittoServer.provider(route)
        let empty = try await laterProvider.messages(.subscribe(topic, .atLeastOnce))
        try await laterProvider.request(.send("live", to: topic, .atLeastOnce))
        #expect(try await collect(1, empty).first?.text == "live")
        await later.shutdown()
    }

    @Test(
        "A will is published when the connection is lost, and not after a farewell",
        arguments: routes
    )
    func will(route: MosquittoServer.Route) async throws {
        let (watcher, watching) = try MosquittoServer.provider(route)
        let topic = topic()
        let messages = try await watching.messages(.subscribe("\(topic)/+", .atLeastOnce))

        // A client that disconnects in order.
        let polite = try MosquittoServer.transport(route)
        let will = Will(topic: "\(topic)/polite", body: "gone", qos: .atLeastOnce)
        let politely = Provider<WireEntry>(transport: polite)
        try await politely.request(.connect([.will(will)]))
        try await politely.request(.disconnect)
        await polite.shutdown()

        // A client whose identifier is taken over: the broker closes its connection.
        let sudden = try MosquittoServer.transport(route) {
            $0.clientIdentifier = "twin\(topic.count)"
        }
        let other = Will(topic: "\(topic)/sudden", body: "lost", qos: .atLeastOnce)
        try await Provider<WireEntry>(transport: sudden).request(.connect([.will(other)]))
        let twin = try MosquittoServer.transport(route) {
            $0.clientIdentifier = "twin\(topic.count)"
        }
        try await Provider<WireEntry>(transport: twin).request(.connect())

        let heard = try await collect(1, messages)
        #expect(heard.map(\.topic) == ["\(topic)/sudden"])
        #expect(heard.map(\.text) == ["lost"])
        for transport in [watcher, sudden, twin] { await transport.shutdown() }
    }

    @Test(
        "Wildcards reach typed streams, overlapping ones each get a message once",
        arguments: routes
    )
    func wildcards(route: MosquittoServer.Route) async throws {
        let (transport, provider) = try MosquittoServer.provider(route)
        let topic = topic()
        let all: Messages<String> = try await provider.messages(
            .subscribe("\(topic)/#", .exactlyOnce)
        )
        let one: Messages<String> = try await provider.messages(
            .subscribe("\(topic)/+/x", .exactlyOnce)
        )
        for number in 0..<20 {
            try await provider.request(.send(.init("\(number)"), to: "\(topic)/a/x", .exactlyOnce))
        }
        try await provider.request(.send("end", to: "\(topic)/a/x", .exactlyOnce))
        let expected = (0..<20).map { "\($0)" } + ["end"]
        for messages in [all, one] {
            var heard: [String] = []
            for try await text in messages {
                heard.append(text)
                if text == "end" { break }
            }
            if route.version == .v5 {
                #expect(heard == expected)
            } else {
                // A 3.1.1 broker may send one copy for each subscription and cannot name the subscription.
                #expect(Set(heard) == Set(expected))
            }
        }
        await transport.shutdown()
    }

    @Test(
        "A wrong password is a typed error with the broker's reason",
        arguments: [MQTTConfiguration.Version.v3_1_1, .v5]
    )
    func wrongPassword(version: MQTTConfiguration.Version) async throws {
        let (transport, provider) = try MosquittoServer.provider(version, at: .password)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(
                .connect([.userName("alice"), .password("wrong")])
            )
        }
        #expect(error?.code == .unauthorized)
        #expect(error?.peerReason?.hasPrefix("Not authorized") == true)
        #expect(error.map { "\($0)" }?.contains("wrong") == false)

        try await provider.request(.connect([.userName("alice"), .password("secret")]))
        await transport.shutdown()
    }

    @Test("256 KiB arrive whole", arguments: routes, QoS.allCases)
    func large(route: MosquittoServer.Route, qos: QoS) async throws {
        let (transport, provider) = try MosquittoServer.provider(route)
        let topic = topic()
        let messages = try await provider.messages(.subscribe(topic, qos))
        let bytes = (0..<262_144).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for _ in 0..<3 { try await provider.request(.send(.init(bytes), to: topic, qos)) }
        let heard = try await collect(3, messages)
        #expect(heard.allSatisfy { $0.body == Payload(bytes) })
        await transport.shutdown()
    }

    @Test("A thousand subscriptions, each with its own messages", arguments: routes)
    func thousandSubscriptions(route: MosquittoServer.Route) async throws {
        let (transport, provider) = try MosquittoServer.provider(route)
        let topic = topic()
        let streams = try await withThrowingTaskGroup { group in
            for number in 0..<1_000 {
                group.addTask {
                    let entry = WireEntry.subscribe("\(topic)/\(number)", .atLeastOnce)
                    return (number, try await provider.messages(entry))
                }
            }
            var streams: [Int: Messages<Message>] = [:]
            for try await (number, messages) in group { streams[number] = messages }
            return streams
        }
        for number in 0..<1_000 {
            try await provider.request(
                .send(.init("\(number)"), to: "\(topic)/\(number)", .atMostOnce)
            )
        }
        for (number, messages) in streams {
            #expect(try await collect(1, messages).first?.text == "\(number)")
        }
        await transport.shutdown()
    }

    @Test(
        "Many messages: in order without loss at QoS 1, without duplicate at QoS 2",
        arguments: routes,
        [QoS.atLeastOnce, .exactlyOnce]
    )
    func many(route: MosquittoServer.Route, qos: QoS) async throws {
        let count = TestServers.isExtended ? 100_000 : 5_000
        let transport = try MosquittoServer.transport(route) {
            $0.limits.inFlight = 100
        }
        let provider = Provider<WireEntry>(transport: transport)
        let topic = topic()
        let messages = try await provider.messages(.subscribe(topic, qos))
        let receiver = Task {
            var numbers: [Int] = []
            numbers.reserveCapacity(count)
            for try await message in messages {
                numbers.append(message.text.flatMap { Int($0) } ?? -1)
                if numbers.count == count { break }
            }
            return numbers
        }
        // Awaited one after the other, messages keep the order of the calls. The concurrent ones after that fill the
        // window.
        for number in 0..<count / 10 {
            try await provider.request(.send(.init("\(number)"), to: topic, qos))
        }
        let ordered = count / 10
        try await withThrowingTaskGroup { group in
            for sender in 0..<50 {
                group.addTask {
                    for number in stride(from: ordered + sender, to: count, by: 50) {
                        try await provider.request(.send(.init("\(number)"), to: topic, qos))
                    }
                }
            }
            try await group.waitForAll()
        }
        let numbers = try await receiver.value
        #expect(numbers.count == count)
        #expect(Set(numbers).count == count)
        #expect(Array(numbers.prefix(ordered)) == Array(0..<ordered))
        // The messages of each sender keep their order, too.
        var last: [Int: Int] = [:]
        for number in numbers.dropFirst(ordered) {
            let sender = (number - ordered) % 50
            #expect(last[sender, default: -1] < number)
            last[sender] = number
        }
        await transport.shutdown()
    }

    @Test("What the server does not take is refused before it is sent")
    func limits() async throws {
        let (transport, provider) = try MosquittoServer.provider(.v5, at: .small)
        try await provider.request(.connect())
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.send("x", to: "a", .exactlyOnce))
        }
        #expect(error?.code == .unsupported)
        try await provider.request(.send("x", to: "a", .atLeastOnce))
        await transport.shutdown()
    }
}
