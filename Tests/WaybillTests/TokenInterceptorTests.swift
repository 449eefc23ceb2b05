import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

/// Design 5.5, sentence by sentence.
@Suite("Tokens (design 5.5)", .inSimulation, .timeLimit(.minutes(30))) struct TokenInterceptorTests
{
    let clock = ManualClock()

    private func provider(
        _ mock: MockTransport,
        _ source: NumberedTokens,
        _ placement: TokenPlacement = .bearer
    ) -> Provider<PlainEntry> {
        Provider<PlainEntry>(transport: mock)
            .intercepted(TokenInterceptor(placement, source: source, configuration: untimed(clock)))
    }

    /// Has a number of requests refused at the same moment, and returns their outcomes.
    private func refuseAtOnce(
        _ count: Int,
        _ source: NumberedTokens,
        _ mock: MockTransport
    ) async -> [Result<Receipt, any Error>] {
        mock.expect(.send, .after(.seconds(1), .failure(expired)))
        let provider = provider(mock, source)
        let tasks = (0..<count).map { _ in Task { try await provider.request(.send) } }
        await clock.waitForSleepers(count)
        // From now on the server accepts every request.
        mock.expect(.send)
        clock.advance(by: .seconds(1))
        var results: [Result<Receipt, any Error>] = []
        for task in tasks { results.append(await task.result) }
        return results
    }

    @Test("One refresh in flight however many requests wait: 1,000 are refused at once")
    func oneRefresh() async throws {
        let mock = MockTransport(clock: clock)
        let source = NumberedTokens()
        let results = await refuseAtOnce(1_000, source, mock)
        for result in results { _ = try result.get() }
        #expect(source.calls == ["token", "refresh token 1"])
        #expect(mock.tokens.prefix(1_000).allSatisfy { $0 == "Bearer token 1" })
        #expect(mock.tokens.dropFirst(1_000).allSatisfy { $0 == "Bearer token 2" })
        #expect(mock.requests.count == 2_000)
    }

    @Test("A failed refresh fails all waiting requests, once: 1,000 failures and no second refresh")
    func failedRefresh() async throws {
        let mock = MockTransport(clock: clock)
        let source = NumberedTokens { if $0 > 1 { throw NumberedTokens.Failure() } }
        let results = await refuseAtOnce(1_000, source, mock)
        for result in results {
            let error = await expectError(.unauthorized) { try result.get() }
            #expect(error?.underlying is NumberedTokens.Failure)
            #expect(error?.topic == "t" && error?.command == "send" && error?.attempt == 1)
            #expect(error?.peerReason == "expired")
        }
        #expect(source.calls == ["token", "refresh token 1"])
        #expect(mock.requests.count == 1_000)
    }

    @Test("However many need the first token, it is asked for once")
    func firstToken() async throws {
        let gate = Gate()
        let mock = MockTransport().expect(.send)
        let source = NumberedTokens { _ in try await gate.pass() }
        let provider = provider(mock, source)
        let tasks = (0..<1_000).map { _ in Task { try await provider.request(.send) } }
        try await waitUntil { !source.calls.isEmpty }
        gate.open()
        for task in tasks { _ = try await task.value }
        #expect(source.calls == ["token"])
        #expect(mock.tokens == Array(repeating: "Bearer token 1", count: 1_000))
    }

    @Test("A late refusal of an old token does not refresh twice")
    func lateRefusal() async throws {
        let mock = MockTransport(clock: clock).expect(
            .send,
            .after(.seconds(1), .failure(expired)),
            .after(.seconds(2), .failure(expired)),
            .success
        )
        let source = NumberedTokens()
        let provider = provider(mock, source)
        let first = Task { try await provider.request(.send) }
        await clock.waitForSleepers(1)
        let second = Task { try await provider.request(.send) }
        await clock.waitForSleepers(2)
        clock.advance(by: .seconds(1))
        _ = try await first.value
        clock.advance(by: .seconds(1))
        _ = try await second.value
        #expect(source.calls == ["token", "refresh token 1"])
        let tokens = [1, 1, 2, 2].map { "Bearer token \($0)" }
        #expect(mock.tokens == tokens)
    }

    @Test(
        "A late refusal after the refresh has failed shares that failure; a later request may try"
    )
    func lateRefusalOfTheIrreplaceable() async throws {
        let mock = MockTransport(clock: clock).expect(
            .send,
            .after(.seconds(1), .failure(expired)),
            .after(.seconds(2), .failure(expired)),
            .failure(expired),
            .success
        )
        let source = NumberedTokens { if $0 == 2 { throw NumberedTokens.Failure() } }
        let provider = provider(mock, source)
        let first = Task { try await provider.request(.send) }
        await clock.waitForSleepers(1)
        let second = Task { try await provider.request(.send) }
        await clock.waitForSleepers(2)
        clock.advance(by: .seconds(2))
        for task in [first, second] {
            let error = await expectError(.unauthorized) { try await task.value }
            #expect(error?.underlying is NumberedTokens.Failure)
        }
        #expect(source.calls == ["token", "refresh token 1"])
        try await provider.request(.send)
        #expect(source.calls == ["token", "refresh token 1", "refresh token 1"])
        #expect(mock.tokens.last == "Bearer token 3")
    }

    @Test("Refused again with the new token, a request stops with the server's own words")
    func refusedAgain() async throws {
        let mock = MockTransport().expect(.send, .failure(expired))
        let source = NumberedTokens()
        let error = await expectError(.unauthorized) {
            try await provider(mock, source).request(.send)
        }
        #expect(error?.attempt == 2 && error?.peerReason == "expired")
        #expect(mock.tokens == ["Bearer token 1", "Bearer token 2"])
        #expect(source.calls.count == 2)
    }

    @Test("The breaker: 5 refreshes in 30 s, whatever a source keeps giving")
    func breaker() async throws {
        let mock = MockTransport().expect(.send, .failure(expired))
        let source = NumberedTokens()
        let provider = provider(mock, source)
        for _ in 0..<5 {
            await expectError(.unauthorized) { try await provider.request(.send) }
        }
        #expect(source.calls.count == 6 && mock.requests.count == 10)
        for _ in 0..<20 {
            let error = await expectError(.unauthorized) { try await provider.request(.send) }
            #expect(error?.underlying as? TokenFailure == .tooManyRefreshes)
        }
        #expect(source.calls.count == 6 && mock.requests.count == 30)
        clock.advance(by: .milliseconds(29_999))
        await expectError(.unauthorized) { try await provider.request(.send) }
        #expect(source.calls.count == 6)
        clock.advance(by: .milliseconds(1))
        await expectError(.unauthorized) { try await provider.request(.send) }
        #expect(source.calls.count == 7)
    }

    @Test("The breaker stops 1,000 requests at once whose tokens are always refused")
    func breakerOfMany() async throws {
        let mock = MockTransport().expect(.send, .failure(expired))
        let source = NumberedTokens()
        let provider = provider(mock, source)
        let tasks = (0..<1_000).map { _ in Task { try await provider.request(.send) } }
        for task in tasks {
            await expectError(.unauthorized) { try await task.value }
        }
        #expect(source.calls.count <= 6)
        #expect(mock.requests.count <= 3_000)
    }

    @Test("The breaker has its own limit and window, and counts first calls that fail")
    func breakerSettings() async throws {
        let mock = MockTransport().expect(.send)
        let source = NumberedTokens { if $0 < 4 { throw NumberedTokens.Failure() } }
        var configuration = untimed(clock)
        configuration.refreshLimit = 2
        configuration.refreshWindow = .seconds(100)
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(TokenInterceptor(source: source, configuration: configuration))
        for failure in ["source", "source", "breaker"] {
            let error = await expectError(.unauthorized) { try await provider.request(.send) }
            #expect((error?.underlying is NumberedTokens.Failure) == (failure == "source"))
        }
        #expect(source.calls == ["token", "token"] && mock.requests.isEmpty)
        clock.advance(by: .seconds(100))
        await expectError(.unauthorized) { try await provider.request(.send) }
        try await provider.request(.send)
        #expect(source.calls.count == 4)
    }

    @Test("CONNECT credentials, frame headers and HTTP headers: each placement on its commands")
    func placements() async throws {
        let source = NumberedTokens()
        let mock = MockTransport().expect(.connect).expect(.send).expect(.subscribe)
            .expect(.disconnect)
        func send(_ placement: TokenPlacement, _ entries: PlainEntry...) async throws -> [Request] {
            let provider = provider(mock, source, placement)
            let before = mock.requests.count
            for entry in entries {
                if entry.command.kind == .subscribe {
                    _ = try await provider.messages(entry)
                } else {
                    try await provider.request(entry)
                }
            }
            return Array(mock.requests.dropFirst(before))
        }
        func options(_ request: Request) -> [String?] {
            guard request.command.kind == .connect else { return [] }
            return [request.command[.userName], request.command[.password]]
        }
        let http = try await send(.bearer, .connect, .send, .subscribe)
        #expect(http.map(\.headers) == [[:], bearer(1), bearer(1)])
        let onConnect = TokenPlacement.header("X-Token", on: [.connect]) { "<\($0)>" }
        let stomp = try await send(onConnect, .connect, .send)
        #expect(stomp.map(\.headers) == [["X-Token": "<token 2>"], [:]])
        let mqtt = try await send(.password(userName: "ada"), .connect, .send)
        #expect(options(mqtt[0]) == ["ada", "token 3"] && mqtt[1].headers.isEmpty)
        let named = PlainEntry(command: .connect(.userName("bob")), topic: nil)
        let kept = try await send(.password(), named)
        #expect(options(kept[0]) == ["bob", "token 4"])
        let user = try await send(.userName(password: ""), .connect)
        #expect(options(user[0]) == ["token 5", ""])
        let own = try await send(
            .connectOptions { $1[.userName] = $0 },
            PlainEntry(command: .disconnect, topic: nil)
        )
        #expect(own[0].headers.isEmpty && source.calls.count == 5)
    }

    private func bearer(_ number: Int) -> Headers { ["Authorization": "Bearer token \(number)"] }

    @Test("A refused CONNECT and a refused subscription are tried once more, too")
    func everyCommand() async throws {
        let mock = MockTransport().expect(.connect, .failure(expired), .success)
            .expect(.subscribe, .failure(expired), .success)
        try await provider(mock, NumberedTokens(), .password()).request(.connect)
        #expect(mock.tokens == ["token 1", "token 2"])
        _ = try await provider(mock, NumberedTokens()).messages(.subscribe)
        #expect(mock.tokens.suffix(2) == ["Bearer token 1", "Bearer token 2"])
    }
}
