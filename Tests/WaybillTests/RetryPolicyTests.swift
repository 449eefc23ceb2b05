import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

@Suite("Retry policies", .inSimulation, .timeLimit(.minutes(30))) struct RetryPolicyTests {
    private let lost = WaybillError(.connectionRefused, "down")

    private func refusal(
        _ status: Int,
        _ headers: Headers = [:],
        isFromProxy: Bool = false,
        isOfUpgrade: Bool = false
    ) -> WaybillError {
        WaybillError(
            .connectionRefused,
            "busy",
            underlying: HTTPRefusal(
                status: status,
                reason: "",
                headers: headers,
                body: Payload(),
                isFromProxy: isFromProxy,
                isOfUpgrade: isOfUpgrade
            )
        )
    }

    private func decision(
        _ policy: RetryPolicy,
        _ error: WaybillError,
        attempt: Int = 1,
        _ command: EntryCommand = .send
    ) async -> String {
        let context = InterceptorContext(attempt: attempt, command: command.name, topic: "t")
        let request = Request(topic: "t", command: command)
        switch await policy.retry(request, after: error, context: context) {
        case .noOpinion: return "none"
        case .retry(let count, let delay): return "\(count) after \(delay / .milliseconds(1)) ms"
        case .doNotRetry, .doNotRetryWithError: return "stop"
        }
    }

    @Test("So many attempts in all, for every command", arguments: [1, 2, 5])
    func attempts(count: Int) async throws {
        let mock = MockTransport().expect(.connect, .failure(lost)).expect(.send, .failure(lost))
            .expect(.subscribe, .failure(lost))
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(RetryPolicy(maximumAttempts: count, delay: .none))
        await expectError(.connectionRefused) { try await provider.request(.connect) }
        await expectError(.connectionRefused) { try await provider.request(.send) }
        let last = await expectError(.connectionRefused) { try await provider.messages(.subscribe) }
        #expect(mock.requests.count == 3 * count && last?.attempt == count)
    }

    @Test("Codes, commands and a condition of one's own decide what is tried again")
    func scope() async throws {
        var policy = RetryPolicy(delay: .none)
        for code in WaybillError.Code.retryable {
            #expect(await decision(policy, WaybillError(code, "")) == "2 after 0.0 ms")
        }
        for code: WaybillError.Code in [.unauthorized, .rejected, .unsupported, .shutDown, .tls] {
            #expect(await decision(policy, WaybillError(code, "")) == "none")
        }
        policy.codes = [.rejected]
        #expect(await decision(policy, lost) == "none")
        #expect(await decision(policy, WaybillError(.rejected, "")) == "2 after 0.0 ms")
        let sends = RetryPolicy(delay: .none, commands: [.send])
        #expect(await decision(sends, lost) == "2 after 0.0 ms")
        #expect(await decision(sends, lost, .subscribe) == "none")
        let own = RetryPolicy(delay: .none) { request, error in
            request.topic == "t" && error.peerReason == "later"
        }
        #expect(await decision(own, lost) == "none")
        let later = WaybillError(.connectionRefused, "", peerReason: "later")
        #expect(await decision(own, later) == "2 after 0.0 ms")
    }

    @Test("Delays: constant, doubled up to a cap, with full jitter from injected dice")
    func delays() {
        func all(_ delay: RetryDelay) -> [Duration] {
            (1...8).map { delay.duration(beforeRetry: $0) }
        }
        let seconds = [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) }
        #expect(all(.constant(.seconds(3))) == Array(repeating: .seconds(3), count: 8))
        #expect(all(.none) == Array(repeating: .zero, count: 8))
        #expect(all(.exponential(isJittered: false)) == seconds)
        #expect(all(.exponential { .max }) == seconds)
        #expect(all(.exponential { 0 }) == Array(repeating: .zero, count: 8))
        #expect(all(.exponential { 1 << 63 }) == seconds.map { $0 / 2 })
        for delay in all(.exponential(from: .milliseconds(10), upTo: .seconds(1))) {
            #expect(delay >= .zero && delay <= .seconds(1))
        }
    }

    @Test("Delays never overflow, whatever is asked for")
    func extremeDelays() {
        let far = RetryDelay.exponential(
            from: .seconds(1),
            upTo: .seconds(Int64.max),
            isJittered: false
        )
        for retry in [0, -5, 1, 62, 63, 64, 1_000, Int.max] {
            #expect(far.duration(beforeRetry: retry) >= .seconds(1))
        }
        let nothing = RetryDelay.exponential(from: .zero, isJittered: false)
        #expect(nothing.duration(beforeRetry: .max) == .zero)
        let backwards = RetryDelay.exponential(from: .seconds(-1), upTo: .seconds(-2))
        #expect(backwards.duration(beforeRetry: 9) == .zero)
        #expect(RetryDelay.constant(.seconds(-1)).duration(beforeRetry: 1) == .zero)
        #expect(RetryDelay { .seconds($0) }.duration(beforeRetry: 7) == .seconds(7))
    }

    @Test("Delays pass by the provider's clock")
    func clock() async throws {
        let clock = ManualClock()
        let mock = MockTransport().expect(.send, .failure(lost), .failure(lost), .success)
        let provider = Provider<PlainEntry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        ).intercepted(RetryPolicy(delay: .exponential(isJittered: false)))
        let task = Task { try await provider.request(.send) }
        for (delay, count) in [(1, 1), (2, 2)] {
            await clock.waitForSleepers()
            #expect(mock.requests.count == count)
            clock.advance(by: .seconds(delay))
        }
        _ = try await task.value
        #expect(mock.requests.count == 3)
    }

    @Test(
        "The server's Retry-After is waited for: seconds, or a date by the server's own clock",
        arguments: [
            ("7", nil, 7), ("0", nil, 0), ("007", nil, 7),
            ("99999999999999999999", nil, 365 * 86_400),
            ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0),
            ("Wed, 01 Mar 2028 00:00:00 GMT", "Mon, 28 Feb 2028 00:00:00 GMT", 2 * 86_400),
            ("Fri, 01 Jan 2027 00:00:00 GMT", "Thu, 31 Dec 2026 23:59:59 GMT", 1),
            ("Sun, 06 Nov 1994 08:50:37 GMT", nil, nil), ("soon", nil, nil), ("", nil, nil),
            ("-1", nil, nil), ("1.5", nil, nil), ("١", nil, nil),
            ("Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", nil),
            ("Sun, 32 Nov 1994 08:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", nil),
            ("Sunday, 06-Nov-94 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 1),
        ] as [(String, String?, Int?)]
    )
    func retryAfter(value: String, date: String?, seconds: Int?) {
        var headers: Headers = ["rEtry-AFTER": value]
        if let date { headers.append(name: "Date", value: date) }
        #expect(refusal(503, headers).serverDelay == seconds.map { .seconds($0) })
    }

    @Test("The server's delay is the least, up to a limit beyond which the request fails")
    func pacing() async throws {
        let policy = RetryPolicy(delay: .constant(.seconds(5)))
        #expect(await decision(policy, refusal(503, ["Retry-After": "60"])) == "2 after 60000.0 ms")
        #expect(await decision(policy, refusal(503, ["Retry-After": "1"])) == "2 after 5000.0 ms")
        #expect(await decision(policy, refusal(503, ["Retry-After": "61"])) == "none")
        #expect(lost.serverDelay == nil)
    }

    @Test(
        "A server that is busy is left alone for a while before the delay, whatever the kind of error"
    )
    func busy() async throws {
        var policy = RetryPolicy(delay: .constant(.seconds(1)))
        var quota = WaybillError(.rejected, "quota exceeded")
        #expect(await decision(policy, quota) == "none" && !quota.isRetryable)
        quota.isServerBusy = true
        #expect(await decision(policy, quota) == "2 after 6000.0 ms" && quota.isRetryable)
        #expect(await decision(policy, refusal(429)) == "2 after 6000.0 ms")
        // A server that names a time replaces the default.
        #expect(await decision(policy, refusal(429, ["Retry-After": "3"])) == "2 after 3000.0 ms")
        policy.busyDelay = .zero
        #expect(await decision(policy, quota) == "2 after 1000.0 ms")
    }

    @Test("A budget stops retries when more than half of it is gone, and successes pay it back")
    func budget() async throws {
        let budget = RetryBudget(capacity: 10, credit: 0.5)
        let policy = RetryPolicy(maximumAttempts: .max, delay: .none, budget: budget)
        let mock = MockTransport().expect(.send, .failure(lost))
        let providers = (0..<2).map { _ in
            Provider<PlainEntry>(transport: mock).intercepted(policy)
        }
        // Five failures leave five of ten, which is not more than half.
        await expectError(.connectionRefused) { try await providers[0].request(.send) }
        #expect(mock.requests.count == 5 && !budget.allowsRetries)
        // The providers share the budget, so the other one's request is not repeated either.
        await expectError(.connectionRefused) { try await providers[1].request(.send) }
        #expect(mock.requests.count == 6)
        mock.expect(.send)
        for _ in 0..<2 { try await providers[0].request(.send) }
        #expect(!budget.allowsRetries)
        try await providers[1].request(.send)
        #expect(budget.allowsRetries)
        mock.expect(.send, .failure(lost))
        await expectError(.connectionRefused) { try await providers[1].request(.send) }
        // The budget is at 5.5. One failure reduces it to 4.5.
        #expect(mock.requests.count == 10)
    }

    @Test("1,000 requests that fail at once are tried again four times in all, not 4,000 times")
    func storm() async throws {
        let clock = ManualClock()
        let budget = RetryBudget()
        let mock = MockTransport(clock: clock)
            .expect(.send, .after(.seconds(1), .failure(lost)))
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(RetryPolicy(maximumAttempts: 5, delay: .none, budget: budget))
        let tasks = (0..<1_000).map { _ in Task { try await provider.request(.send) } }
        await clock.waitForSleepers(1_000)
        mock.expect(.send, .failure(lost))
        clock.advance(by: .seconds(1))
        for task in tasks {
            await expectError(.connectionRefused) { try await task.value }
        }
        #expect(mock.requests.count == 1_004)
    }

    @Test("Successes fill a budget to its capacity and no further")
    func budgetCapacity() async throws {
        let budget = RetryBudget(capacity: 10, credit: 1)
        let policy = RetryPolicy(maximumAttempts: .max, delay: .none, budget: budget)
        let mock = MockTransport().expect(.send)
        let provider = Provider<PlainEntry>(transport: mock).intercepted(policy)
        for _ in 0..<100 { try await provider.request(.send) }
        mock.expect(.send, .failure(lost))
        await expectError(.connectionRefused) { try await provider.request(.send) }
        #expect(mock.requests.count == 105)
    }

    @Test("Budgets have sane bounds: at least one token, at most a thousand, credit in thousandths")
    func budgetBounds() async throws {
        for (capacity, failures) in [(1, 0), (-3, 0), (2, 0), (3, 1), (10, 4), (5_000, 499)] {
            let policy = RetryPolicy(
                maximumAttempts: .max,
                delay: .none,
                budget: RetryBudget(capacity: capacity, credit: .nan)
            )
            let mock = MockTransport().expect(.send, .failure(lost))
            await expectError(.connectionRefused) {
                try await Provider<PlainEntry>(transport: mock).intercepted(policy).request(.send)
            }
            #expect(mock.requests.count == failures + 1, "\(capacity)")
        }
    }

    @Test("Requests that never fail leave a budget full; other errors take nothing")
    func budgetOfOthers() async throws {
        let budget = RetryBudget(capacity: 2)
        let mock = MockTransport().expect(.send, .failure(WaybillError(.rejected, "no")))
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(RetryPolicy(delay: .none, budget: budget))
        for _ in 0..<10 { await expectError(.rejected) { try await provider.request(.send) } }
        #expect(budget.allowsRetries)
    }

    @Test(
        "A send that the server may have carried out is not repeated, unless that does no harm",
        arguments: [
            (500, false, false, 1), (502, false, false, 1), (504, false, false, 1),
            (503, false, false, 3), (429, false, false, 3), (408, false, false, 3),
            (502, true, false, 3), (502, false, true, 3),
        ]
    )
    func idempotency(status: Int, fromProxy: Bool, ofUpgrade: Bool, attempts: Int) async throws {
        let error = refusal(status, isFromProxy: fromProxy, isOfUpgrade: ofUpgrade)
        var policy = RetryPolicy(delay: .none)
        policy.busyDelay = .zero
        func count(_ command: EntryCommand) async -> Int {
            let mock = MockTransport().expect(.send, .failure(error))
            await expectError(.connectionRefused) {
                try await Provider<PlainEntry>(transport: mock)
                    .intercepted(policy)
                    .request(PlainEntry(command: command))
            }
            return mock.requests.count
        }
        #expect(await count(.send) == attempts)
        #expect(await count(.send(.idempotent)) == 3)
        #expect(await count(.send(qos: .atLeastOnce)) == 3)
    }

    @Test("Several policies stand one behind the other, one for each kind of error")
    func several() async throws {
        let busy = WaybillError(.rejected, "quota")
        let mock = MockTransport().expect(.send, .failure(busy), .failure(lost), .success)
        let provider = Provider<PlainEntry>(transport: mock).intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .none, codes: [.rejected]),
            RetryPolicy(maximumAttempts: 3, delay: .none)
        )
        try await provider.request(.send)
        #expect(mock.requests.count == 3)
    }

    @Test("The last error says that the message may arrive if an earlier attempt may have sent it")
    func earlierAttempt() async throws {
        let silent = WaybillError(.timedOut, "no answer")
        let mock = MockTransport().expect(.send, .failure(silent), .failure(lost))
        let provider = Provider<PlainEntry>(transport: mock).intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .none)
        )
        let entry = PlainEntry(command: .send(qos: .atLeastOnce))
        let error = await #expect(throws: WaybillError.self) { try await provider.request(entry) }
        #expect(error?.code == .connectionRefused && error?.mayHaveArrived == true)
        #expect(!lost.mayHaveArrived && mock.requests.count == 2)
    }
}

