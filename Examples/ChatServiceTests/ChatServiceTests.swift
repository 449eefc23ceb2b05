import ChatService
import Testing
import WaybillTesting

/// Unit tests of a service layer, as an app would write them: without a server, a network or a wait.
@Suite("Chat service") struct ChatServiceTests {
    let mock = MockTransport()

    var service: ChatService { ChatService(provider: Provider(transport: mock)) }

    @Test("Saying something sends JSON to the room's topic")
    func say() async throws {
        mock.expect(.send, topic: "chat/lobby")
        try await service.say("hello", as: "ada", in: "lobby")

        let request = try #require(mock.requests.first)
        #expect(request.topic == "chat/lobby")
        #expect(request.contentType == "application/json")
        #expect(request.body.text == #"{"sender":"ada","text":"hello"}"#)
    }

    @Test("Joining a room gives what is said there, as values")
    func join() async throws {
        mock.expect(.subscribe, topic: "chat/lobby")
        let messages = try await service.join("lobby")
        mock.push(#"{"sender":"bob","text":"hi"}"#, to: "chat/lobby")
        mock.push(#"{"sender":"bob","text":"elsewhere"}"#, to: "chat/kitchen")

        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == ChatMessage(sender: "bob", text: "hi"))
    }

    @Test("Rubbish in a room does not end the conversation")
    func rubbish() async throws {
        mock.expect(.subscribe)
        let messages = try await service.join("lobby")
        mock.push("not JSON", to: "chat/lobby")
        mock.push(#"{"sender":"bob","text":"still here"}"#, to: "chat/lobby")

        var iterator = messages.skippingFailures.makeAsyncIterator()
        #expect(try await iterator.next() == ChatMessage(sender: "bob", text: "still here"))
    }

    @Test("A refused token is replaced once, and the new one is used")
    func token() async throws {
        mock.expect(.connect, .failure(WaybillError(.unauthorized, "token expired")), .success)
        let tokens = TokenInterceptor(.password(userName: "ada")) { refused in
            refused == nil ? "old" : "new"
        }
        let provider = Provider<ChatEntry>(transport: mock).intercepted(tokens)

        try await ChatService(provider: provider).connect()

        let passwords = mock.requests.map { $0.command[.password] ?? "" }
        #expect(passwords == ["old", "new"])
    }

    @Test("A lost connection ends the stream with its cause")
    func dropped() async throws {
        mock.expect(.subscribe)
        let messages = try await service.join("lobby")
        mock.dropConnection()
        var iterator = messages.makeAsyncIterator()
        await #expect { try await iterator.next() } throws: { error in
            (error as? WaybillError)?.code == .connectionLost
        }
        #expect(try await iterator.next() == nil)
    }

    @Test("What the test did not foresee fails")
    func unexpected() async throws {
        await #expect(throws: WaybillError.self) { try await service.join("lobby") }
        #expect(mock.unexpectedRequests.map(\.topic) == ["chat/lobby"])
    }
}
