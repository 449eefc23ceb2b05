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

    // MARK: Other separators and prefixes

    @Test(
        "Artemis has no prefix, and Spring one for each direction",
        arguments: [
            ("chat/lobby", "chat.lobby", "/topic/chat/lobby"),
            ("chat/+", "chat.*", "/topic/chat/*"),
            ("+/lobby", "*.lobby", "/topic/*/lobby"),
            ("chat/#", "chat.#", "/topic/chat/**"),
            ("#", "#", "/topic/**"),
            ("chät", "chät", "/topic/chät"),
            ("chat//x", "chat..x", "/topic/chat//x"),
            ("/queue/orders.new", "/queue/orders.new", "/queue/orders.new"),
        ]
    )
    func artemisAndSpring(_ topic: String, _ artemis: String, _ spring: String) throws {
        #expect(try TopicStyle.artemis.destination(of: topic, allowsWildcards: true) == artemis)
        #expect(try TopicStyle.spring.destination(of: topic, allowsWildcards: true) == spring)
        guard !topic.contains("+"), !topic.contains("#") else { return }
        #expect(try TopicStyle.artemis.destination(of: topic, allowsWildcards: false) == artemis)
        let sent = topic.hasPrefix("/") ? topic : "/app/\(topic)"
        #expect(try TopicStyle.spring.destination(of: topic, allowsWildcards: false) == sent)
        #expect(TopicStyle.artemis.topic(of: artemis) == topic)
        #expect(TopicStyle.spring.topic(of: spring) == topic)
    }

    @Test(
        "A part of a path pattern is refused, a dot is not",
        arguments: ["chat/*", "chat/**", "chat/a*", "chat/what?", "chat/{room}", "#/chat", "a+/b"]
    )
    func pathPatterns(_ topic: String) throws {
        for allowsWildcards in [true, false] {
            #expect(throws: WaybillError.self) {
                try TopicStyle.spring.destination(of: topic, allowsWildcards: allowsWildcards)
            }
        }
        let dotted = try TopicStyle.spring.destination(of: "chat/v1.2", allowsWildcards: true)
        #expect(dotted == "/topic/chat/v1.2")
        #expect(throws: WaybillError.self) {
            try TopicStyle.artemis.destination(of: "chat/v1.2", allowsWildcards: true)
        }
    }

    @Test(
        "Other destinations of Spring's broker stay as they are",
        arguments: ["/user/queue/errors", "/app/chat", "/topic", "/topic/", "/topic//chat", ""]
    )
    func otherDestinations(_ destination: String) {
        #expect(TopicStyle.spring.topic(of: destination) == destination)
    }

    @Test("A style of one's own", arguments: [":", "→"] as [Character])
    func ownStyle(_ separator: Character) throws {
        let style = TopicStyle(
            separator: separator,
            prefix: "all\(separator)",
            sendPrefix: "in\(separator)",
            anyLevel: "?",
            furtherLevels: "..."
        )
        let heard = "all\(separator)chat\(separator)?\(separator)..."
        #expect(try style.destination(of: "chat/+/#", allowsWildcards: true) == heard)
        let sent = "in\(separator)chat\(separator)v1.2"
        #expect(try style.destination(of: "chat/v1.2", allowsWildcards: false) == sent)
        #expect(style.topic(of: "all\(separator)chat\(separator)v1.2") == "chat/v1.2")
        for level in ["a\(separator)b", "a\(separator)\u{301}b", "\(separator)", "?", "..."] {
            #expect(throws: WaybillError.self) {
                try style.destination(of: "chat/\(level)", allowsWildcards: false)
            }
        }
    }

    @Test("The styles of the brokers are those of the initializer")
    func initializer() {
        #expect(TopicStyle(prefix: "/topic/") == .rabbitMQ)
        #expect(TopicStyle(prefix: "/topic/", furtherLevels: ">") == .activeMQ)
        #expect(TopicStyle() == .artemis && TopicStyle.artemis != .rabbitMQ)
    }

    @Test("A provider for Spring sends to the application and subscribes at the broker")
    func spring() async throws {
        let mock = MockTransport(wildcards: .none).expect(.send).expect(.subscribe)
        let provider = Provider<AnyEntry>(transport: mock).topicStyle(.spring)
        let messages = try await provider.messages(.subscribe(topic: "chat/lobby"))
        try await provider.request(.send(topic: "chat/lobby", .responseTopic("answers/ada")))
        mock.push("hello", to: "/topic/chat/lobby")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.topic == "chat/lobby")
        #expect(mock.requests.map(\.topic) == ["/topic/chat/lobby", "/app/chat/lobby"])
        #expect(mock.requests[1].command[.responseTopic] == "/topic/answers/ada")
        await expectError(.invalidEntry) {
            try await provider.request(.send(topic: "chat", .responseTopic("answers/+")))
        }
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
        message[.responseTopic] = "/topic/answers.ada"
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
