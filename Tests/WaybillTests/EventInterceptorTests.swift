import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Records the events that it observes, under a name.
private struct Observing: EventInterceptor {
    let name: String
    let lines: AsyncStream<String>.Continuation

    func observe(_ event: TransportEvent) { lines.yield("\(name) \(event.kind)") }
}

@Suite("Events for interceptors", .inSimulation, .timeLimit(.minutes(30)))
struct EventInterceptorTests {
    private let mock = MockTransport()

    private func take(_ count: Int, _ lines: AsyncStream<String>) async -> [String] {
        var taken: [String] = []
        for await line in lines {
            taken.append(line)
            if taken.count == count { break }
        }
        return taken
    }

    @Test("Each event goes to each interceptor, in the order in which they were added")
    func order() async throws {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        func observing(_ name: String) -> Observing { Observing(name: name, lines: continuation) }
        mock.expect(.connect).expect(.send)
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(observing("a"), RetryPolicy(maximumAttempts: 1), observing("b"))
            .intercepted(observing("c"))
        // Copies share their interceptors. The events of another provider of the transport are observed, too.
        let copy = provider
        try await copy.request(.connect)
        try await Provider<TestEntry>(transport: mock).request(.send(.none))
        let kinds = ["connecting", "connected", "sent", "acknowledged"]
        let expected = kinds.flatMap { kind in ["a", "b", "c"].map { "\($0) \(kind)" } }
        #expect(await take(expected.count, lines) == expected)
    }

    @Test("One that comes later gets no event from before")
    func later() async throws {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        func observing(_ name: String) -> Observing { Observing(name: name, lines: continuation) }
        let first = Provider<TestEntry>(transport: mock).intercepted(observing("a"))
        mock.report(TransportEvent(.sent))
        // The event before is still on its way.
        let second = Provider<TestEntry>(transport: mock).intercepted(observing("b"))
        mock.report(TransportEvent(.acknowledged))
        #expect(await take(3, lines) == ["a sent", "a acknowledged", "b acknowledged"])
        withExtendedLifetime((first, second)) {}
    }

    @Test("Interceptors that do not ask for events cause none to be made")
    func uninterested() async throws {
        mock.expect(.send)
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(RetryPolicy(maximumAttempts: 1), TokenInterceptor { _ in "token" })
        let made = LockedBox(0)
        func event() -> TransportEvent {
            made.change { $0 += 1 }
            return TransportEvent(.sent)
        }
        try await provider.request(.send(.none))
        mock.report(event())
        #expect(made.value == 0)
    }

    @Test("It goes on as long as the provider or one of its subscriptions, and leaves nothing")
    func lifetime() async throws {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        mock.expect(.subscribe)
        let made = LockedBox(0)
        func event() -> TransportEvent {
            made.change { $0 += 1 }
            return TransportEvent(.sent)
        }
        var messages: Messages<Message>?
        do {
            let provider = Provider<TestEntry>(transport: mock)
                .intercepted(Observing(name: "a", lines: continuation))
            messages = try await provider.messages(.subscribe())
        }
        mock.report(event())
        #expect(await take(2, lines) == ["a subscribed", "a sent"])
        #expect(made.value == 1 && messages != nil)
        messages = nil
        mock.report(event())
        #expect(made.value == 1)
    }

    @Test("Events from many tasks at once: each once, to each interceptor the same order")
    func concurrent() async throws {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        func observing(_ name: String) -> Observing { Observing(name: name, lines: continuation) }
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(observing("a"), observing("b"))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<100 { mock.report(TransportEvent(.sent)) }
                }
            }
        }
        let taken = await take(1_600, lines)
        #expect(taken == Array(repeating: ["a sent", "b sent"], count: 800).flatMap { $0 })
        _ = provider
    }

    @Test("Retries are told with request, attempt, delay and error, before the wait")
    func retries() async throws {
        let clock = ManualClock()
        mock.expect(.send, .failure(WaybillError(.timedOut, "slow")), .success)
        var configuration = ProviderConfiguration()
        configuration.clock = clock
        let provider = Provider<TestEntry>(transport: mock, configuration: configuration)
            .intercepted(RetryPolicy(maximumAttempts: 3, delay: .constant(.seconds(60))))
        var iterator = provider.events.makeAsyncIterator()
        let request = Task {
            try await provider.request(.send(.text("x"), command: .send(.idempotent)))
        }
        var retrying: TransportEvent?
        while retrying == nil, let event = await iterator.next() {
            if event.kind == .retrying { retrying = event }
        }
        #expect(retrying?.command == "send" && retrying?.topic == "t" && retrying?.attempt == 2)
        #expect(retrying?.delay == .seconds(60) && retrying?.error?.code == .timedOut)
        await clock.waitForSleepers(1)
        clock.advance(by: .seconds(60))
        _ = try await request.value
        let (sent, acknowledged) = (await iterator.next(), await iterator.next())
        #expect(sent?.kind == .sent && acknowledged?.kind == .acknowledged)
    }

    @Test("Tokens: asked for, received, refreshed once for all, failed; never shown")
    func tokens() async throws {
        let other = MockTransport().expect(.send)
        mock.expect(.send, .success, .failure(expired), .success, .failure(expired))
        let tokens = NumberedTokens { number in
            if number == 3 { throw NumberedTokens.Failure() }
        }
        let interceptor = TokenInterceptor(source: tokens, configuration: untimed())
        let provider = Provider<PlainEntry>(transport: mock).intercepted(interceptor)
        let second = Provider<PlainEntry>(transport: other).intercepted(interceptor)
        var iterator = provider.events.makeAsyncIterator()
        var elsewhere = second.events.makeAsyncIterator()
        try await provider.request(.send)
        try await second.request(.send)
        try await provider.request(.send)
        await expectError(.unauthorized) { try await provider.request(.send) }
        mock.report(TransportEvent(.missed))
        other.report(TransportEvent(.missed))
        var seen: [TransportEvent] = []
        while let event = await iterator.next(), event.kind != .missed { seen.append(event) }
        var there: [TransportEvent.Kind] = []
        while let event = await elsewhere.next(), event.kind != .missed { there.append(event.kind) }
        #expect(
            seen.map(\.kind) == [
                .tokenRequested, .tokenReceived, .sent, .acknowledged,
                .sent, .sendFailed, .tokenRefreshing, .tokenReceived, .retrying, .sent,
                .acknowledged, .sent, .sendFailed, .tokenRefreshing, .tokenFailed,
            ]
        )
        // Both providers share the token. Once the second one has used it, its events go to both.
        #expect(
            there == [
                .sent, .acknowledged, .tokenRefreshing, .tokenReceived, .tokenRefreshing,
                .tokenFailed,
            ]
        )
        #expect(seen.last?.error?.underlying is NumberedTokens.Failure)
        for event in seen {
            #expect(!"\(event)".contains("token 1") && !"\(event)".contains("token 2"))
        }
    }
}
