import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting

@Suite("Typed routing", .inSimulation, .timeLimit(.minutes(30))) struct MessageRouterTests {
    private enum Routed: Equatable, Sendable {
        case point(Point)
        case text(String)
        case number(Int)
        case unknown(String)
    }

    private func message(_ text: String, event: String? = nil, topic: String = "t") -> Message {
        var message = Message(topic: topic, body: Payload(text))
        message[.eventType] = event
        return message
    }

    private func outcomes(
        _ router: MessageRouter<Routed>,
        _ list: [Message]
    ) async throws -> [Result<Routed, WaybillError>] {
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver(list)
        feed.finish()
        var outcomes: [Result<Routed, WaybillError>] = []
        for try await result in messages.routed(by: router).results { outcomes.append(result) }
        return outcomes
    }

    @Test("Each event type has its own Swift type; unknown ones come out, too")
    func events() async throws {
        let router = MessageRouter<Routed>()
            .event("point", Routed.point)
            .event("message", Routed.text)
            .otherwise { .unknown($0[.eventType] ?? "") }
        let outcomes = try await outcomes(
            router,
            [
                message(#"{"x":1,"y":2}"#, event: "point"), message("plain"),
                message("?", event: "Point"), message("rubbish", event: "point"),
                message("still here"),
            ]
        )
        let values = outcomes.map { try? $0.get() }
        #expect(
            values == [
                .point(Point(x: 1, y: 2)), .text("plain"), .unknown("Point"), nil,
                .text("still here"),
            ]
        )
        guard case .failure(let error) = outcomes[3] else { return }
        #expect(error.code == .decodingFailed)
    }

    @Test("Without a place for the others they are errors in their turn, which end nothing")
    func noFallback() async throws {
        let router = MessageRouter<Routed>().event("n", Routed.number)
        let outcomes = try await outcomes(
            router,
            [message("1", event: "n"), message("2", event: "other"), message("3", event: "n")]
        )
        #expect(outcomes.map { try? $0.get() } == [.number(1), nil, .number(3)])
        guard case .failure(let error) = outcomes[1] else { return }
        #expect(error.code == .decodingFailed && error.message.contains("other"))
    }

    @Test(
        "Topic patterns",
        arguments: [
            ("a/b", "a/b", true), ("a/b", "a/c", false), ("a/b", "a", false), ("a/+", "a/b", true),
            ("a/+", "a", false), ("a/+", "a/b/c", false), ("+/+", "/x", true), ("a/#", "a", true),
            ("a/#", "a/b/c", true), ("a/#", "ab", false), ("#", "any/thing", true),
            ("/queue/+", "/queue/x", true),
        ]
    )
    func topics(pattern: String, topic: String, isMatch: Bool) async throws {
        let router = MessageRouter<Routed>().topic(pattern, Routed.text)
            .otherwise { _ in .unknown("") }
        let outcomes = try await outcomes(router, [message("x", topic: topic)])
        #expect(outcomes.map { try? $0.get() } == [isMatch ? .text("x") : .unknown("")])
    }

    @Test("The first route that fits decides, and the provider's interceptors come before it")
    func order() async throws {
        struct Louder: Interceptor {
            func receive(
                _ message: Message,
                context: InterceptorContext
            ) async throws -> Message {
                var louder = message
                louder.body = Payload((message.text ?? "").uppercased())
                return louder
            }
        }
        let mock = MockTransport()
        mock.expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock).intercepted(Louder())
        let router = MessageRouter<Routed>().topic("#", Routed.text).topic("t", Routed.number)
        let messages = try await provider.messages(.subscribe("t")).routed(by: router)
        mock.push("x", to: "t")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == .text("X"))
    }

    /// Makes numbers that are twice as large.
    private struct Doubling: BodyDecoder {
        func accepts(contentType: String?) -> Bool { true }
        func decodes(_ type: Any.Type) -> Bool { type == Int.self }
        func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value? {
            (Int(message.text ?? "") ?? 0) * 2 as? Value
        }
    }

    @Test("A stream of every message has the decoders of its provider, too, and no subscription")
    func everyMessage() async throws {
        let mock = MockTransport()
        mock.expect(.subscribe)
        let provider = Provider<TestEntry>(
            transport: mock,
            configuration: ProviderConfiguration(decoders: [Doubling()])
        )
        let subscribed = try await provider.messages(.subscribe("t"))
        let router = MessageRouter<Routed>().topic("t", Routed.number)
        var iterator = try provider.allMessages().routed(by: router).results.makeAsyncIterator()
        mock.push("2", to: "t")
        #expect(try await iterator.next()?.get() == .number(4))
        let number = try provider.allMessages().routed(
            by: MessageRouter<String>().topic("t") { (point: Point) in "\(point)" }
        )
        mock.push("2", to: "t")
        var others = number.results.makeAsyncIterator()
        guard case .failure(let error) = try await others.next() else {
            Issue.record("no decoder makes a point")
            return
        }
        #expect(error.code == .decodingFailed && error.topic == "t" && error.command == nil)
        subscribed.cancel()
    }

    @Test("The decoders of the provider that subscribed decode the bodies")
    func decoders() async throws {
        let mock = MockTransport()
        mock.expect(.subscribe)
        let provider = Provider<TestEntry>(
            transport: mock,
            configuration: ProviderConfiguration(decoders: [Doubling()])
        )
        let router = MessageRouter<Routed>().topic("#", Routed.number)
        let messages = try await provider.messages(.subscribe("t"))
        let chosen = messages.routed(by: router, decoders: [JSONBodyDecoder()])
        mock.push("2", to: "t")
        var iterator = messages.routed(by: router).makeAsyncIterator()
        #expect(try await iterator.next() == .number(4))
        var other = chosen.makeAsyncIterator()
        mock.push("2", to: "t")
        #expect(try await other.next() == .number(2))
    }
}
