import ChatService
import Testing
import WaybillTesting

/// A service layer across lost connections, shown without a server and without waiting. The mock acts as a transport
/// that reconnects, and the test moves the clock.
///
/// The mock follows the real transports in three rules that a test can rely on: streams continue, sends wait in the
/// order of the calls, and each call ends once.
@Suite("Chat service: connections that come and go", .timeLimit(.minutes(30)))
struct OutageTests {
    let clock = ManualClock()
    let mock: MockTransport

    init() {
        mock = MockTransport(clock: clock)
    }

    private func service(_ interceptors: any Interceptor...) -> ChatService {
        var provider = Provider<ChatEntry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        )
        for interceptor in interceptors { provider = provider.intercepted(interceptor) }
        return ChatService(provider: provider)
    }

    @Test("A room is heard through an outage: the stream notices nothing")
    func streamLivesOn() async throws {
        mock.expect(.subscribe)
        let messages = try await service().join("lobby")
        var iterator = messages.makeAsyncIterator()
        mock.push(#"{"sender":"bob","text":"before"}"#, to: "chat/lobby")
        #expect(try await iterator.next()?.text == "before")

        mock.interruptConnection()
        mock.restoreConnection()

        mock.push(#"{"sender":"bob","text":"after"}"#, to: "chat/lobby")
        #expect(try await iterator.next()?.text == "after")
        // The transport itself restores the subscription, without a further request.
        #expect(mock.requests.count == 1)
    }

    @Test("A banner can say what happens, with the reason")
    func states() async throws {
        mock.expect(.connect)
        try await service().connect()
        var states = mock.states.makeAsyncIterator()
        #expect("\(await states.next()!)" == "connected")

        mock.interruptConnection(WaybillError(.connectionLost, "the tunnel is long"))
        guard case .waiting(_, let cause) = await states.next() else {
            Issue.record("not waiting")
            return
        }
        #expect(cause.message == "the tunnel is long")
        mock.restoreConnection()
        #expect("\(await states.next()!)" == "connecting (attempt 1)")
        #expect("\(await states.next()!)" == "connected")
    }

    @Test("What is said while the connection is away arrives in order once it is back")
    func offline() async throws {
        mock.expect(.send)
        let service = service()
        mock.interruptConnection()
        var sends: [Task<Void, any Error>] = []
        for text in ["one", "two", "three"] {
            sends.append(Task { try await service.say(text, as: "ada", in: "lobby") })
            // Each send takes its place in the queue before the next one starts.
            await clock.waitForSleepers(sends.count)
        }
        #expect(mock.requests.isEmpty)

        mock.restoreConnection()

        for send in sends { try await send.value }
        #expect(
            mock.requests.map(\.body.text)
                == ["one", "two", "three"].map {
                    #"{"sender":"ada","text":"\#($0)"}"#
                }
        )
    }

    @Test("No send waits for ever: after a while it fails, and the error allows a retry")
    func givesUp() async throws {
        mock.expect(.send)
        let service = service()
        mock.interruptConnection()
        let sending = Task { try await service.say("hello?", as: "ada", in: "lobby") }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(10))
        let error = await #expect(throws: WaybillError.self) { try await sending.value }
        #expect(error?.code == .notConnected && error?.isRetryable == true)
        #expect(mock.requests.isEmpty)
    }

    @Test("A retry policy carries a send over a long outage")
    func retries() async throws {
        mock.expect(.send)
        let service = service(RetryPolicy(maximumAttempts: 3, delay: .constant(.seconds(5))))
        mock.interruptConnection()
        let sending = Task { try await service.say("hello?", as: "ada", in: "lobby") }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(10))
        // The first attempt has failed. The second one comes after five seconds.
        await clock.waitForSleepers()
        clock.advance(by: .seconds(5))
        await clock.waitForSleepers()
        mock.restoreConnection()
        try await sending.value
        #expect(mock.requests.count == 1)
    }

    @Test(
        "The token expires during an outage: one refresh when the connection is back, and all is said"
    )
    func refreshAfterOutage() async throws {
        mock.expect(.send, .failure(WaybillError(.unauthorized, "token expired")), .success)
        let asked = Counter()
        let tokens = TokenInterceptor(.bearer, configuration: .init(timeout: nil, clock: clock)) {
            _ in "token \(await asked.next())"
        }
        let service = service(tokens)
        mock.interruptConnection()
        let sending = Task { try await service.say("hello", as: "ada", in: "lobby") }
        await clock.waitForSleepers()
        mock.restoreConnection()
        try await sending.value
        #expect(
            mock.requests.map { $0.headers["Authorization"] } == [
                "Bearer token 1", "Bearer token 2",
            ]
        )
    }

    private actor Counter {
        private var count = 0

        func next() -> Int {
            count += 1
            return count
        }
    }
}
