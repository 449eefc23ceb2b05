import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

@Suite("Events", .inSimulation, .timeLimit(.minutes(30))) struct EventTests {
    /// A transport with only the required members.
    private struct Plain: Transport {
        var states: ConnectionStates { ConnectionStateSource().states }
        func perform(_ request: Request) async throws -> Receipt { Receipt() }
        func subscribe(_ request: Request) async throws -> Messages<Message> {
            Messages.makeStream().messages
        }
        func shutdown() async {}
    }

    private static let end = TransportEvent(.tokenRequested)

    @Test("Every observer sees each event once, in order, and the end when the source is gone")
    func observers() async {
        var source: TransportEventSource? = TransportEventSource()
        let expected = (0..<1_000).map { "\($0)" }
        var iterators = (0..<5).compactMap { _ in source?.events.makeAsyncIterator() }
        for topic in expected { source?.report(.sent(topic: topic, byteCount: 1)) }
        source = nil
        #expect(iterators.count == 5)
        for index in iterators.indices {
            var topics: [String] = []
            while let event = await iterators[index].next() { topics.append(event.topic ?? "") }
            #expect(topics == expected)
        }
    }

    @Test("A later observer gets the later events")
    func late() async {
        let source = TransportEventSource()
        var early = source.events.makeAsyncIterator()
        source.report(.sent(topic: "1", byteCount: 1))
        var late = source.events.makeAsyncIterator()
        source.report(.sent(topic: "2", byteCount: 1))
        #expect(await early.next()?.topic == "1")
        #expect(await early.next()?.topic == "2")
        #expect(await late.next()?.topic == "2")
    }

    @Test("One that lags misses the oldest, and is told how many")
    func lag() async {
        let source = TransportEventSource()
        var iterator = source.events.makeAsyncIterator()
        let count = 10_000
        for number in 0..<count / 2 { source.report(.sent(topic: "\(number)", byteCount: 1)) }
        let rest = (count / 2..<count).map { "\($0)" }
        source.report(contentsOf: rest.map { .sent(topic: $0, byteCount: 1) })
        let first = await iterator.next()
        let missed = first?.count ?? 0
        #expect(first?.kind == .missed && missed >= count - 4_096)
        for number in missed..<count { #expect(await iterator.next()?.topic == "\(number)") }
    }

    @Test("No event is made without an observer")
    func unobserved() async {
        let source = TransportEventSource()
        let made = LockedBox(0)
        func event() -> TransportEvent {
            made.change { $0 += 1 }
            return TransportEvent(.sent)
        }
        source.report(event())
        source.report(contentsOf: [event(), event()])
        #expect(made.value == 0 && !source.isObserved && source.timestamp == nil)
        do {
            var iterator = source.events.makeAsyncIterator()
            source.report(event())
            #expect(made.value == 1 && source.isObserved && source.timestamp != nil)
            #expect(await iterator.next()?.kind == .sent)
        }
        source.report(event())
        #expect(made.value == 1 && !source.isObserved)
    }

    @Test("A cancelled observer ends")
    func cancelled() async {
        let source = TransportEventSource()
        let task = Task { [events = source.events] in
            for await _ in events {}
            return true
        }
        task.cancel()
        #expect(await task.value)
    }

    @Test("A transport without events has none, and its provider still tells of retries")
    func none() async throws {
        for await _ in Plain().events { Issue.record("there are none") }
        let provider = Provider<TestEntry>(transport: Plain())
        let other = provider.intercepted(RetryPolicy(maximumAttempts: 1))
        var iterator = other.events.makeAsyncIterator()
        let again = provider.intercepted(FailingOnce())
        try await again.request(.send(.none))
        let event = await iterator.next()
        #expect(event?.kind == .retrying && event?.attempt == 2)
    }

    /// Fails once and asks for a retry.
    private struct FailingOnce: Interceptor {
        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard context.attempt > 1 else { throw WaybillError(.rejected, "once") }
        }

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision { .retry(count: 1, delay: .zero) }
    }

    @Test("A mock's conversation, event by event")
    func conversation() async throws {
        let lost = WaybillError(.connectionLost, "the mock dropped the connection")
        var resumed = Receipt()
        resumed[.sessionPresence] = true
        let mock = MockTransport()
            .expect(.connect, .receipt(resumed))
            .expect(.subscribe, .receipt(Receipt(grantedQoS: .atLeastOnce)))
            .expect(.send, .success, .failure(WaybillError(.rejected, "no")))
        let provider = Provider<TestEntry>(transport: mock)
        var iterator = provider.events.makeAsyncIterator()
        try await provider.request(.connect)
        let messages = try await provider.messages(.subscribe())
        try await provider.request(.send(.text("12345")))
        await expectError(.rejected) { try await provider.request(.send(.text("6"))) }
        mock.push("123", to: "t")
        mock.dropConnection(lost)
        mock.report(Self.end)
        var events: [TransportEvent] = []
        while let event = await iterator.next(), event.kind != Self.end.kind {
            events.append(event)
        }
        #expect(
            events.map(\.kind) == [
                .connecting, .connected, .subscribed, .sent, .acknowledged, .sent, .sendFailed,
                .received, .disconnected, .subscriptionEnded,
            ]
        )
        #expect(events[1].isResumed == true && events[2].qos == .atLeastOnce)
        #expect(events[3].byteCount == 5 && events[7].byteCount == 3)
        #expect(events[6].error?.code == .rejected && events[8].error?.code == .connectionLost)
        for index in [1, 2, 4, 6] { #expect(events[index].duration ?? .seconds(-1) >= .zero) }
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.time <= $1.time })
        _ = messages
    }

    @Test(
        "What a subscription's policy drops is reported",
        arguments: [
            (BufferPolicy.Overflow.dropOldest, TransportEvent.DropReason.oldestWaiting),
            (.dropNewest, .noRoom), (.fail, .slowConsumer),
        ]
    )
    func drops(overflow: BufferPolicy.Overflow, reason: TransportEvent.DropReason) async throws {
        let policy = BufferPolicy(overflow, messageLimit: 1)
        let mock = MockTransport().expect(.subscribe)
        var iterator = mock.events.makeAsyncIterator()
        let messages = try await mock.subscribe(
            Request(topic: "t", command: .subscribe(.buffering(policy)))
        )
        for body in ["1", "22"] { mock.push(Payload(body), to: "t") }
        var dropped: TransportEvent?
        while dropped == nil, let event = await iterator.next() {
            if event.kind == .dropped { dropped = event }
        }
        #expect(dropped?.count == 1 && dropped?.topic == "t" && dropped?.dropReason == reason)
        #expect(dropped?.byteCount == (overflow == .dropOldest ? 1 : 2))
        _ = messages
    }

    @Test("Descriptions are one line with the values, and never a query")
    func descriptions() {
        let error = WaybillError(.rejected, "no", topic: "a?token=secret")
        let now = ContinuousClock.now
        var connected = TransportEvent.connected(to: "h:1", since: now, isResumed: true)
        connected.duration = .milliseconds(20)
        let cases: [(TransportEvent, String)] = [
            (connected, "connected to h:1 attempt 1 after 0.02 seconds resumed"),
            (.disconnected(from: "h:1", since: nil, cause: nil), "disconnected from h:1"),
            (.sent(topic: "a/b", byteCount: 3, qos: .atLeastOnce), "sent a/b (3 bytes) at QoS 1"),
            (
                .dropped(2, byteCount: 9, topic: "a", reason: .expired),
                "dropped a 2 (9 bytes) because: expired"
            ),
            (
                .subscriptionEnded(topic: "a?token=secret", cause: error),
                "subscriptionEnded a?… error rejected: no"
            ),
        ]
        for (event, text) in cases { #expect("\(event)" == text) }
    }
}
