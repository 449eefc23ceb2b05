import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Topics of brokers that separate levels with dots.
@Suite("Topic styles", .inSimulation, .timeLimit(.minutes(30))) struct TopicStyleTests {
    @Test(
        "Topics and filters become the broker's names",
        arguments: [
            ("chat/lobby", "/topic/chat.lobby", "/topic/chat.lobby"),
            ("chat/+", "/topic/chat.*", "/topic/chat.*"),
            ("+/lobby", "/topic/*.lobby", "/topic/*.lobby"),
            ("chat/#", "/topic/chat.#", "/topic/chat.>"),
            ("#", "/topic/#", "/topic/>"),
            ("chat", "/topic/chat", "/topic/chat"),
            ("chät/ö", "/topic/chät.ö", "/topic/chät.ö"),
            ("/queue/orders.new", "/queue/orders.new", "/queue/orders.new"),
        ]
    )
    func names(_ topic: String, _ rabbitMQ: String, _ activeMQ: String) throws {
        #expect(
            try TopicStyle.rabbitMQ.destination(of: topic, allowsWildcards: true) == rabbitMQ
        )
        #expect(
            try TopicStyle.activeMQ.destination(of: topic, allowsWildcards: true) == activeMQ
        )
    }

    @Test(
        "What would mean something else is refused",
        arguments: [
            "chat/v1.2", "chat/*", "#/chat", "a+/b", "a/b#", "chat/a.*",
        ]
    )
    func refused(_ topic: String) {
        for allowsWildcards in [true, false] {
            #expect(throws: WaybillError.self) {
                try TopicStyle.rabbitMQ.destination(of: topic, allowsWildcards: allowsWildcards)
            }
        }
        #expect(throws: WaybillError.self) {
            try TopicStyle.activeMQ.destination(of: "chat/>", allowsWildcards: false)
        }
    }

    @Test("A send goes to no wildcard", arguments: ["chat/+", "chat/#", "#"])
    func sends(_ topic: String) async throws {
        let mock = MockTransport(wildcards: .none).expect(.send)
        let provider = Provider<AnyEntry>(transport: mock).topicStyle(.rabbitMQ)
        do {
            try await provider.request(.send(topic: topic))
            Issue.record("sent to \(topic)")
        } catch let error as WaybillError {
            #expect(error.code == .invalidEntry && error.topic == topic)
        }
        #expect(mock.requests.isEmpty)
    }

    @Test(
        "Names of the broker become topics again, where that is unambiguous",
        arguments: [
            ("/topic/chat.lobby", "chat/lobby"), ("/topic/chat", "chat"),
            ("/queue/chat.lobby", "/queue/chat.lobby"), ("/topic/.chat", "/topic/.chat"),
            ("/topic/a/b.c", "/topic/a/b.c"), ("/topic/", "/topic/"), ("", ""),
        ]
    )
    func topics(_ destination: String, _ topic: String) {
        #expect(TopicStyle.rabbitMQ.topic(of: destination) == topic)
    }

    @Test("A provider renames what goes out, and what comes in")
    func provider() async throws {
        let mock = MockTransport(wildcards: .none).expect(.send).expect(.subscribe)
            .expect(.unsubscribe)
        let provider = Provider<AnyEntry>(transport: mock).topicStyle(.rabbitMQ)
        let messages = try await provider.messages(.subscribe(topics: ["chat/lobby", "news/#"]))
        let all = try provider.allMessages()
        try await provider.request(.send(topic: "chat/lobby", .responseTopic("answers/ada")))
        var message = Message(topic: "/topic/chat.lobby")
        var details = Message.Details()
        details.responseTopic = "/topic/answers.ada"
        message.details = details
        mock.push(message)
        var iterator = messages.makeAsyncIterator()
        let heard = try await iterator.next()
        #expect(heard?.topic == "chat/lobby" && heard?.replyTopic == "answers/ada")
        var lookingOn = all.makeAsyncIterator()
        #expect(try await lookingOn.next()?.topic == "chat/lobby")
        try await provider.request(.unsubscribe(topic: "chat/lobby"))
        #expect(
            mock.requests.map(\.topics) == [
                ["/topic/chat.lobby", "/topic/news.#"], ["/topic/chat.lobby"],
                ["/topic/chat.lobby"],
            ]
        )
        #expect(mock.requests[1].command.kind == .send)
        #expect(mock.requests[1].command[.responseTopic] == "/topic/answers.ada")
    }
}
