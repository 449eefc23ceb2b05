import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.4, sentence by sentence, over whole providers.
@Suite("Interceptors and retries (design 5.4)") struct DesignRetryTests {
    /// Records its turns, and marks requests and messages.
    private struct Marking: Interceptor {
        let name: String
        let log: Log
        var decision = RetryDecision.noOpinion

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            await Task.yield()
            request.headers["marks"] = (request.headers["marks"] ?? "") + name
            log.append("out \(name)\(context.attempt)")
        }

        func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
            var marked = message
            marked.body = Payload((message.text ?? "") + name)
            return marked
        }

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision {
            log.append("retry? \(name)\(context.attempt) \(request.headers["marks"] ?? "unmarked")")
            return decision
        }
    }

    private let log = Log()

    /// A kind that no transport of the package has.
    private static let own = EntryCommand.Kind("own")

    private static let every: [(EntryCommand.Kind, EntryCommand)] = [
        (.connect, .connect), (.send, .send), (.subscribe, .subscribe),
        (.unsubscribe, .unsubscribe), (own, EntryCommand(own)), (.disconnect, .disconnect),
    ]

    private func perform(_ provider: Provider<PlainEntry>, _ entry: PlainEntry) async throws {
        if entry.command.kind == .subscribe {
            _ = try await provider.messages(entry)
        } else {
            try await provider.request(entry)
        }
    }

    @Test("In the order added, each sees the one before; receive runs in reverse order")
    func order() async throws {
        let mock = MockTransport().expect(.send, .reply("r"))
        let reply = try await Provider<PlainEntry>(transport: mock)
            .intercepted(Marking(name: "a", log: log), Marking(name: "b", log: log))
            .intercepted(Marking(name: "c", log: log))
            .request(.send, as: String.self)
        #expect(mock.requests.first?.headers["marks"] == "abc")
        #expect(reply == "rcba")
    }

    @Test("The first answer other than noOpinion wins, and no later interceptor is asked")
    func firstAnswer() async throws {
        let mock = MockTransport().expect(.send, .failure(WaybillError(.rejected, "")), .success)
        try await Provider<PlainEntry>(transport: mock).intercepted(
            Marking(name: "a", log: log),
            Marking(name: "b", log: log, decision: .retry(count: 1, delay: .zero)),
            Marking(name: "c", log: log, decision: .doNotRetry)
        ).request(.send)
        #expect(
            log.all.filter { $0.hasPrefix("retry") } == ["a", "b"].map { "retry? \($0)1 unmarked" }
        )
    }

    @Test("A retry starts from the entry's original request and runs the whole chain again")
    func fromTheOriginal() async throws {
        let failure = MockTransport.Outcome.failure(WaybillError(.timedOut, ""))
        let mock = MockTransport().expect(.subscribe, failure, failure, .success)
        let provider = Provider<PlainEntry>(transport: mock).intercepted(
            Marking(name: "a", log: log),
            Marking(name: "b", log: log, decision: .retry(count: 9, delay: .zero))
        )
        _ = try await provider.messages(.subscribe)
        #expect(mock.requests.map { $0.headers["marks"] } == ["ab", "ab", "ab"])
        #expect(
            log.all.filter { $0.hasPrefix("out") }
                == (1...3).flatMap { ["out a\($0)", "out b\($0)"] }
        )
    }

    @Test("The retry count is enforced for every command", arguments: every.indices)
    func everyCommand(index: Int) async throws {
        let (kind, command) = Self.every[index]
        let mock = MockTransport().expect(kind, .failure(WaybillError(.rejected, "")))
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Marking(name: "a", log: log, decision: .retry(count: 4, delay: .zero)))
        let error = await expectError(.rejected) {
            try await perform(provider, PlainEntry(command: command))
        }
        #expect(mock.requests.count == 5 && error?.attempt == 5)
        #expect(error?.command == command.name)
    }

    @Test("The retry count counts per request")
    func perRequest() async throws {
        let mock = MockTransport().expect(.send, .failure(WaybillError(.rejected, "")))
        let provider = Provider<PlainEntry>(transport: mock)
            .intercepted(Marking(name: "a", log: log, decision: .retry(count: 2, delay: .zero)))
        let tasks = (0..<10).map { _ in Task { try await provider.request(.send) } }
        for task in tasks {
            #expect(await expectError(.rejected) { try await task.value }?.attempt == 3)
        }
        #expect(mock.requests.count == 30)
    }

    @Test(
        "Retry applies to refusals, timeouts and lost links alike",
        arguments: [WaybillError.Code.rejected, .unauthorized, .timedOut, .connectionLost]
    )
    func everyFailure(code: WaybillError.Code) async throws {
        for (kind, command) in Self.every where kind != .send {
            let mock = MockTransport().expect(kind, .failure(WaybillError(code, "")), .success)
            let provider = Provider<PlainEntry>(transport: mock)
                .intercepted(Marking(name: "a", log: log, decision: .retry(count: 1, delay: .zero)))
            try await perform(provider, PlainEntry(command: command))
            #expect(mock.requests.count == 2)
        }
    }

    @Test(
        "A send that may have arrived is re-sent only if its entry or the protocol makes that harmless",
        arguments: [WaybillError.Code.timedOut, .connectionLost, .protocolViolation, .rejected]
    )
    func gate(code: WaybillError.Code) async throws {
        let commands: [(EntryCommand, Bool)] = [
            (.send, false), (.send(.idempotent), true), (.send(qos: .atLeastOnce), true),
            (.send(qos: .exactlyOnce), true),
        ]
        for (command, isHarmless) in commands {
            let mock = MockTransport().expect(.send, .failure(WaybillError(code, "")))
            let provider = Provider<PlainEntry>(transport: mock)
                .intercepted(Marking(name: "a", log: log, decision: .retry(count: 1, delay: .zero)))
            await expectError(code) {
                try await provider.request(PlainEntry(command: command))
            }
            // The server has not carried out a refused request, so repeating it is harmless.
            #expect(mock.requests.count == (isHarmless || code == .rejected ? 2 : 1))
        }
    }
}
