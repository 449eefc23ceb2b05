import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("Mock transport", .inSimulation, .timeLimit(.minutes(30))) struct MockTransportTests {
    private func send(_ topic: String = "t") -> Request { Request(topic: topic, command: .send) }

    @Test("Outcomes come one after another, the last one stays; later rules win")
    func sequence() async throws {
        let mock = MockTransport()
        mock.expect(.send, .failure(WaybillError(.timedOut, "1")), .reply("2"))
        await #expect(throws: WaybillError.self) { try await mock.perform(send()) }
        #expect(try await mock.perform(send()).reply?.text == "2")
        #expect(try await mock.perform(send()).reply?.text == "2")
        mock.expect(.send, topic: "other", .reply("3"))
        #expect(try await mock.perform(send("other")).reply?.text == "3")
        #expect(try await mock.perform(send()).reply?.text == "2")
        #expect(mock.requests.count == 5)
    }

    @Test(
        "It is strict: what was not foreseen fails and is listed; what no transport sends is refused"
    )
    func strict() async throws {
        let mock = MockTransport().expect(.send, topic: "a")
        await #expect(throws: WaybillError.self) { try await mock.perform(send("b")) }
        #expect(mock.unexpectedRequests.map(\.topic) == ["b"])
        await #expect { try await mock.perform(send("a/#")) } throws: { error in
            (error as? WaybillError)?.code == .invalidEntry
        }
    }

    @Test("STOMP's own commands can be scripted; a destination means what it says")
    func stomp() async throws {
        let mock = MockTransport(wildcards: .none)
            .expect(.begin).expect(.send).expect(.subscribe).expect(.commit).expect(.abort)
            .expect(.ack, .success, .failure(WaybillError(.rejected, "no")))
            .expect(.nack)
        let messages = try await mock.subscribe(Request(topic: "/topic/a.#", command: .subscribe))
        #expect(mock.push(Message(topic: "/topic/a.#", id: .named("m"))) == 1)
        #expect(mock.push("x", to: "/topic/a.b") == 0)
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        #expect(id == .named("m"))
        for command in [
            EntryCommand.begin(transaction: "x"), .ack(id, .transaction("x")),
            .nack(id, .transaction("x")), .commit(transaction: "x"), .abort(transaction: "y"),
        ] {
            _ = try await mock.perform(Request(topic: nil, command: command))
        }
        await #expect(throws: WaybillError.self) {
            try await mock.perform(Request(topic: nil, command: .ack(id)))
        }
        _ = try await mock.perform(send("/exchange/e/a+b"))
        #expect(
            mock.requests.map(\.command.name) == [
                "subscribe", "begin", "ack", "nack", "commit", "abort", "ack", "send",
            ]
        )
        #expect(mock.unexpectedRequests.isEmpty)
    }

    @Test("Delays are the clock's; silence ends when the connection drops")
    func delays() async throws {
        let clock = ManualClock()
        let mock = MockTransport(clock: clock)
            .expect(.send, .after(.seconds(5), .reply("late")), .silence)
        let late = Task { try await mock.perform(send()).reply?.text }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(5))
        #expect(try await late.value == "late")
        let isDone = Locked(false)
        let silent = Task {
            defer { isDone.withLock { $0 = true } }
            return try await mock.perform(send())
        }
        // The request may begin its wait only after the first drop. A later drop ends it in any case.
        try await waitUntil(moving: {
            mock.dropConnection(WaybillError(.connectionLost, "now"))
        }) { isDone.withLock { $0 } }
        let error = await #expect(throws: WaybillError.self) { try await silent.value }
        #expect(error?.code == .connectionLost)
    }

    @Test("Messages reach the subscriptions that match; unsubscribing ends them")
    func pushing() async throws {
        let mock = MockTransport().expect(.subscribe).expect(.unsubscribe).expect(.connect)
        let exact = try await mock.subscribe(Request(topic: "a/b", command: .subscribe))
        let wild = try await mock.subscribe(Request(topic: "a/+", command: .subscribe))
        #expect(mock.push("1", to: "a/b") == 2)
        #expect(mock.push("2", to: "a/c") == 1)
        _ = try await mock.perform(Request(topic: "a/b", command: .unsubscribe))
        #expect(mock.push("3", to: "a/b") == 1)
        var iterator = exact.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "1")
        #expect(try await iterator.next() == nil)
        var all = wild.makeAsyncIterator()
        for text in ["1", "2", "3"] { #expect(try await all.next()?.text == text) }
        _ = try await mock.perform(Request(topic: nil, command: .connect))
        guard case .connected = mock.states.current else {
            Issue.record("\(mock.states.current)")
            return
        }
    }
}

@Suite("Manual clock", .inSimulation, .timeLimit(.minutes(30))) struct ManualClockTests {
    @Test("A wait for sleepers that never come can be cancelled, before it and during it")
    func noSleepers() async throws {
        let clock = ManualClock()
        for isLate in [false, true] {
            let waiting = Task { await clock.waitForSleepers() }
            if isLate { await untilQuiet() }
            waiting.cancel()
            await waiting.value
        }
    }

    @Test("Sleepers wake in the order of their times, and not before")
    func order() async throws {
        let clock = ManualClock()
        let order = AsyncStream<Int>.makeStream()
        let tasks = [3, 1, 2].map { seconds in
            Task {
                try await clock.sleep(for: .seconds(seconds))
                order.continuation.yield(seconds)
            }
        }
        await clock.waitForSleepers(3)
        var woken = order.stream.makeAsyncIterator()
        for expected in 1...3 {
            clock.advance(by: .seconds(1))
            #expect(await woken.next() == expected)
            #expect(clock.sleeperCount == 3 - expected)
        }
        for task in tasks { try await task.value }
        #expect(clock.now.offset == .seconds(3))
        try await clock.sleep(until: clock.now)
    }

    @Test("A cancelled sleeper is freed")
    func cancelled() async throws {
        let clock = ManualClock()
        let task = Task { try await clock.sleep(for: .seconds(1)) }
        await clock.waitForSleepers()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test("Moved on by several at once, it never runs backwards")
    func neverBack() async {
        let clock = ManualClock()
        await withTaskGroup(of: Void.self) { group in
            for step in [Duration.zero, .nanoseconds(1), .seconds(1)] {
                group.addTask { @concurrent in
                    for _ in 0..<10_000 {
                        let before = clock.now
                        clock.advance(by: step)
                        let after = clock.now
                        guard after < before.advanced(by: step) else { continue }
                        Issue.record("\(step) after \(before.offset) it is \(after.offset)")
                        return
                    }
                }
            }
        }
        #expect(clock.now.offset >= .seconds(10_000))
    }
}
