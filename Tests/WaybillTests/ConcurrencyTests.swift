import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

private struct MainActorWitness: Interceptor {
    let log: Log

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        MainActor.assertIsolated()
        log.append("main")
    }
}

@Suite("Concurrency", .inSimulation, .timeLimit(.minutes(30))) struct ConcurrencyTests {
    @Test("A thousand requests from an actor do not hop off it once")
    func noHops() async throws {
        let mock = MockTransport().expect(.send)
        for provider in [
            Provider<TestEntry>(transport: mock),
            Provider<TestEntry>(transport: mock).intercepted(Nothing()),
        ] {
            let hops = try await CountingActor().hops { _ in
                for _ in 0..<1_000 { try await provider.request(.send(.text("x"))) }
            }
            #expect(hops == 0)
        }
        #expect(mock.requests.count == 2_000)
    }

    private struct Nothing: Interceptor {}

    @Test(
        "A loop over messages that are there lets others run at each 256th; waiting for one costs one hop"
    )
    func loopsStay() async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver((0..<1_000).map { Message(topic: "\($0)") })
        let hops = try await CountingActor().hops { _ in
            var count = 0
            for try await _ in messages {
                count += 1
                if count == 1_000 { break }
            }
        }
        // Every yield counts twice: once for the task that yields, and once for its resumption.
        #expect(hops == 6)
        let waiting = try await CountingActor().hops { _ in
            var iterator = messages.makeAsyncIterator()
            Task { @concurrent in feed.deliver([Message(topic: "late")]) }
            _ = try await iterator.next()
        }
        // It is none if the message arrives before the wait.
        #expect(waiting <= 1)
    }

    @Test(
        "A loop over messages that never have to be waited for lets the actor's other tasks run",
        arguments: [1, 1_000]
    )
    @MainActor func turns(batch: Int) async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        var iterator = messages.makeAsyncIterator()
        let count = try await callsBeforeNeighbour(atMost: 1_000) { number in
            if number % batch == 0 {
                feed.deliver((number..<number + batch).map { Message(topic: "\($0)") })
            }
            let message = try await iterator.next()
            #expect(message?.topic == "\(number)")
        }
        // After 256 messages the actor's other task runs, before the next message is taken.
        #expect(count == 257)
    }

    @Test("A call from the main actor stays there")
    @MainActor func mainActor() async throws {
        let log = Log()
        let mock = MockTransport().expect(.send).expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock).intercepted(MainActorWitness(log: log))
        try await provider.request(.send(.none))
        _ = try await provider.messages(.subscribe())
        #expect(log.all == ["main", "main"])
    }

    @Test("Cancelling a request frees it")
    func cancellation() async throws {
        let mock = MockTransport().expect(.send, .silence)
        let provider = Provider<TestEntry>(transport: mock)
        let tasks = (0..<100).map { _ in Task { try await provider.request(.send(.none)) } }
        try await waitUntil { mock.requests.count >= 100 }
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await mock.shutdown()
        await expectError(.shutDown) { try await provider.request(.send(.none)) }
    }

    @Test("States replay the present and report each change once, to every observer")
    func states() async throws {
        let source = ConnectionStateSource()
        source.report(.connecting(attempt: 1))
        var early = source.states.makeAsyncIterator()
        source.report(.connected)
        var late = source.states.makeAsyncIterator()
        source.report(.disconnected(cause: nil))
        var seen: [String] = []
        for _ in 0..<3 { seen.append("\(await early.next()!)") }
        #expect(seen == ["connecting (attempt 1)", "connected", "disconnected"])
        #expect("\(await late.next()!)" == "connected")
        #expect("\(await late.next()!)" == "disconnected")
        let waiting = Task {
            var iterator = source.states.makeAsyncIterator()
            _ = await iterator.next()
            return await iterator.next() == nil
        }
        waiting.cancel()
        #expect(await waiting.value)
    }

    @Test("A logger sees requests, receipts, messages and failures, without secrets")
    func logging() async throws {
        let log = Log()
        let mock = MockTransport()
            .expect(.send, .success, .failure(WaybillError(.rejected, "no"))).expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock)
            .logged(ClosureWireLogger { log.append("\($0)") })
        let body = EntryBody.text("secret")
        try await provider.request(.send(body, headers: ["token": "secret"]))
        await expectError(.rejected) { try await provider.request(.send(body)) }
        let messages = try await provider.messages(.subscribe())
        mock.push("secret", to: "t")
        var iterator = messages.makeAsyncIterator()
        _ = try await iterator.next()
        #expect(
            log.all == [
                "→ send t (6 bytes) headers [token]", "← confirmed send", "→ send t (6 bytes)",
                "← rejected: no, command send, topic t", "→ subscribe t",
                "← message of 6 bytes from t",
            ]
        )
    }
}
