import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// The examples of the page "Testing a service".
@Suite("Guide: testing a service", .inSimulation, .timeLimit(.minutes(30))) struct TestingExamples {
    private enum ChatEntry: EntryType {
        case join(room: String)
        case say(String, room: String)

        var topic: String? {
            switch self {
            case .join(let room), .say(_, let room): "chat/\(room)"
            }
        }

        var command: EntryCommand {
            switch self {
            case .join: .subscribe(qos: .atLeastOnce)
            case .say: .send(qos: .atLeastOnce)
            }
        }

        var body: EntryBody {
            switch self {
            case .join: .none
            case .say(let text, _): .text(text)
            }
        }
    }

    @Test("Rules answer, and messages are pushed")
    func rules() async throws {
        let mock = MockTransport(like: .mqtt5)
        mock.expect(.subscribe)
        mock.expect(
            .send,
            topic: "chat/lobby",
            .failure(WaybillError(.timedOut, "slow")),
            .success
        )
        let chat = Provider<ChatEntry>(transport: mock)

        let messages = try await chat.messages(.join(room: "lobby"))
        mock.push("hello", to: "chat/lobby")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "hello")
        await #expect(throws: WaybillError.self) {
            try await chat.request(.say("1", room: "lobby"))
        }
        try await chat.request(.say("2", room: "lobby"))
        #expect(mock.unexpectedRequests.isEmpty)
    }

    @Test("A token is on the CONNECT of each connection")
    func tokens() async throws {
        let mock = MockTransport(like: .mqtt5).expect(.send)
        mock.expect(
            .connect,
            .answer { request in
                guard request.command[.password] == "token 2" else {
                    return .failure(WaybillError(.unauthorized, "expired"))
                }
                return .success
            }
        )
        let tokens = TokenInterceptor(.password()) { refused in
            refused == nil ? "token 1" : "token 2"
        }
        let chat = Provider<ChatEntry>(transport: mock).intercepted(tokens)
        try await chat.request(.say("hello", room: "lobby"))
        #expect(mock.connects.count == 2)
    }

    @Test("An answer that does not come is timedOut by the mock's clock")
    func timeouts() async throws {
        let clock = ManualClock()
        let mock = MockTransport(like: .stomp, clock: clock).expect(.send, .silence)
        let chat = Provider<ChatEntry>(transport: mock)
        let call = Task { try await chat.request(.say("hello", room: "lobby")) }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(15))
        let error = await #expect(throws: WaybillError.self) { try await call.value }
        #expect(error?.code == .timedOut)
    }

    @Test("The outcomes of a rule for .connect come in order, and the last one stays")
    func connects() async throws {
        let mock = MockTransport(like: .mqtt5)
        mock.expect(.connect, .success, .failure(WaybillError(.unauthorized, "expired")))
        mock.expect(.disconnect)
        let chat = Provider<ChatEntry>(transport: mock)
        try await chat.connect()
        try await chat.disconnect()
        for _ in 1...2 {
            let error = await #expect(throws: WaybillError.self) { try await chat.connect() }
            #expect(error?.code == .unauthorized)
        }
    }
}
