import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

/// One call, one sequence, several topics.
@Suite("Several topics in one subscription", .inSimulation, .timeLimit(.minutes(30)))
struct SeveralTopicsTests {
    /// An entry that has several topics.
    private enum News: EntryType {
        case all
        case publish(String, to: String)

        var topic: String? {
            switch self {
            case .all: nil
            case .publish(_, let topic): topic
            }
        }

        var topics: [EntryTopic] {
            switch self {
            case .all: ["/topic/sport", "/topic/weather"]
            case .publish(_, let topic): [EntryTopic(topic)]
            }
        }

        var command: EntryCommand {
            switch self {
            case .all: .subscribe(qos: .atLeastOnce)
            case .publish: .send(qos: .atLeastOnce)
            }
        }

        var body: EntryBody {
            switch self {
            case .all: .none
            case .publish(let text, _): .text(text)
            }
        }
    }

    /// Counts how many times a transport was connected, including the current connection.
    private final class ConnectionCount: Sendable {
        private let count = Locked(0)

        init(_ transport: any Transport) {
            observe(transport.states) { [weak self] state in
                if case .connected = state { self?.count.withLock { $0 += 1 } }
            }
        }

        var value: Int { count.withLock { $0 } }
    }

    private static func transport(_ name: String, _ bench: LoopbackBench) throws -> any Transport {
        switch name {
        case "MQTT 5": try bench.mqtt()
        case "MQTT 3.1.1": try bench.mqtt { $0.version = .v3_1_1 }
        default: try bench.stomp()
        }
    }

    @Test(
        "The messages of all topics come in one sequence, also after a lost connection",
        arguments: ["MQTT 5", "MQTT 3.1.1", "STOMP"]
    )
    func together(_ name: String) async throws {
        let bench = LoopbackBench()
        let transport = try Self.transport(name, bench)
        let other = try Self.transport(name, bench)
        let provider = Provider<News>(transport: transport)
        let sender = Provider<News>(transport: other)
        let messages = try await provider.messages(.all)
        var iterator = messages.makeAsyncIterator()
        func exchange(_ text: String) async throws {
            for topic in ["/topic/sport", "/topic/weather"] {
                try await sender.request(.publish(text, to: topic))
                let message = try await iterator.next()
                #expect(message?.topic == topic && message?.text == text)
            }
        }
        try await exchange("1")
        let own = ConnectionCount(transport)
        let others = ConnectionCount(other)
        try await waitUntil { own.value == 1 && others.value == 1 }
        bench.broker.dropConnections()
        try await waitUntil(moving: { bench.clock.advance(by: .milliseconds(100)) }) {
            own.value == 2 && others.value == 2
        }
        try await exchange("2")
        messages.cancel()
        #expect(try await iterator.next() == nil)
        await transport.shutdown()
        await other.shutdown()
    }

    @Test(
        "A message that matches several filters comes once for each copy of the broker",
        arguments: ["MQTT 5", "MQTT 3.1.1"]
    )
    func overlapping(_ name: String) async throws {
        let bench = LoopbackBench()
        let transport = try Self.transport(name, bench)
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(.subscribe(topics: ["a/+", "a/b", "a/b"]))
        try await provider.request(.send(topic: "a/b", body: .text("1")))
        try await provider.request(.send(topic: "a/c", body: .text("2")))
        var iterator = messages.makeAsyncIterator()
        var texts: [String?] = []
        while texts.last != "2" { texts.append(try await iterator.next()?.text) }
        #expect(texts.count <= 3, "\(texts)")
        await transport.shutdown()
    }

    @Test(
        "A topic that is refused fails the call, and the others are unsubscribed",
        arguments: ["MQTT 5", "MQTT 3.1.1"]
    )
    func refused(_ name: String) async throws {
        let bench = LoopbackBench()
        bench.broker.faults.refusesSubscriptions = ["b"]
        let transport = try Self.transport(name, bench)
        let provider = Provider<AnyEntry>(transport: transport)
        try await provider.request(.connect)
        do {
            _ = try await provider.messages(.subscribe(topics: ["a", "b", "c"]))
            Issue.record("subscribed to all")
        } catch let error as WaybillError {
            #expect(error.topic == "b" && error.code != .connectionLost, "\(error)")
        }
        // A later subscription to one of the topics sends a new SUBSCRIBE.
        let messages = try await provider.messages(.subscribe(topic: "a"))
        try await provider.request(.send(topic: "a", body: .text("x")))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        await transport.shutdown()
    }

