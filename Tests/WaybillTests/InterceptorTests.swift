import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Adds a header after a pause, so that the order of headers is not due to timing.
private struct Adding: Interceptor {
    let name: String
    let log: Log

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        await Task.yield()
        request.headers.append(name: name, value: "\(request.headers.count)")
        log.append("\(name) \(context.attempt)")
    }

    func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
        var adapted = message
        adapted.body = Payload((message.text ?? "") + name)
        return adapted
    }
}

private struct Retrying: Interceptor {
    let decision: RetryDecision

    func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision { decision }
}

private struct Failing: Interceptor {
    struct Failure: Error {}
    var error: any Error = Failure()

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        throw error
    }
}

private struct Confirming: ReceiptInterceptor {
    let name: String
    let log: Log

    func confirm(
        _ receipt: Receipt,
        of request: Request,
        after duration: Duration,
        context: InterceptorContext
    ) {
        log.append("\(name) \(context.attempt)")
    }
}

final class Log: Sendable {
    private let entries = LockedBox<[String]>([])

    var all: [String] { entries.value }

    func append(_ entry: String) { entries.change { $0.append(entry) } }
}

@Suite("Interceptors", .inSimulation, .timeLimit(.minutes(30))) struct InterceptorTests {
    let mock = MockTransport()
    let log = Log()

    @Test(
        "A fault of the entry is not retried, whatever an interceptor or a policy decides",
        arguments: [WaybillError.Code.unsupported, .invalidEntry, .encodingFailed]
    )
    func faultsOfEntries(code: WaybillError.Code) async throws {
        mock.expect(.send, .failure(WaybillError(code, "never")), .success)
        let policy = RetryPolicy(codes: [code])
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(Retrying(decision: .retry(count: 3, delay: .zero)), policy)
        let error = await expectError(code) { try await provider.request(.send(.text("x"))) }
        #expect(error?.attempt == 1)
        #expect(mock.requests.count == 1)
    }

    @Test("Each sees the last one's result; the original stays as it was")
    func order() async throws {
        mock.expect(.send)
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(Adding(name: "a", log: log), Adding(name: "b", log: log))
            .intercepted(Adding(name: "c", log: log))
        try await provider.request(.send(.none))
        try await provider.request(.send(.none))
        let expected: Headers = ["a": "0", "b": "1", "c": "2"]
        #expect(mock.requests.map(\.headers) == [expected, expected])
        #expect(log.all == ["a 1", "b 1", "c 1", "a 1", "b 1", "c 1"])
    }

    @Test("Messages and replies pass in reverse order")
    func receiving() async throws {
        mock.expect(.subscribe).expect(.send, .reply("r"))
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(Adding(name: "a", log: log), Adding(name: "b", log: log))
        var messages: Messages<String>.AsyncIterator = try await provider.messages(.subscribe())
            .makeAsyncIterator()
        mock.push("m", to: "t")
        #expect(try await messages.next() == "mba")
        #expect(try await provider.request(.send(.none), as: String.self) == "rba")
    }

    @Test("Receipts pass in reverse order")
    func confirming() async throws {
        mock.expect(.send)
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(Confirming(name: "a", log: log), Confirming(name: "b", log: log))
            .intercepted(Confirming(name: "c", log: log))
        try await provider.request(.send(.none))
        #expect(log.all == ["c 1", "b 1", "a 1"])
    }

    @Test("A failing interceptor is told apart, and nothing is sent")
    func failing() async throws {
        mock.expect(.send)
        let provider = Provider<TestEntry>(transport: mock)
        let foreign = await expectError(.interceptorFailed) {
            try await provider.intercepted(Failing()).request(.send(.none))
        }
        #expect(foreign?.underlying is Failing.Failure)
        let own = WaybillError(.unauthorized, "no token")
        await expectError(.unauthorized) {
            try await provider.intercepted(Failing(error: own)).request(.send(.none))
        }
        // The interceptor has waited for another task. That task's cancellation does not cancel this call.
        let cancelled = await expectError(.interceptorFailed) {
            try await provider.intercepted(Failing(error: CancellationError()))
                .request(.send(.none))
        }
        #expect(cancelled?.underlying is CancellationError)
        #expect(mock.requests.isEmpty)
    }
}

