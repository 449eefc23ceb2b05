import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

@Suite("Tokens: waiting, cancelling, going past", .inSimulation, .timeLimit(.minutes(30)))
struct TokenLifeTests {
    private func provider(
        _ mock: MockTransport,
        _ source: some TokenSource,
        _ configuration: TokenInterceptor.Configuration = untimed()
    ) -> Provider<PlainEntry> {
        Provider<PlainEntry>(transport: mock)
            .intercepted(TokenInterceptor(source: source, configuration: configuration))
    }

    @Test("Cancelling one task that waits for a refresh does not cancel it for the others")
    @MainActor func refreshWaiterCancelled() async throws {
        let gate = Gate()
        let count = LockedBox(0)
        let mock = MockTransport()
            .expect(.send, .failure(expired), .failure(expired), .success)
        let source = NumberedTokens { if $0 > 1 { try await gate.pass() } }
        let interceptor = TokenInterceptor(source: source, configuration: untimed())
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Counting(count: count), interceptor, Meeting(size: 2))
        let tasks = (0..<2).map { _ in Task { try await provider.request(.send) } }
        try await waitUntil { count.value >= 2_000 }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        gate.open()
        _ = try await tasks[1].value
        #expect(source.calls == ["token", "refresh token 1"])
        #expect(mock.tokens == [1, 1, 2].map { "Bearer token \($0)" })
    }

    @Test("Of two tasks that wait for the first token, one is cancelled and the other gets it")
    @MainActor func waiterCancelled() async throws {
        let gate = Gate()
        let count = LockedBox(0)
        let mock = MockTransport().expect(.send)
        let source = NumberedTokens { _ in try await gate.pass() }
        let interceptor = TokenInterceptor(source: source, configuration: untimed())
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Counting(count: count), interceptor)
        let tasks = (0..<2).map { _ in Task { try await provider.request(.send) } }
        try await waitUntil { count.value >= 2 }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        gate.open()
        _ = try await tasks[1].value
        #expect(source.calls == ["token"] && mock.requests.count == 1)
    }

    @Test(
        "The cancellation of the last waiting task leaves the source at work, and its token is kept"
    )
    @MainActor func lastWaiterCancelled() async throws {
        let gate = Gate()
        let count = LockedBox(0)
        let mock = MockTransport().expect(.send)
        let source = NumberedTokens { if $0 == 1 { try await gate.pass() } }
        let interceptor = TokenInterceptor(source: source, configuration: untimed())
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Counting(count: count), interceptor)
        let tasks = (0..<100).map { _ in Task { try await provider.request(.send) } }
        try await waitUntil { count.value >= 100 && !source.calls.isEmpty }
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        let next = Task { try await provider.request(.send) }
        await untilQuiet()
        gate.open()
        _ = try await next.value
        #expect(source.calls == ["token"])
        #expect(mock.tokens == ["Bearer token 1"])
    }

    @Test("A refresh without a waiting task goes on: a refresh token that is good once is not lost")
    func abandonedRefresh() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.send, .failure(expired), .success)
        let source = NumberedTokens { if $0 == 2 { try await gate.pass() } }
        let provider = provider(mock, source)
        let first = Task { try await provider.request(.send) }
        try await waitUntil { source.calls.count >= 2 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let next = Task { try await provider.request(.send) }
        await untilQuiet()
        // The refused token is not used again.
        #expect(mock.tokens == ["Bearer token 1"])
        gate.open()
        _ = try await next.value
        #expect(mock.tokens == ["Bearer token 1", "Bearer token 2"])
        #expect(source.calls == ["token", "refresh token 1"])
    }

    @Test("A source that is silent for 30 s fails all waiting requests, and is cancelled")
    @MainActor func timeLimit() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let mock = MockTransport()
        let source = NumberedTokens { _ in
            defer { end.finish() }
            try await gate.pass()
        }
        let count = LockedBox(0)
        let interceptor = TokenInterceptor(source: source, configuration: .init(clock: clock))
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Counting(count: count), interceptor)
        let tasks = (0..<10).map { _ in Task { try await provider.request(.send) } }
        try await waitUntil { count.value >= 10 && !source.calls.isEmpty }
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(29_999))
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .milliseconds(1))
        for task in tasks {
            let error = await expectError(.unauthorized) { try await task.value }
            #expect(error?.underlying as? TokenFailure == .timedOut)
        }
        for await _ in ends {}
        #expect(mock.requests.isEmpty)
    }

    @Test("A source may ask through a provider with the same interceptor, which lets it pass")
    func sameProvider() async throws {
        let mock = MockTransport().expect(.send, .failure(expired), .success)
            .expect(.send, topic: "sign-in", .reply("a"), .reply("b"))
        let box = LockedBox<Provider<PlainEntry>?>(nil)
        let interceptor = TokenInterceptor(configuration: untimed()) { _ in
            let provider = try #require(box.value)
            return try await provider.request(
                PlainEntry(command: .send, topic: "sign-in"),
                as: String.self
            )
        }
        let provider = Provider<PlainEntry>(transport: mock).intercepted(interceptor)
        box.change { $0 = provider }
        try await provider.request(.send)
        #expect(mock.requests.map(\.topic) == ["sign-in", "t", "sign-in", "t"])
        #expect(mock.tokens == ["-", "Bearer a", "-", "Bearer b"])
        box.change { $0 = nil }
    }

    @Test("The refresh's own request is refused: no refresh within the refresh")
    func refusedRefresh() async throws {
        let mock = MockTransport().expect(.send, .failure(expired))
        let box = LockedBox<Provider<PlainEntry>?>(nil)
        let calls = LockedBox(0)
        let interceptor = TokenInterceptor(configuration: untimed()) { refused in
            calls.change { $0 += 1 }
            guard refused != nil else { return "a" }
            try await box.value?.request(PlainEntry(command: .send, topic: "sign-in"))
            return "b"
        }
        let provider = Provider<PlainEntry>(transport: mock).intercepted(interceptor)
        box.change { $0 = provider }
        let error = await expectError(.unauthorized) { try await provider.request(.send) }
        #expect((error?.underlying as? WaybillError)?.topic == "sign-in")
        #expect(calls.value == 2)
        #expect(mock.tokens == ["Bearer a", "-"])
        box.change { $0 = nil }
    }

    @Test("A task that outlives the source's call does not go past the interceptor for ever")
    func bypassEnds() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.send)
        let box = LockedBox<Provider<PlainEntry>?>(nil)
        let later = LockedBox<Task<Void, any Error>?>(nil)
        let interceptor = TokenInterceptor(configuration: untimed()) { _ in
            let task = Task {
                try await gate.pass()
                try await box.value?.request(PlainEntry.send)
            }
            later.change { $0 = task }
            return "a"
        }
        let provider = Provider<PlainEntry>(transport: mock).intercepted(interceptor)
        box.change { $0 = provider }
        try await provider.request(.send)
        gate.open()
        try await later.value?.value
        #expect(mock.tokens == ["Bearer a", "Bearer a"])
        box.change { $0 = nil }
    }

    @Test("Entries that need no token neither wait for one nor have one refreshed")
    func noToken() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.send, .failure(expired))
        let source = NumberedTokens { _ in try await gate.pass() }
        let provider = provider(mock, source)
        let waiting = Task { try await provider.request(.send) }
        try await waitUntil { !source.calls.isEmpty }
        var entry = PlainEntry.send
        entry.needsToken = false
        let error = await expectError(.unauthorized) { try await provider.request(entry) }
        #expect(error?.attempt == 1)
        #expect(mock.tokens == ["-"] && source.calls == ["token"])
        waiting.cancel()
        _ = await waiting.result
        #expect(TestEntry.connect.needsToken)
    }

    @Test("Discarding a token fails waiting requests; the next request asks again")
    func forget() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.send)
        let source = NumberedTokens { if $0 == 2 { try await gate.pass() } }
        let interceptor = TokenInterceptor(source: source, configuration: untimed())
        let provider = Provider<PlainEntry>(transport: mock).intercepted(interceptor)
        try await provider.request(.send)
        interceptor.forget()
        let waiting = Task { try await provider.request(.send) }
        try await waitUntil { source.calls.count >= 2 }
        interceptor.forget()
        let error = await expectError(.unauthorized) { try await waiting.value }
        #expect(error?.underlying as? TokenFailure == .discarded)
        try await provider.request(.send)
        #expect(mock.tokens == ["Bearer token 1", "Bearer token 3"])
    }

    @Test("A call for the token itself shares it, and its refresh, with the requests")
    func askedDirectly() async throws {
        let mock = MockTransport().expect(.send)
        let source = NumberedTokens { if $0 == 4 { throw NumberedTokens.Failure() } }
        let interceptor = TokenInterceptor(source: source, configuration: untimed())
        let provider = Provider<PlainEntry>(transport: mock).intercepted(interceptor)
        #expect(try await interceptor.token() == "token 1")
        try await provider.request(.send)
        #expect(try await interceptor.token(replacing: "token 1") == "token 2")
        #expect(try await interceptor.token(replacing: "token 1") == "token 2")
        try await provider.request(.send)
        let tasks = (0..<100).map { _ in
            Task { try await interceptor.token(replacing: "token 2") }
        }
        for task in tasks { #expect(try await task.value == "token 3") }
        let error = await expectError(.unauthorized) {
            try await interceptor.token(replacing: "token 3")
        }
        #expect(error?.underlying is NumberedTokens.Failure)
        #expect(mock.tokens == ["Bearer token 1", "Bearer token 2"] && source.calls.count == 4)
    }

    @Test("A source that asks for its own token is told so, and waits for nothing")
    func asksItself() async throws {
        let box = LockedBox<TokenInterceptor?>(nil)
        let interceptor = TokenInterceptor(configuration: untimed()) { _ in
            try await box.value?.token() ?? ""
        }
        box.change { $0 = interceptor }
        let error = await expectError(.unauthorized) { try await interceptor.token() }
        #expect((error?.underlying as? WaybillError)?.code == .unauthorized)
        box.change { $0 = nil }
    }

    @Test("With a token at hand a thousand requests from an actor do not hop off it once")
    func noHops() async throws {
        let mock = MockTransport().expect(.send)
        let provider = provider(mock, NumberedTokens())
        try await provider.request(.send)
        let hops = try await CountingActor().hops { _ in
            for _ in 0..<1_000 { try await provider.request(.send) }
        }
        #expect(hops == 0)
    }
}
