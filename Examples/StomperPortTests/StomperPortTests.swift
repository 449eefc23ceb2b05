import StomperPort
import Testing
import Waybill
import WaybillSTOMP
import WaybillTesting

/// The client against a broker inside the process that, as the chat's server would, publishes to `/sub/chat`
/// what clients send to `/pub/chat`.
@Suite("Coming from Stomper", .timeLimit(.minutes(5))) struct StomperPortTests {
    /// Calls a function that takes a completion handler.
    private func call(
        _ body: (@escaping @Sendable (Result<Receipt, any Error>) -> Void) -> Void
    ) async throws {
        _ = try await withCheckedThrowingContinuation { continuation in
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
        let client = ChatClient(transport: transport, interceptor: .chat { _ in "token" })
        try await call(client.connect)

        let (heard, ear) = AsyncStream.makeStream(of: Result<ChatMessage, any Error>.self)
        let subscription = client.subscribe { ear.yield($0) }
        for await line in lines where line.contains("→ RECEIPT") { break }
        let hello = ChatMessage(sender: "ada", content: "hello")
        try await call { client.send(hello, $0) }
        for await result in heard {
            #expect(try result.get() == hello)
            break
        }
        subscription.cancel()
        try await call(client.disconnect)
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
        let count = Counter()
        let client = ChatClient(
            transport: transport,
            interceptor: .chat { _ in
                let number = await count.next()
                // The server takes the second token.
                if number == 2 { broker.faults.refusesConnections = nil }
                return "token \(number)"
            }
        )
        try await call(client.connect)
        #expect(await count.number == 2)
        await transport.shutdown()
        await broker.stop()
    }

    @Test("A unit test of the same client needs no server")
    func mock() async throws {
        let mock = MockTransport(wildcards: .none)
        mock.expect(.connect).expect(.send, topic: "/pub/chat")
        let client = ChatClient(transport: mock, interceptor: .chat { _ in "token" })
        try await call(client.connect)
        try await call { client.send(ChatMessage(sender: "ada", content: "hi"), $0) }
        #expect(mock.requests.first?.headers["Authorization"] == "Bearer token")
        #expect(mock.requests.last?.body.text == #"{"content":"hi","sender":"ada"}"#)
        #expect(mock.requests.last?.headers.isEmpty == true)
    }
}

private actor Counter {
    private(set) var number = 0

    func next() -> Int {
        number += 1
        return number
    }
}
