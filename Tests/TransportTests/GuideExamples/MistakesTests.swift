import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// The common mistakes and their error texts: the page `Mistakes.md`.
///
/// The compiler's messages for the other mistakes were checked by hand with Swift 6.3:
///
/// - A case that `body` forgets: *switch must be exhaustive*, with the note *add missing case: '.join'*.
/// - `try chat.messages(.join)`: *expression is 'async' but is not marked with 'await'*.
/// - `for await` instead of `for try await`: *call can throw, but the error is not handled*.
/// - An entry that the enum lacks: *type 'ChatEntry' has no member 'leave'*.
@Suite("Guide: common mistakes", .inSimulation, .timeLimit(.minutes(30))) struct MistakesTests {
    private enum ChatEntry: EntryType {
        case join
        case joinExactly
        case say(String)
        case keep(String)
        case sayInAllRooms
        case sayNothing

        var topic: String? {
            switch self {
            case .join, .joinExactly, .say, .keep, .sayNothing: "lobby"
            case .sayInAllRooms: "rooms/#"
            }
        }

        var command: EntryCommand {
            switch self {
            case .join: .subscribe
            case .joinExactly: .subscribe(qos: .exactlyOnce)
            case .say, .sayInAllRooms, .sayNothing: .send(qos: .atLeastOnce)
            case .keep: .send(qos: .atLeastOnce, .retained)
            }
        }

        var body: EntryBody {
            switch self {
            case .say(let text), .keep(let text): .text(text)
            case .join, .joinExactly, .sayInAllRooms, .sayNothing: .none
            }
        }
    }

    private struct Price: Decodable, Sendable {
        var cents: Int
    }

    private func chat(_ transport: some Transport) -> Provider<ChatEntry> {
        Provider(transport: transport)
    }

    /// The printed error of a call.
    private func text(_ body: () async throws -> Void) async -> String {
        do { try await body() } catch { return "\(error)" }
        return "no error"
    }

    // MARK: Entries

    @Test("A send without its body is sent empty, and the reader's error says so")
    func missingBody() async throws {
        let mock = MockTransport().expect(.subscribe)
        let messages: Messages<Price> = try await chat(mock).messages(.join)
        mock.push("", to: "lobby")
        var iterator = messages.makeAsyncIterator()
        let text = await text { _ = try await iterator.next() }
        #expect(
            text == """
                decodingFailed: the message is empty, and no Price, command subscribe, topic lobby
                """
        )
    }

    @Test("An option that the protocol does not have")
    func wrongOption() async throws {
        let transport = try STOMPTransport(url: "stomp://127.0.0.1:1")
        let text = await text { try await chat(transport).request(.keep("hello")) }
        #expect(
            text
                == "unsupported: STOMP does not support retained for send, command send, topic lobby"
        )
    }

    @Test("A quality of service that event streams do not have")
    func qualityOfService() async throws {
        let transport = try SSETransport(url: "http://127.0.0.1:1")
        let text = await text { _ = try await chat(transport).messages(.joinExactly) }
        #expect(
            text == """
                unsupported: server-sent events has no QoS above 1, command subscribe, topic lobby
                """
        )
    }

    @Test("A wildcard in a send")
    func wildcard() async throws {
        // The entry is refused before anything is sent.
        let transport = try MQTTTransport(url: "mqtt://127.0.0.1:1")
        let text = await text { try await chat(transport).request(.sayInAllRooms) }
        #expect(
            text == """
                invalidEntry: this cannot be sent: the topic has a wildcard (+ or #), which only a subscription may have, \
                command send, topic rooms/#
                """
        )
    }

    // MARK: Calls

    private struct Chat: Sendable {}

    @Test("A reply, or messages, of a type that is not Decodable")
    func notDecodable() async throws {
        let mock = MockTransport()
        let text = await text { _ = try await chat(mock).request(.say("x"), as: Chat.self) }
        #expect(
            text == """
                invalidEntry: no decoder of this provider makes a Chat: make it Decodable, or add a decoder for it to \
                ProviderConfiguration.decoders, command send, topic lobby
                """
        )
        await expectError(.invalidEntry) { try await chat(mock).messages(.join, as: Chat.self) }
        #expect(mock.requests.isEmpty)
    }

    @Test("A subscription asked for with request(_:)")
    func requestOfSubscription() async throws {
        let text = await text { try await chat(MockTransport()).request(.join) }
        #expect(
            text == """
                invalidEntry: a subscription gives messages, not a receipt: ask for messages(_:), \
                command subscribe, topic lobby
                """
        )
    }

    @Test("A send asked for with messages(_:)")
    func messagesOfSend() async throws {
        let text = await text { _ = try await chat(MockTransport()).messages(.say("hello")) }
        #expect(
            text == """
                invalidEntry: only a subscription gives messages: ask for request(_:), \
                command send, topic lobby
                """
        )
    }

    @Test("A reply that is of another type")
    func replyType() async throws {
        let mock = MockTransport().expect(.send, .reply("soon"))
        let text = await text {
            let _: Price = try await chat(mock).request(.say("how much?"))
        }
        #expect(text == "decodingFailed: the message is not a Price, command send, topic lobby")
    }

    @Test("A message that cannot be decoded ends the loop that does not skip it")
    func undecodable() async throws {
        let mock = MockTransport().expect(.subscribe)
        let messages: Messages<Price> = try await chat(mock).messages(.join)
        mock.push("soon", to: "lobby")
        mock.push(#"{"cents":5}"#, to: "lobby")
        var iterator = messages.makeAsyncIterator()
        let text = await text { _ = try await iterator.next() }
        #expect(
            text == "decodingFailed: the message is not a Price, command subscribe, topic lobby"
        )
        // The subscription continues.
        #expect(try await iterator.next()?.cents == 5)
    }

    @Test("A second connect")
    func secondConnect() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let transport = try broker.transport(.mqtt)
        let chat = chat(transport)
        try await chat.connect()
        let text = await text { try await chat.connect() }
        #expect(
            text == """
                rejected: there is a connection already, or one is being made: connect only once, \
                command connect
                """
        )
        await transport.shutdown()
        await broker.stop()
    }

    // MARK: Lifetimes

    @Test("A provider that is let go while a loop runs: the loop goes on")
    func providerLetGo() async throws {
        let mock = MockTransport().expect(.subscribe)
        let messages = try await {
            try await chat(mock).messages(.join)
        }()
        mock.push("hello", to: "lobby")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "hello")
    }

    @Test("A second loop over the same messages gets those that the first has not taken")
    func secondLoop() async throws {
        let mock = MockTransport().expect(.subscribe)
        let messages = try await chat(mock).messages(.join, as: String.self)
        mock.push("one", to: "lobby")
        mock.push("two", to: "lobby")
        for try await text in messages {
            #expect(text == "one")
            break
        }
        for try await text in messages {
            #expect(text == "two")
            break
        }
    }

    @Test("A message that is sent before the subscription is confirmed does not come")
    func sentTooEarly() async throws {
        let mock = MockTransport().expect(.subscribe)
        #expect(mock.push("too early", to: "lobby") == 0)
        let messages = try await chat(mock).messages(.join, as: String.self)
        mock.push("in time", to: "lobby")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "in time")
    }

    // MARK: Connections

    @Test("No server there", .outsideSimulation)
    func noServer() async throws {
        // No server listens on port 1.
        let transport = try MQTTTransport(url: "mqtt://127.0.0.1:1")
        let text = await text { try await chat(transport).connect() }
        #expect(
            text == "connectionRefused: connection refused (127.0.0.1:1), command connect"
        )
        await transport.shutdown()
    }

    @Test("A URL of another protocol")
    func wrongScheme() async throws {
        let mqtt = await text { _ = try MQTTTransport(url: "https://broker.example") }
        #expect(
            mqtt == """
                unsupported: MQTT is not spoken over https://; the URL can begin with mqtt://, \
                mqtts://, ws://, wss://
                """
        )
        let none = await text { _ = try STOMPTransport(url: "broker.example") }
        #expect(none == "invalidEntry: the URL has no scheme, such as stomp://")
    }

    @Test("A token source that fails")
    func tokenSource() async throws {
        struct SignedOut: Error {}
        let tokens = TokenInterceptor(.password()) { _ in throw SignedOut() }
        let transport = try MQTTTransport(url: "mqtt://127.0.0.1:1")
        let chat = chat(transport).intercepted(tokens)
        do {
            try await chat.request(.say("hello"))
            Issue.record("no error")
        } catch let error as WaybillError {
            #expect(
                "\(error)" == """
                    unauthorized: the token source failed, command connect, topic lobby
                    """
            )
            #expect(error.underlying is SignedOut)
        }
    }

    @Test("Two clients with one identifier: the second takes the place of the first")
    func oneIdentifier() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        var configuration = MQTTConfiguration()
        configuration.clientIdentifier = "ada"
        configuration.timeouts.connect = LoopbackBroker.connectTimeout
        configuration.reconnection = .never
        let url = broker.url(for: .mqtt)
        let first = try MQTTTransport(url: url, configuration: configuration)
        let second = try MQTTTransport(url: url, configuration: configuration)
        let messages = try await chat(first).messages(.join)
        try await chat(second).connect()
        var iterator = messages.makeAsyncIterator()
        do {
            _ = try await iterator.next()
            Issue.record("no error")
        } catch let error as WaybillError {
            #expect(error.mqttReason?.code == .sessionTakenOver)
            #expect(
                "\(error)" == """
                    rejected: another client has connected with the same client identifier \
                    (the peer said: Session taken over (0x8E)), command subscribe, topic lobby
                    """
            )
        }
        await first.shutdown()
        await second.shutdown()
        await broker.stop()
    }
}