    @Test("Several topics can be waited for offline")
    func offline() async throws {
        for name in ["MQTT 5", "STOMP"] {
            let bench = LoopbackBench()
            let transport = try Self.transport(name, bench)
            let provider = Provider<AnyEntry>(transport: transport)
            let messages = try await provider.messages(
                .subscribe(
                    topics: ["/topic/a", "/topic/b"],
                    options: [.waitsForConnection]
                )
            )
            try await provider.request(.connect)
            try await provider.request(
                .send(topic: "/topic/b", body: .text("b"), qos: .atLeastOnce)
            )
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next()?.text == "b")
            await transport.shutdown()
        }
    }

    @Test(
        "Each topic may have a quality of service of its own, also after a lost connection",
        arguments: ["MQTT 5", "MQTT 3.1.1"]
    )
    func qualities(_ name: String) async throws {
        let bench = LoopbackBench()
        let transport = try Self.transport(name, bench)
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            .subscribe(
                topics: [
                    EntryTopic("a", qos: .atMostOnce), "b", EntryTopic("c", qos: .exactlyOnce),
                ],
                qos: .atLeastOnce
            )
        )
        #expect(messages.grantedQoS == .atMostOnce)
        var iterator = messages.makeAsyncIterator()
        func exchange() async throws {
            let expected: [(String, QoS)] = [
                ("a", .atMostOnce), ("b", .atLeastOnce), ("c", .exactlyOnce),
            ]
            for (topic, qos) in expected {
                try await provider.request(.send(topic: topic, qos: .exactlyOnce))
                let message = try await iterator.next()
                #expect(message?.topic == topic && message?.qos == qos)
            }
        }
        try await exchange()
        let own = ConnectionCount(transport)
        try await waitUntil { own.value == 1 }
        bench.broker.dropConnections()
        try await waitUntil(moving: { bench.clock.advance(by: .milliseconds(100)) }) {
            own.value == 2
        }
        try await exchange()
        await transport.shutdown()
    }

    @Test("One that a protocol lacks is refused by its name, and lowered where the app allows it")
    func loweredQuality() async throws {
        let mock = MockTransport(like: .stomp).expect(.subscribe)
        let provider = Provider<AnyEntry>(transport: mock)
        let entry = AnyEntry.subscribe(
            topics: ["/topic/a", EntryTopic("/topic/b", qos: .exactlyOnce)]
        )
        let error = await expectError(.unsupported) { try await provider.messages(entry) }
        #expect(error?.option == .qos && error?.topic == "/topic/b")
        _ = try await provider.whenUnsupported(.ignore([.qos])).messages(entry)
        let request = try #require(mock.requests.last)
        #expect(request.topics == ["/topic/a", EntryTopic("/topic/b", qos: .atLeastOnce)])
        #expect(request.command.qos == .atMostOnce)
    }

    @Test("That of a single topic is that of the command")
    func singleQuality() async throws {
        let mock = MockTransport().expect(.subscribe)
        let provider = Provider<AnyEntry>(transport: mock)
        _ = try await provider.messages(
            .subscribe(topics: [EntryTopic("a", qos: .exactlyOnce)], qos: .atMostOnce)
        )
        var request = try #require(mock.requests.last)
        #expect(request.topic == "a" && request.topics == ["a"])
        #expect(request.command.qos == .exactlyOnce)
        request.topics = [EntryTopic("b", qos: .atLeastOnce)]
        #expect(request.command.qos == .atLeastOnce && request.topics == ["b"])
        request.topics = [EntryTopic("c?key", qos: .exactlyOnce), "d"]
        #expect(request.command.qos == .atLeastOnce)
        #expect("\(request)" == "subscribe c?… (QoS 2) d")
        request.topic = "e"
        #expect(request.topics == [EntryTopic("e", qos: .exactlyOnce), "d"])
        let (composed, decomposed) = (EntryTopic("caf\u{E9}"), EntryTopic("cafe\u{301}"))
        #expect(composed != decomposed && composed == "caf\u{E9}")
    }

    @Test("An event stream has one topic, and says so")
    func eventStream() async throws {
        let bench = LoopbackBench()
        let transport = try bench.transport(.eventStream)
        let provider = Provider<AnyEntry>(transport: transport)
            .whenUnsupported(.ignore([.severalTopics]))
        do {
            _ = try await provider.messages(.subscribe(topics: ["a", "b"]))
            Issue.record("subscribed to both")
        } catch let error as WaybillError {
            #expect(error.code == .unsupported && error.option == .severalTopics)
        }
        await transport.shutdown()
    }
}
