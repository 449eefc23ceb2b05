import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

@Suite("Tokens: which errors count, and what is never shown") struct TokenRefusalTests {
    @Test("Other errors do not refresh; which do can be said")
    func refusals() async throws {
        let outdated = WaybillError(.rejected, "no", peerReason: "498")
        let mock = MockTransport().expect(.send, .failure(outdated))
        let source = NumberedTokens()
        let plain = TokenInterceptor(source: source)
        await expectError(.rejected) {
            try await Provider<PlainEntry>(transport: mock).intercepted(plain).request(.send)
        }
        #expect(source.calls == ["token"] && mock.requests.count == 1)

        let telling = TokenInterceptor(
            source: source,
            configuration: .init { $0.peerReason == "498" }
        )
        let error = await expectError(.unauthorized) {
            try await Provider<PlainEntry>(transport: mock).intercepted(telling).request(.send)
        }
        #expect((error?.underlying as? WaybillError)?.code == .rejected)
        #expect(error?.peerReason == "498" && error?.attempt == 2 && error?.topic == "t")
        #expect(source.calls == ["token", "token", "refresh token 2"])
    }

    /// Replaces the token while a request carries the old one.
    private struct Overtaking: Interceptor {
        let tokens: TokenInterceptor

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard context.attempt == 1 else { return }
            _ = try await tokens.token(replacing: "token 1")
        }
    }

    @Test("Refused late, and the token that was there already has expired, too: it is replaced")
    func lateTwice() async throws {
        let mock = MockTransport().expect(.send, .failure(expired), .failure(expired), .success)
        let source = NumberedTokens()
        let tokens = TokenInterceptor(source: source, configuration: untimed())
        try await Provider<PlainEntry>(transport: mock)
            .intercepted(tokens, Overtaking(tokens: tokens)).request(.send)
        #expect(mock.tokens == ["Bearer token 1", "Bearer token 2", "Bearer token 3"])
        #expect(source.calls == ["token", "refresh token 1", "refresh token 2"])
    }

    @Test("What a proxy does not accept is not the token")
    func proxy() async throws {
        var error = expired
        error.underlying = HTTPRefusal(
            status: 407,
            reason: "",
            headers: [:],
            body: Payload(),
            isFromProxy: true
        )
        let mock = MockTransport().expect(.send, .failure(error))
        let source = NumberedTokens()
        await expectError(.unauthorized) {
            try await Provider<PlainEntry>(transport: mock)
                .intercepted(TokenInterceptor(source: source)).request(.send)
        }
        #expect(source.calls == ["token"])
    }

    @Test("A failing source is no reason to ask another interceptor's")
    func twoTokens() async throws {
        let mock = MockTransport().expect(.send)
        let good = NumberedTokens()
        let bad = NumberedTokens { _ in throw NumberedTokens.Failure() }
        let header = TokenPlacement.header("Device", on: [.send]) { $0 }
        let error = await expectError(.unauthorized) {
            try await Provider<PlainEntry>(transport: mock)
                .intercepted(TokenInterceptor(source: good), TokenInterceptor(header, source: bad))
                .request(.send)
        }
        #expect(error?.underlying is NumberedTokens.Failure)
        #expect(good.calls == ["token"] && bad.calls == ["token"] && mock.requests.isEmpty)
    }

    @Test("A source that throws CancellationError has failed: no task was cancelled")
    func sourceCancelsItself() async throws {
        let source = NumberedTokens { _ in throw CancellationError() }
        let error = await expectError(.unauthorized) {
            try await Provider<PlainEntry>(transport: MockTransport())
                .intercepted(TokenInterceptor(source: source)).request(.send)
        }
        #expect(error?.underlying is CancellationError)
    }

    @Test("Retries by other interceptors do not use up the token's, nor it theirs")
    func besideRetries() async throws {
        let lost = WaybillError(.connectionRefused, "down")
        let mock = MockTransport()
            .expect(.send, .failure(lost), .failure(lost), .failure(expired), .success)
        let provider = Provider<PlainEntry>(transport: mock).intercepted(
            RetryPolicy(maximumAttempts: 3, delay: .none),
            TokenInterceptor(source: NumberedTokens())
        )
        try await provider.request(.send)
        #expect(mock.tokens == [1, 1, 1, 2].map { "Bearer token \($0)" })
    }

    @Test(
        "The interceptor behind sees the token, at a retry the new one alone; the entry stays as it was"
    )
    func seenBehind() async throws {
        struct Seeing: Interceptor {
            let log: Log

            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                await Task.yield()
                log.append(request.headers.all("Authorization").joined(separator: "+"))
            }

            func retry(
                _ request: Request,
                after error: WaybillError,
                context: InterceptorContext
            ) async -> RetryDecision {
                log.append("original \(request.headers)")
                return .noOpinion
            }
        }
        let log = Log()
        let mock = MockTransport().expect(.send, .failure(expired))
        let tokens = TokenInterceptor(source: NumberedTokens())
        await expectError(.unauthorized) {
            try await Provider<PlainEntry>(transport: mock)
                .intercepted(Seeing(log: log), tokens, Seeing(log: log)).request(.send)
        }
        let turn: (Int) -> [String] = { ["", "Bearer token \($0)", "original []"] }
        #expect(log.all == turn(1) + turn(2))
    }

    @Test("Two providers with one interceptor share the token and its refresh")
    func shared() async throws {
        let mock = MockTransport().expect(.send, .failure(expired), .success)
        let source = NumberedTokens()
        let interceptor = TokenInterceptor(source: source)
        for _ in 0..<2 {
            try await Provider<PlainEntry>(transport: mock).intercepted(interceptor).request(.send)
        }
        #expect(mock.tokens == [1, 2, 2].map { "Bearer token \($0)" })
    }

    @Test("The token shows in no log, no description and no error")
    func secrets() async throws {
        let log = Log()
        let mock = MockTransport().expect(.send, .failure(expired)).expect(.connect)
        let interceptor = TokenInterceptor(source: NumberedTokens())
        let connecting = TokenInterceptor(.password(), source: NumberedTokens())
        let provider = Provider<PlainEntry>(transport: mock)
            .logged(ClosureWireLogger { log.append("\($0)") }).intercepted(interceptor, connecting)
        let error = await expectError(.unauthorized) { try await provider.request(.send) }
        try await provider.request(.connect)
        var shown = log.all + ["\(interceptor)", String(reflecting: interceptor)]
        shown += [String(describing: error), "\(mock.requests)"]
        shown += mock.requests.map { "\($0.command)" }
        var dumped = ""
        dump(interceptor, to: &dumped)
        shown.append(dumped)
        #expect(shown.allSatisfy { !$0.contains("token 1") && !$0.contains("token 2") }, "\(shown)")
        #expect(mock.tokens.contains("token 1"))
    }
}
