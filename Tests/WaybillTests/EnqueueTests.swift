import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireCore
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An interceptor that takes a different time for each request.
private struct Unsteady: Interceptor {
    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        for _ in 0..<(request.body.count * 7 % 5) { await Task.yield() }
        request.headers.append(name: "seen", value: "1")
    }
}

/// A transport with only the required members, which is slow now and then.
private struct PlainTransport: Transport {
    let mock: MockTransport

    var states: ConnectionStates { mock.states }
    func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await mock.subscribe(request)
    }
    func shutdown() async { await mock.shutdown() }

    func perform(_ request: Request) async throws -> Receipt {
        for _ in 0..<(request.body.count * 3 % 4) { await Task.yield() }
        return try await mock.perform(request)
    }
}

/// Records the events.
private final class Recorder: EventInterceptor {
    let kinds = Locked<[TransportEvent]>([])
    func observe(_ event: TransportEvent) { kinds.withLock { $0.append(event) } }
}

@Suite("Entries that are enqueued", .inSimulation, .timeLimit(.minutes(30))) struct EnqueueTests {
    private static func text(_ number: Int) -> String {
        "\(number)" + String(repeating: ".", count: number % 7)
    }

    private static func number(_ message: Message) -> Int? {
        message.text.flatMap { Int($0.prefix { $0 != "." }) }
    }

    @Test(
        "Over a broker they come in the order of the calls, with and without interceptors",
        arguments: [LoopbackBroker.Service.mqtt, .stomp],
        [QoS.atMostOnce, .atLeastOnce]
    )
    func brokers(_ service: LoopbackBroker.Service, _ qos: QoS) async throws {
        let bench = LoopbackBench()
        let receiver = Provider<LoopbackEntry>(transport: try bench.transport(service))
        var messages = try await receiver.messages(.subscribe("board", .atMostOnce))
            .makeAsyncIterator()
        let transport = try bench.transport(service)
        let plain = Provider<LoopbackEntry>(transport: transport)
        let count = 1_000
        for sender in [plain, plain.intercepted(Unsteady())] {
            // The first request makes the connection.
            let handles = (0..<count).map { sender.enqueue(.send(Self.text($0), to: "board", qos)) }
            for expected in 0..<count {
                let message = try #require(try await messages.next())
                try #require(Self.number(message) == expected)
            }
            for handle in handles { _ = try await handle.receipt }
        }
        await transport.shutdown()
        await bench.broker.stop()
    }

    @Test("Over HTTP, and a transport of one's own, each waits for the one before")
    func oneByOne() async throws {
        let bench = LoopbackBench()
        let receiver = Provider<LoopbackEntry>(transport: try bench.transport(.mqtt))
        var messages = try await receiver.messages(.subscribe("board")).makeAsyncIterator()
        let sender = Provider<LoopbackEntry>(transport: try bench.transport(.eventStream))
        for number in 0..<200 { sender.enqueue(.send(Self.text(number), to: "board")) }
        for expected in 0..<200 {
            try #require(Self.number(try #require(try await messages.next())) == expected)
        }
        await bench.broker.stop()

        let mock = MockTransport().expect(.send)
        let own = Provider<LoopbackEntry>(transport: PlainTransport(mock: mock))
            .intercepted(Unsteady())
        let handles = (0..<1_000).map { own.enqueue(.send(Self.text($0), to: "board")) }
        for handle in handles { _ = try await handle.receipt }
        #expect(mock.requests.map { $0.body.text } == (0..<1_000).map { Self.text($0) })
        #expect(mock.requests.allSatisfy { $0.headers["seen"] == "1" })
    }

    @Test("None waits for the confirmation of the one before", arguments: [false, true])
    func unconfirmed(_ isIntercepted: Bool) async throws {
        let mock = MockTransport().expect(.send, .silence)
        var provider = Provider<LoopbackEntry>(transport: mock)
        if isIntercepted { provider = provider.intercepted(Unsteady()) }
        let handles = (0..<2_000).map { provider.enqueue(.send(Self.text($0), to: "board")) }
        try await waitUntil { mock.requests.count == 2_000 }
        #expect(mock.requests.map { $0.body.text } == (0..<2_000).map { Self.text($0) })
        for handle in handles { handle.cancel() }
        await #expect(throws: CancellationError.self) { try await handles[7].receipt }
        await mock.shutdown()
    }

    @Test("An entry that has its outcome gives back its bytes and its place")
    func givenBack() async throws {
        let mock = MockTransport().expect(.send)
        var configuration = ProviderConfiguration()
        configuration.maximumEnqueuedByteCount = 10
        configuration.maximumEnqueuedCount = 2
        let provider = Provider<LoopbackEntry>(transport: mock, configuration: configuration)
        for _ in 0..<10 {
            _ = try await provider.enqueue(.send("six.by", to: "board")).receipt
        }
        mock.expect(.send, .silence)
        let waiting = provider.enqueue(.send("six.by", to: "board"))
        await expectError(.limitExceeded) {
            try await provider.enqueue(.send("fifty", to: "board")).receipt
        }
        waiting.cancel()
        let next = provider.enqueue(.send("six.by", to: "board"))
        let more = provider.enqueue(.send("four", to: "board"))
        await expectError(.limitExceeded) {
            try await provider.enqueue(.send("", to: "board")).receipt
        }
        // Both were accepted, and each waits for its answer.
        for handle in [next, more] {
            handle.cancel()
            await #expect(throws: CancellationError.self) { try await handle.receipt }
        }
        await mock.shutdown()
    }

    @Test("A connection that is away holds them up in order, and each can be cancelled")
    func cancelled() async throws {
        let mock = MockTransport().expect(.send)
        let provider = Provider<LoopbackEntry>(transport: mock)
        mock.interruptConnection()
        let handles = (0..<4).map { provider.enqueue(.send("\($0)", to: "board")) }
        handles[0].cancel()
        handles[2].cancel()
        await #expect(throws: CancellationError.self) { try await handles[0].receipt }
        await #expect(throws: CancellationError.self) { try await handles[2].receipt }
        mock.restoreConnection()
        _ = try await handles[3].receipt
        #expect(mock.requests.map { $0.body.text } == ["1", "3"])
        // This cancellation comes too late.
        handles[3].cancel()
        _ = try await handles[3].receipt
    }

    @Test("How many wait, and how many bytes, is bounded")
    func bounds() async throws {
        let mock = MockTransport().expect(.send, .silence)
        var configuration = ProviderConfiguration()
        configuration.maximumEnqueuedCount = 3
        let few = Provider<LoopbackEntry>(transport: mock, configuration: configuration)
        let handles = (0..<4).map { few.enqueue(.send("\($0)", to: "board")) }
        let error = await #expect(throws: WaybillError.self) { try await handles[3].receipt }
        #expect(error?.code == .limitExceeded && error?.topic == "board")
        handles[1].cancel()
        let next = few.enqueue(.send("4", to: "board"))
        try await waitUntil { mock.requests.last?.body.text == "4" }
        next.cancel()

        configuration = ProviderConfiguration()
        configuration.maximumEnqueuedByteCount = 4
        let small = Provider<LoopbackEntry>(transport: mock, configuration: configuration)
        let long = small.enqueue(.send("123456", to: "board"))
        let beyond = small.enqueue(.send("1", to: "board"))
        await #expect(throws: WaybillError.self) { try await beyond.receipt }
        long.cancel()
        small.enqueue(.send("56", to: "board"))
        try await waitUntil { mock.requests.last?.body.text == "56" }
        await mock.shutdown()
    }

    @Test("A failure that was asked for is no event")
    func askedFailure() async throws {
        let mock = MockTransport().expect(.send, .failure(WaybillError(.rejected, "no")))
        let recorder = Recorder()
        let provider = Provider<LoopbackEntry>(transport: mock).intercepted(recorder)
        do {
            let handle = provider.enqueue(.send("a", to: "board"))
            await expectError(.rejected) { try await handle.receipt }
        }
        provider.enqueue(.send("b", to: "lost"))
        func failed() -> [String?] {
            recorder.kinds.withLock { $0.filter { $0.kind == .enqueuedFailed }.map(\.topic) }
        }
        try await waitUntil { failed().contains("lost") }
        #expect(failed() == ["lost"])
    }

    @Test("A failure waits in the handle; without a handle it is an event")
    func failures() async throws {
        let refused = WaybillError(.rejected, "no")
        let mock = MockTransport().expect(.send, .failure(refused))
        let recorder = Recorder()
        let provider = Provider<LoopbackEntry>(transport: mock).intercepted(recorder)
        let handle = provider.enqueue(.send("a", to: "board"))
        let subscription = provider.enqueue(.subscribe("board"))
        for (handle, code) in [(handle, WaybillError.Code.rejected), (subscription, .invalidEntry)]
        {
            let error = await #expect(throws: WaybillError.self) { try await handle.receipt }
            #expect(error?.code == code)
        }
        provider.enqueue(.send("b", to: "lost"))
        func failed() -> [TransportEvent] {
            recorder.kinds.withLock { $0.filter { $0.kind == .enqueuedFailed } }
        }
        try await waitUntil { !failed().isEmpty }
        #expect(failed().first?.topic == "lost" && failed().first?.error?.code == .rejected)
        #expect(failed().count == 1)
    }

    @Test("One that fails after it was handed over is tried again where an interceptor says so")
    func retried() async throws {
        let mock = MockTransport().expect(
            .send,
            .failure(WaybillError(.timedOut, "slow")),
            .success
        )
        let provider = Provider<LoopbackEntry>(transport: mock).intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .constant(.zero))
        )
        let handle = provider.enqueue(.send("a", to: "board"))
        _ = try await handle.receipt
        #expect(mock.requests.count == 2)
    }
}
