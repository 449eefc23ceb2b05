import StomperPort
import Testing
import WaybillSTOMP
import WaybillTesting

/// The client against a broker in this process. Like the chat's server, it publishes to `/sub/chat` what clients send
/// to `/pub/chat`.
@Suite("Coming from Stomper", .timeLimit(.minutes(30))) struct StomperPortTests {
    private let hello = ChatMessage(sender: "ada", content: "hello")

    /// Calls a function that takes a completion handler.
    @discardableResult
    private func call<Value: Sendable>(
        _ body: (@escaping @Sendable (Result<Value, any Error>) -> Void) -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            body { continuation.resume(with: $0) }
        }
    }

    private func broker(_ log: AsyncStream<String>.Continuation) throws -> LoopbackBroker {
        var configuration = LoopbackBroker.Configuration()
        configuration.relays = ["/pub/chat": "/sub/chat"]
        configuration.log = { log.yield($0) }
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        return broker
    }

    @Test(
        "Connect, subscribe, send, hear, disconnect, all with completion handlers",
        arguments: [LoopbackBroker.Service.stomp, .stompOverWebSocket]
    )
    func conversation(service: LoopbackBroker.Service) async throws {
        let (lines, log) = AsyncStream.makeStream(of: String.self)
        let broker = try broker(log)
        let transport = try STOMPTransport(url: broker.url(for: service))
        let client = ChatClient(
            transport: transport,
            interceptor: TokenInterceptor.chat { _ in "token" }
        )
        // A command without a reply gives an empty text.
        #expect(try await call(client.connect).isEmpty)

        let (heard, ear) = AsyncStream.makeStream(of: Result<ChatMessage, any Error>.self)
        let subscription = client.subscribe { ear.yield($0) }
        for await line in lines where line.contains("→ RECEIPT") { break }
        try await call { client.send(hello, $0) }
        for await result in heard {
            #expect(try result.get() == hello)
            break
        }
        subscription.cancel()
        #expect(try await call(client.disconnect).isEmpty)
        #expect("\(transport.states.current)" == "disconnected")
        await transport.shutdown()
        await broker.stop()
    }

    @Test("A refused token is replaced once; every CONNECT carries one")
    func token() async throws {
        let (_, log) = AsyncStream.makeStream(of: String.self)
        let broker = try broker(log)
        broker.faults.refusesConnections = .badUserNameOrPassword
        let transport = try STOMPTransport(url: broker.url(for: .stomp))
        let session = Session(broker)
        let client = ChatClient(
            transport: transport,
            interceptor: TokenInterceptor.chat { refused in
                if refused != nil { await session.renew() }
                return await session.current()
            }
        )
        try await call(client.connect)
        #expect(await session.renewals == 1)
        await transport.shutdown()
        await broker.stop()
    }

    @Test(
        "A token that expired during a lost connection is renewed, and the subscription goes on",
        arguments: [true, false]
    )
    func reconnection(byHand: Bool) async throws {
        let (lines, log) = AsyncStream.makeStream(of: String.self)
        let broker = try broker(log)
        let transport = try STOMPTransport(url: broker.url(for: .stomp)) {
            $0.reconnection.initialDelay = .zero
        }
        let session = Session(broker)
        let interceptor: any Interceptor =
            if byHand {
                ChatTokenInterceptor(tokens: session, delay: .zero)
            } else {
                TokenInterceptor.chat { refused in
                    if refused != nil { await session.renew() }
                    return await session.current()
                }
            }
        let recorder = Recorder(base: interceptor)
        let client = ChatClient(transport: transport, interceptor: recorder)
        try await call(client.connect)
        let (heard, ear) = AsyncStream.makeStream(of: Result<ChatMessage, any Error>.self)
        let subscription = client.subscribe { ear.yield($0) }
        for await line in lines where line.contains("→ RECEIPT") { break }

        // The token expires and the connection breaks.
        broker.faults.refusesConnections = .badUserNameOrPassword
        broker.restart(keepingState: true)
        for await line in lines where line.contains("→ RECEIPT") { break }

        try await call { client.send(hello, $0) }
        for await result in heard {
            #expect(try result.get() == hello)
            break
        }
        #expect(await session.renewals == 1)
        #expect(
            await recorder.seen.values == ["Bearer token 1", "Bearer token 1", "Bearer token 2"]
        )
        subscription.cancel()
        await transport.shutdown()
        await broker.stop()
    }

    @Test("A unit test of the same client needs no server")
    func mock() async throws {
        let mock = MockTransport(wildcards: .none)
        mock.expect(.connect).expect(.send, topic: "/pub/chat")
        let client = ChatClient(
            transport: mock,
            interceptor: TokenInterceptor.chat { _ in "token" }
        )
        try await call(client.connect)
        try await call { client.send(hello, $0) }
        #expect(mock.requests.first?.headers["Authorization"] == "Bearer token")
        #expect(mock.requests.last?.body.text == #"{"content":"hello","sender":"ada"}"#)
        #expect(mock.requests.last?.headers.isEmpty == true)
    }
}

/// The app's token. Once it is renewed, the broker accepts connections again.
private actor Session: ChatTokens {
    private let broker: LoopbackBroker
    private(set) var renewals = 0

    init(_ broker: LoopbackBroker) { self.broker = broker }

    func current() -> String { "token \(renewals + 1)" }

    func renew() {
        renewals += 1
        broker.faults.refusesConnections = nil
    }
}

/// Records the token that another interceptor has added to each CONNECT.
private struct Recorder: Interceptor {
    let base: any Interceptor
    let seen = Seen()

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        try await base.adapt(&request, context: context)
        guard request.command.kind == .connect else { return }
        await seen.add(request.headers["Authorization"])
    }

    func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        await base.retry(request, after: error, context: context)
    }

    actor Seen {
        private(set) var values: [String?] = []

        func add(_ value: String?) { values.append(value) }
    }
}