extension OptionName {
    fileprivate static let kept = OptionKey<Bool>("kept")
}

extension SendOption {
    fileprivate static var kept: Self { Self(.kept, true) }
}

/// A transport whose server keeps no messages, or whose protocol has no such thing.
private struct WithoutRetain: Transport {
    let mock = MockTransport().expect(.send)
    let isLimitOfServer: Bool

    var states: ConnectionStates { mock.states }
    func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await mock.subscribe(request)
    }
    func shutdown() async { await mock.shutdown() }

    func perform(_ request: Request) async throws -> Receipt {
        let receipt = try await mock.perform(request)
        guard request.command.isSet(.kept) else { return receipt }
        var error = WaybillError(.unsupported, "no retained messages")
        error.option = .kept
        error.isLimitOfServer = isLimitOfServer
        throw error
    }
}

@Suite("Options that are left out", .inSimulation, .timeLimit(.minutes(30)))
struct OmittedOptionTests {
    @Test(
        "What one server lacks is asked of the next one; what the protocol lacks, never again",
        arguments: [true, false]
    )
    func learned(_ isLimitOfServer: Bool) async throws {
        let transport = WithoutRetain(isLimitOfServer: isLimitOfServer)
        let provider = Provider<AnyEntry>(transport: transport).whenUnsupported(.ignore([.kept]))
        for _ in 0..<2 { try await provider.request(.send(topic: "t", .kept)) }
        let asked = transport.mock.requests.map { $0.command.isSet(.kept) }
        #expect(asked == (isLimitOfServer ? [true, false, true, false] : [true, false, false]))
        await transport.shutdown()
    }
}
