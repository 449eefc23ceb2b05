import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

/// After a disconnect, a call that began earlier must not bring the connection back.
@Suite("Disconnecting while requests wait", .inSimulation, .timeLimit(.minutes(30)))
struct DisconnectTests {
    private static let disconnect = PlainEntry(command: .disconnect, topic: nil)

    @Test("disconnect() during a token fetch: no connection follows, and the token is kept")
    func duringTokenFetch() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.connect).expect(.disconnect)
        let source = NumberedTokens { if $0 == 1 { try await gate.pass() } }
        let provider = Provider<PlainEntry>(transport: mock).intercepted(
            TokenInterceptor(.password(), source: source, configuration: untimed())
        )
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { !source.calls.isEmpty }
        try await provider.request(Self.disconnect)
        // The gate is still closed.
        let error = await expectError(.notConnected) { try await connecting.value }
        #expect(error?.command == "connect" && error?.attempt == 1)
        gate.open()
        await untilQuiet()
        #expect(mock.requests.map(\.command.kind) == [.disconnect])
        try await provider.request(.connect)
        #expect(source.calls == ["token"])
        #expect(mock.requests.map(\.command.kind) == [.disconnect, .connect])
    }

    @Test("disconnect() during a refresh ends every request that waits, and none is tried again")
    func duringRefresh() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.send, .failure(expired)).expect(.disconnect)
        let source = NumberedTokens { if $0 > 1 { try await gate.pass() } }
        let began = LockedBox(0)
        let provider = Provider<PlainEntry>(transport: mock).intercepted(
            Counting(count: began),
            TokenInterceptor(source: source, configuration: untimed())
        )
        let tasks = (0..<100).map { _ in Task { try await provider.request(.send) } }
        try await waitUntil { source.calls.count >= 2 && began.value % 1_000 >= 100 }
        try await provider.request(Self.disconnect)
        for task in tasks {
            let result = await task.result
            #expect(throws: WaybillError.self) { try result.get() }
        }
        // Each request was sent at most once.
        #expect(mock.requests.count <= 101)
        #expect(source.calls == ["token", "refresh token 1"])
    }

    @Test("disconnect() during the delay before a retry ends the wait at once")
    func duringDelay() async throws {
        let clock = ManualClock()
        let mock = MockTransport().expect(.disconnect)
            .expect(.connect, .failure(WaybillError(.connectionRefused, "down")))
        let plain = Provider<PlainEntry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        )
        let provider = plain.intercepted(RetryPolicy(delay: .constant(.seconds(60))))
        let connecting = Task { try await provider.request(.connect) }
        await clock.waitForSleepers()
        // Copies of a provider count as one provider, whatever interceptors they have.
        try await plain.request(Self.disconnect)
        await expectError(.connectionRefused) { try await connecting.value }
        #expect(mock.requests.count == 2 && clock.sleeperCount == 0)
    }

    @Test("A request that fails because of a disconnect is not tried again")
    func notRetried() async throws {
        let mock = MockTransport().expect(.disconnect).expect(.send, .silence)
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(RetryPolicy(delay: .none))
        let entry = PlainEntry(command: .send(.idempotent))
        let sending = Task { try await provider.request(entry) }
        try await waitUntil { !mock.requests.isEmpty }
        try await provider.request(Self.disconnect)
        mock.dropConnection()
        let error = await expectError(.connectionLost) { try await sending.value }
        #expect(error?.attempt == 1 && mock.requests.count == 2)
    }

    @Test("What an interceptor of one's own holds up is not sent after a disconnect")
    func heldUp() async throws {
        struct Holding: Interceptor {
            let gate: Gate
            let hasBegun: LockedBox<Bool>

            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                guard request.command.kind == .connect else { return }
                hasBegun.change { $0 = true }
                try await gate.pass()
            }
        }
        let gate = Gate()
        let hasBegun = LockedBox(false)
        let mock = MockTransport().expect(.disconnect).expect(.connect)
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Holding(gate: gate, hasBegun: hasBegun))
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { hasBegun.value }
        try await provider.request(Self.disconnect)
        gate.open()
        await expectError(.notConnected) { try await connecting.value }
        #expect(mock.requests.count == 1)
    }

    @Test("Two disconnects at the same time do not stop each other")
    @MainActor func twice() async throws {
        let mock = MockTransport().expect(.disconnect)
        let provider = Provider<PlainEntry>(transport: mock).intercepted(Pausing())
        let tasks = (0..<2).map { _ in Task { try await provider.request(Self.disconnect) } }
        for task in tasks { _ = try await task.value }
        #expect(mock.requests.count == 2)
    }

    private struct Pausing: Interceptor {
        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            for _ in 0..<10 { await Task.yield() }
        }
    }

    @Test("Another provider on the same transport, and other interceptors, wait on")
    func others() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.disconnect).expect(.send)
        let source = NumberedTokens { _ in try await gate.pass() }
        let tokens = TokenInterceptor(source: source, configuration: untimed())
        let one = Provider<PlainEntry>(transport: mock).intercepted(tokens)
        let other = Provider<PlainEntry>(transport: mock).intercepted(tokens)
        let ended = Task { try await one.request(.send) }
        let kept = Task { try await other.request(.send) }
        try await waitUntil { !source.calls.isEmpty }
        try await one.request(Self.disconnect)
        _ = await ended.result
        gate.open()
        _ = try await kept.value
        #expect(mock.tokens.last?.hasPrefix("Bearer") == true)
    }
}
