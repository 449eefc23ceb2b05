import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// One enum, one interceptor, real frames: a refused token is replaced once.
@Suite("Tokens over every transport", .inSimulation, .timeLimit(.minutes(30))) struct TokenTests {
    private enum Entry: EntryType {
        case connect
        case listen
        case say(String)

        var topic: String? {
            switch self {
            case .connect: nil
            case .listen, .say: "room"
            }
        }

        var command: EntryCommand {
            switch self {
            case .connect: .connect
            case .listen: .subscribe
            case .say: .send
            }
        }

        var body: EntryBody {
            switch self {
            case .say(let text): .text(text)
            case .connect, .listen: .none
            }
        }
    }

    private actor Tokens: TokenSource {
        private(set) var calls: [String?] = []

        func token() -> String { next(nil) }
        func refresh(_ refused: String) -> String { next(refused) }

        private func next(_ refused: String?) -> String {
            calls.append(refused)
            return "token-\(calls.count)"
        }
    }

    private static func placement(_ service: LoopbackBroker.Service) -> TokenPlacement {
        guard service == .eventStream else { return .password(userName: "ada") }
        return .header("Authorization", on: [.send, .subscribe]) { token in
            "Basic " + Data("ada:\(token)".utf8).base64EncodedString()
        }
    }

    @Test(
        "A server that takes the second token: one refresh, and the conversation goes on",
        arguments: LoopbackBroker.Service.allCases
    )
    func replaced(service: LoopbackBroker.Service) async throws {
        let broker = try LoopbackBroker.started { $0.credentials = ["ada": "token-2"] }
        let transport = try broker.transport(service)
        let tokens = Tokens()
        let provider = Provider<Entry>(transport: transport)
            .intercepted(TokenInterceptor(Self.placement(service), source: tokens))
        try await provider.request(.connect)
        var heard: Messages<String>.AsyncIterator = try await provider.messages(.listen)
            .makeAsyncIterator()
        try await provider.request(.say("hello"))
        #expect(try await heard.next() == "hello")
        #expect(await tokens.calls == [nil, "token-1"])
        await transport.shutdown()
        await broker.stop()
    }

    @Test(
        "A server that takes no token is asked twice, and refuses for good",
        arguments: LoopbackBroker.Service.allCases
    )
    func refused(service: LoopbackBroker.Service) async throws {
        let log = LineLog()
        let broker = try LoopbackBroker.started {
            $0.credentials = ["ada": "another"]
            $0.log = { log.append($0) }
        }
        let transport = try broker.transport(service)
        let tokens = Tokens()
        let provider = Provider<Entry>(transport: transport)
            .intercepted(TokenInterceptor(Self.placement(service), source: tokens))
        let error = await #expect(throws: WaybillError.self) {
            // The connect of an event stream sends no request.
            try await provider.request(service == .eventStream ? .say("hello") : .connect)
        }
        #expect(error?.code == .unauthorized && error?.attempt == 2)
        #expect(await tokens.calls == [nil, "token-1"])
        await transport.shutdown()
        await broker.stop()
        #expect(!log.all.contains { $0.contains("token-") }, "\(log.all)")
    }
}

@Suite("Retries and disconnects over real frames", .inSimulation, .timeLimit(.minutes(30)))
struct RetryTests {
    private static func entry(_ kind: EntryCommand.Kind) -> Plain {
        switch kind {
        case .connect: Plain(topic: nil, command: .connect)
        case .subscribe: Plain(topic: "t", command: .subscribe)
        default: Plain(topic: "t", command: .send(.idempotent))
        }
    }

    private struct Plain: EntryType {
        var topic: String?
        var command: EntryCommand
    }

    @Test(
        "A server that answers ERROR for ever sees so many attempts and no more",
        arguments: [EntryCommand.Kind.connect, .send, .subscribe]
    )
    func errorForEver(kind: EntryCommand.Kind) async throws {
        let log = LineLog()
        let broker = try LoopbackBroker.started { $0.log = { log.append($0) } }
        broker.faults.answersWithError = [.connect: 0, .send: .max, .subscribe: .max]
        if kind == .connect { broker.faults.answersWithError = [.connect: .max] }
        let transport = try broker.transport(.stomp)
        let provider = Provider<Plain>(transport: transport).intercepted(
            RetryPolicy(maximumAttempts: 4, delay: .none, codes: [.rejected, .connectionLost])
        )
        let error = await #expect(throws: WaybillError.self) {
            if kind == .subscribe {
                _ = try await provider.messages(Self.entry(kind))
            } else {
                try await provider.request(Self.entry(kind))
            }
        }
        #expect(error?.attempt == 4)
        await transport.shutdown()
        await broker.stop()
        let frames = log.all.filter { $0.contains("← \(kind.description.uppercased())") }
        #expect(frames.count == 4, "\(log.all)")
    }

    @Test(
        "disconnect() while a connect waits for its token: no connection follows",
        arguments: [LoopbackBroker.Service.mqtt, .mqttOverWebSocket, .stomp, .stompOverWebSocket]
    )
    func disconnect(service: LoopbackBroker.Service) async throws {
        let log = LineLog()
        let broker = try LoopbackBroker.started { $0.log = { log.append($0) } }
        let transport = try broker.transport(service)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let provider = Provider<Plain>(transport: transport).intercepted(
            TokenInterceptor(.password(userName: "ada")) { _ in
                begin.finish()
                for await _ in AsyncStream<Never>.makeStream().stream {}
                try Task.checkCancellation()
                return "late"
            }
        )
        let connecting = Task { try await provider.request(Self.entry(.connect)) }
        for await _ in begun {}
        // A transport without a connection may throw.
        _ = try? await provider.request(Plain(topic: nil, command: .disconnect))
        let error = await #expect(throws: WaybillError.self) { try await connecting.value }
        #expect(error?.code == .notConnected)
        await transport.shutdown()
        await broker.stop()
        #expect(log.all.isEmpty, "\(log.all)")
    }
}
