import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Topics, destinations, filters and event types that are equal as Swift strings and differ for servers, end to end.
@Suite("Names as bytes, over the loopback broker", .inSimulation, .timeLimit(.minutes(30)))
struct NameByteTests {
    private enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case mqtt311, mqtt5, stomp

        var testDescription: String { rawValue }

        func transport(to broker: LoopbackBroker) throws -> any Transport {
            switch self {
            case .mqtt311:
                try MQTTTransport(url: broker.url(for: .mqtt)) {
                    $0.version = .v3_1_1
                    $0.timeouts.connect = LoopbackBroker.connectTimeout
                }
            case .mqtt5: try broker.transport(.mqtt)
            case .stomp: try broker.transport(.stomp)
            }
        }
    }

    private func take(_ count: Int, _ messages: Messages<Message>) async throws -> [String?] {
        var iterator = messages.makeAsyncIterator()
        var texts: [String?] = []
        while texts.count < count, let message = try await iterator.next() {
            texts.append(message.text)
        }
        return texts
    }

    @Test("Each of two that look alike has its own messages", arguments: Kind.allCases)
    private func apart(kind: Kind) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let transport = try kind.transport(to: broker)
        let provider = Provider<LoopbackEntry>(transport: transport)
        for names in LookalikeNames.all {
            let one = try await provider.messages(.subscribe(names.one))
            let other = try await provider.messages(.subscribe(names.other))
            for (text, topic) in [
                ("1", names.one), ("2", names.other), ("3", names.one), ("4", names.other),
            ] {
                try await provider.request(.send(text, to: topic))
            }
            #expect(try await take(2, one) == ["1", "3"], "\(names)")
            #expect(try await take(2, other) == ["2", "4"], "\(names)")
            // UNSUBSCRIBE from one name does not end the other subscription.
            try await provider.request(LoopbackEntry(command: .unsubscribe, topic: names.one))
            #expect(try await take(1, one) == [])
            try await provider.request(.send("5", to: names.other))
            #expect(try await take(1, other) == ["5"], "\(names)")
        }
        await transport.shutdown()
        await broker.stop()
    }

    @Test("A mark behind a slash is a level of its own", arguments: [Kind.mqtt311, .mqtt5])
    private func marks(kind: Kind) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let transport = try kind.transport(to: broker)
        let provider = Provider<LoopbackEntry>(transport: transport)
        let topic = "t/\u{301}"
        for filter in ["t/+", topic, "t/#"] {
            let messages = try await provider.messages(.subscribe(filter))
            try await provider.request(.send("x", to: topic))
            #expect(try await take(1, messages) == ["x"], "\(filter)")
        }
        await transport.shutdown()
        await broker.stop()
    }

    @Test("Event types that look alike are told apart")
    func eventTypes() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let transport = try broker.transport(.eventStream)
        let provider = Provider<LoopbackEntry>(transport: transport)
        for names in LookalikeNames.all {
            let messages = try await provider.messages(
                LoopbackEntry(command: .subscribe(.eventTypes([names.one])), topic: "room")
            )
            for type in [names.other, names.one] {
                try await provider.request(
                    LoopbackEntry(
                        command: .send,
                        topic: "room",
                        body: .text(type),
                        headers: ["event": type]
                    )
                )
            }
            let text = try await take(1, messages).first.flatMap { $0 }
            #expect(text.map { Array($0.utf8) } == Array(names.one.utf8), "\(names)")
        }
        await transport.shutdown()
        await broker.stop()
    }

    @Test("The mock tells them apart, too", arguments: LookalikeNames.all)
    func mock(names: LookalikeNames) async throws {
        let mock = MockTransport()
        mock.expect(.subscribe).expect(.send, topic: names.one).expect(.unsubscribe)
        let one = try await mock.subscribe(Request(topic: names.one, command: .subscribe))
        let other = try await mock.subscribe(Request(topic: names.other, command: .subscribe))
        #expect(mock.push("x", to: names.other) == 1)
        _ = try await mock.perform(Request(topic: names.one, command: .send))
        await #expect(throws: WaybillError.self) {
            try await mock.perform(Request(topic: names.other, command: .send))
        }
        _ = try await mock.perform(Request(topic: names.one, command: .unsubscribe))
        #expect(try await take(1, one) == [])
        #expect(try await take(1, other) == ["x"])
        #expect(mock.subscriptionCount == 1)
    }
}