@Suite("Retries", .inSimulation, .timeLimit(.minutes(30))) struct RetryTests {
    private let failure = WaybillError(.rejected, "no")

    @Test("The count is enforced, for connect, subscribe and send alike", arguments: [0, 1, 3])
    func count(retries: Int) async throws {
        let mock = MockTransport().expect(.connect, .failure(failure))
            .expect(.subscribe, .failure(failure)).expect(.send, .failure(failure))
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(Retrying(decision: .retry(count: retries, delay: .zero)))
        let error = await expectError(.rejected) { try await provider.request(.connect) }
        #expect(error?.attempt == retries + 1)
        await expectError(.rejected) { try await provider.messages(.subscribe()) }
        await expectError(.rejected) { try await provider.request(.send(.none)) }
        #expect(mock.requests.count == 3 * (retries + 1))
    }

    @Test("A retry starts from the original and runs the whole chain again")
    func chain() async throws {
        let log = Log()
        let mock = MockTransport().expect(.send, .failure(failure), .failure(failure), .success)
        let provider = Provider<TestEntry>(transport: mock).intercepted(
            Adding(name: "a", log: log),
            Retrying(decision: .retry(count: 5, delay: .zero))
        )
        try await provider.request(.send(.none))
        #expect(mock.requests.map(\.headers) == [["a": "0"], ["a": "0"], ["a": "0"]])
        #expect(log.all == ["a 1", "a 2", "a 3"])
    }

    @Test("The first opinion counts")
    func firstOpinion() async throws {
        struct Own: Error {}
        let mock = MockTransport().expect(.send, .failure(failure))
        func provider(_ decisions: RetryDecision...) -> Provider<TestEntry> {
            decisions.reduce(Provider<TestEntry>(transport: mock)) {
                $0.intercepted(Retrying(decision: $1))
            }
        }
        let retry = RetryDecision.retry(count: 1, delay: .zero)
        await expectError(.rejected) {
            try await provider(.noOpinion, .doNotRetry, retry).request(.send(.none))
        }
        #expect(mock.requests.count == 1)
        let other = await expectError(.interceptorFailed) {
            try await provider(.doNotRetryWithError(Own()), retry).request(.send(.none))
        }
        #expect(other?.underlying is Own)
        let own = WaybillError(.unauthorized, "stop")
        await expectError(.unauthorized) {
            try await provider(.noOpinion, .doNotRetryWithError(own)).request(.send(.none))
        }
        #expect(mock.requests.count == 3)
        await expectError(.rejected) {
            try await provider(.noOpinion, retry).request(.send(.none))
        }
        #expect(mock.requests.count == 5)
    }

    @Test("What may have arrived is sent again only if that does no harm")
    func idempotency() async throws {
        let lost = WaybillError(.timedOut, "no answer")
        let commands: [(EntryCommand, Int)] = [
            (.send, 1), (.send(qos: .atLeastOnce), 3), (.send(qos: .exactlyOnce), 3),
            (.send(.idempotent), 3),
        ]
        for (command, attempts) in commands {
            let mock = MockTransport().expect(.send, .failure(lost))
            let provider = Provider<TestEntry>(transport: mock)
                .intercepted(Retrying(decision: .retry(count: 2, delay: .zero)))
            await expectError(.timedOut) {
                try await provider.request(.send(.none, command: command))
            }
            #expect(mock.requests.count == attempts)
        }
        // The protocol can tell a message from its repetition, the service that replies to it cannot.
        let mock = MockTransport().expect(.send, .failure(lost))
        let provider = Provider<TestEntry>(transport: mock)
            .intercepted(Retrying(decision: .retry(count: 2, delay: .zero)))
        let command = EntryCommand.send(qos: .atLeastOnce)
        await expectError(.timedOut) {
            try await provider.request(.send(.none, command: command), as: String.self)
        }
        #expect(mock.requests.count == 1)
    }

    @Test("The delay is measured by the provider's clock, and cancelling ends it")
    func delay() async throws {
        let clock = ManualClock()
        let mock = MockTransport().expect(.send, .failure(failure), .success)
        let provider = Provider<TestEntry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        ).intercepted(Retrying(decision: .retry(count: 5, delay: .seconds(60))))
        let task = Task { try await provider.request(.send(.none)) }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(59))
        #expect(mock.requests.count == 1)
        clock.advance(by: .seconds(1))
        _ = try await task.value
        #expect(mock.requests.count == 2)

        let never = MockTransport().expect(.send, .failure(failure))
        let waiting = Provider<TestEntry>(
            transport: never,
            configuration: ProviderConfiguration(clock: clock)
        ).intercepted(Retrying(decision: .retry(count: 5, delay: .seconds(60))))
        let cancelled = Task { try await waiting.request(.send(.none)) }
        await clock.waitForSleepers()
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(clock.sleeperCount == 0)
        #expect(never.requests.count == 1)
    }
}
