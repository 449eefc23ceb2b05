import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

private enum Entry: EntryType {
    case listen
    case say(String)

    var topic: String? { "room" }

    var command: EntryCommand {
        switch self {
        case .listen: .subscribe
        case .say: .send(qos: .atLeastOnce)
        }
    }

    var body: EntryBody {
        switch self {
        case .say(let text): .text(text)
        case .listen: .none
        }
    }
}

/// Issues tokens that are valid for one second, and checks them as a server does.
private final class Tokens: Sendable {
    private struct State: Sendable {
        var issued: [String: ManualClock.Instant] = [:]
        var refreshes = 0
        var refused: Set<String> = []
    }

    private let clock: ManualClock
    private let state = Locked(State())

    init(_ clock: ManualClock) {
        self.clock = clock
    }

    var refreshes: Int { state.withLock { $0.refreshes } }
    /// The number of refused tokens. Several requests may have carried the same one.
    var refusals: Int { state.withLock { $0.refused.count } }

    func issue(replacing refused: String?) -> String {
        let now = clock.now
        return state.withLock { state in
            if refused != nil { state.refreshes += 1 }
            let token = "token-\(state.issued.count)"
            state.issued[token] = now.advanced(by: .seconds(1))
            return token
        }
    }

    func answer(_ request: Request) -> MockTransport.Outcome {
        var token = request.headers["Authorization"].map { String($0.dropFirst("Bearer ".count)) }
        if request.command.kind == .connect { token = request.command[.password] }
        let now = clock.now
        return state.withLock { state in
            if let token, let end = state.issued[token], now < end { return .success }
            state.refused.insert(token ?? "-")
            return .failure(WaybillError(.unauthorized, "expired"))
        }
    }
}

@Suite("Connection of a mock with a protocol", .inSimulation, .timeLimit(.minutes(30)))
struct MockConnectionTests {
    @Test(
        "What is pushed while the connection is interrupted arrives when it is back",
        arguments: MockTransport.WireProtocol.allCases
    )
    func held(_ wireProtocol: MockTransport.WireProtocol) async throws {
        let mock = MockTransport(like: wireProtocol)
        mock.expect(.subscribe)
        let provider = Provider<Entry>(transport: mock)
        let messages = try await provider.messages(.listen, as: [Int].self)
        mock.interruptConnection()
        #expect(try mock.push(json: [1], topic: "room") == 0)
        #expect(try mock.push(json: [2], topic: "room") == 0)
        var iterator = messages.makeAsyncIterator()
        mock.restoreConnection()
        #expect(try await iterator.next() == [1])
        #expect(try await iterator.next() == [2])
        #expect(try mock.push(json: [3], topic: "room") == 1)
        #expect(try await iterator.next() == [3])
        // What a connection that is lost for good has held is lost, too.
        mock.interruptConnection()
        try mock.push(json: [4], topic: "room")
        mock.dropConnection()
        mock.restoreConnection()
        await #expect(throws: WaybillError.self) { try await iterator.next() }
    }

    @Test("A reply in JSON")
    func jsonReply() async throws {
        let mock = MockTransport()
        mock.expect(.send, try .reply(json: ["a": 1]))
        let reply: [String: Int] = try await Provider<Entry>(transport: mock).request(.say("x"))
        #expect(reply == ["a": 1])
    }

    @Test(
        "A token that expires each second, ten minutes with lost connections: configured once, no call fails",
        arguments: MockTransport.WireProtocol.allCases
    )
    func expiringToken(_ wireProtocol: MockTransport.WireProtocol) async throws {
        let clock = ManualClock()
        let tokens = Tokens(clock)
        let mock = MockTransport(like: wireProtocol, clock: clock)
        if wireProtocol == .events {
            mock.expect(.send, .answer { tokens.answer($0) })
            mock.expect(.subscribe, .answer { tokens.answer($0) })
        } else {
            mock.expect(.connect, .answer { tokens.answer($0) }).expect(.send).expect(.subscribe)
        }
        let interceptor = TokenInterceptor(
            wireProtocol == .events ? .bearer : .password(userName: "ada"),
            configuration: TokenInterceptor.Configuration(refreshLimit: 1_000, clock: clock)
        ) { tokens.issue(replacing: $0) }
        let provider = Provider<Entry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        ).intercepted(interceptor)
        let messages = try await provider.messages(.listen)
        for second in 0..<600 {
            clock.advance(by: .seconds(1))
            let isLost = second % 7 == 3
            if isLost { mock.interruptConnection() }
            async let sent: Void = {
                _ = try await provider.request(.say("\(second)"))
            }()
            if isLost { mock.restoreConnection() }
            try await sent
            if isLost { try await waitUntil { mock.states.isConnected } }
        }
        #expect(tokens.refreshes == tokens.refusals)
        #expect(tokens.refusals > 80)
        #expect(mock.push("still there", to: "room") == 1)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "still there")
        #expect(mock.requests.count { $0.command.kind == .connect } == 0)
        guard wireProtocol != .events else { return }
        let passwords = mock.connects.compactMap { $0.command[.password] }
        // Each password was accepted once and refused at the next connection, except for the last one.
        #expect(passwords.count == mock.connects.count)
        #expect(passwords.count == Set(passwords).count * 2 - 1)
    }

    @Test("A CONNECT on demand and one after a lost connection go through the interceptors")
    func connects() async throws {
        let mock = MockTransport(like: .stomp).expect(.send)
        let counter = CountingInterceptor()
        let tokens = TokenInterceptor(.password()) { _ in "t" }
        let provider = Provider<Entry>(transport: mock)
            .intercepted(counter, tokens)
        try await provider.request(.say("1"))
        mock.interruptConnection()
        mock.restoreConnection()
        try await waitUntil { mock.states.isConnected }
        #expect(mock.connects.map(\.command.name) == ["connect", "connect"])
        for connect in mock.connects {
            #expect(connect.command.kind == .connect)
            #expect(connect.command[.password] == "t")
        }
        #expect(counter.count == 3)
    }

    @Test(
        "A refused reconnection ends the streams; an error that may pass leaves the connection away"
    )
    func failedRestoration() async throws {
        let mock = MockTransport(like: .mqtt5).expect(.subscribe).expect(.send)
            .expect(
                .connect,
                .success,
                .failure(WaybillError(.connectionRefused, "busy")),
                .failure(WaybillError(.rejected, "no"))
            )
        let provider = Provider<Entry>(transport: mock)
        let messages = try await provider.messages(.listen)
        mock.interruptConnection()
        mock.restoreConnection()
        try await waitUntil { mock.connects.count == 2 && mock.states.isWaiting }
        #expect(mock.subscriptionCount == 1)
        mock.restoreConnection()
        await #expect {
            for try await _ in messages {}
        } throws: { error in
            (error as? WaybillError)?.code == .rejected
        }
    }

    @Test("An answer that does not come is timedOut, by the entry's time or by the transport's")
    func timeouts() async throws {
        let clock = ManualClock()
        let mock = MockTransport(like: .mqtt5, clock: clock)
            .expect(.send, .silence, .after(.seconds(40), .success), .after(.seconds(5), .success))
            .expect(.subscribe, .silence).expect(.disconnect, .silence)
        let short = EntryCommand.send(qos: .atLeastOnce, .timeout(.seconds(2)))
        let requests: [(Request, Int)] = [
            (Request(topic: "a", command: short), 2),
            (Request(topic: "a", command: .send(qos: .atLeastOnce)), 30),
            (Request(topic: "a", command: short), 2),
        ]
        for (request, seconds) in requests {
            let call = Task { try await mock.perform(request) }
            await clock.waitForSleepers()
            clock.advance(by: .seconds(seconds))
            let error = await #expect(throws: WaybillError.self) { try await call.value }
            #expect(error?.code == .timedOut)
            #expect(error?.topic == "a")
        }
        let subscribing = Task {
            _ = try await mock.subscribe(Request(topic: "a", command: .subscribe))
        }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(30))
        let error = await #expect(throws: WaybillError.self) { try await subscribing.value }
        #expect(error?.code == .timedOut)
        let closing = Task {
            try await mock.perform(Request(topic: nil, command: .disconnect))
        }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(5))
        _ = try await closing.value
    }

    @Test(
        "Messages of a manual subscription have ids, and only one that waits can be acknowledged",
        arguments: [MockTransport.WireProtocol.mqtt5, .stomp]
    )
    func acknowledgements(_ wireProtocol: MockTransport.WireProtocol) async throws {
        let mock = MockTransport(like: wireProtocol).expect(.subscribe).expect(.ack).expect(.nack)
        let command = EntryCommand.subscribe(qos: .atLeastOnce, .manualAcknowledgement)
        let messages = try await mock.subscribe(Request(topic: "a", command: command))
        mock.push("1", to: "a")
        mock.push("2", to: "a")
        #expect(mock.unacknowledgedCount == 2)
        var iterator = messages.makeAsyncIterator()
        let first = try #require(try await iterator.next()?.id)
        let second = try #require(try await iterator.next()?.id)
        #expect(first != second)
        _ = try await mock.perform(Request(topic: nil, command: .ack(first)))
        #expect(mock.unacknowledgedCount == 1)
        await #expect {
            try await mock.perform(Request(topic: nil, command: .ack(first)))
        } throws: { error in
            (error as? WaybillError)?.code == .invalidEntry
        }
        _ = try await mock.perform(Request(topic: nil, command: .nack(second)))
        #expect(mock.unacknowledgedCount == 0)
    }

    @Test(
        "In STOMP's ack mode client one acknowledgement covers those before; an abort brings them back"
    )
    func cumulative() async throws {
        let mock = MockTransport(like: .stomp).expect(.subscribe).expect(.ack).expect(.begin)
            .expect(.abort).expect(.commit)
        let messages = try await mock.subscribe(
            Request(topic: "a", command: .subscribe(.ackMode(.client), .manualAcknowledgement))
        )
        for text in ["1", "2", "3"] { mock.push(Payload(text), to: "a") }
        var iterator = messages.makeAsyncIterator()
        var ids: [Message.ID] = []
        for _ in 1...3 { ids.append(try #require(try await iterator.next()?.id)) }
        func perform(_ command: EntryCommand) async throws {
            _ = try await mock.perform(Request(topic: nil, command: command))
        }
        try await perform(.begin(transaction: "t"))
        try await perform(.ack(ids[1], .transaction("t")))
        #expect(mock.unacknowledgedCount == 1)
        try await perform(.abort(transaction: "t"))
        #expect(mock.unacknowledgedCount == 3)
        try await perform(.begin(transaction: "t"))
        try await perform(.ack(ids[2], .transaction("t")))
        try await perform(.commit(transaction: "t"))
        #expect(mock.unacknowledgedCount == 0)
        // Not in a transaction that has ended.
        await #expect(throws: WaybillError.self) {
            try await mock.perform(Request(topic: "a", command: .send(.transaction("t"))))
        }
    }
}

private final class CountingInterceptor: Interceptor {
    private let counted = Locked(0)

    var count: Int { counted.withLock { $0 } }

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        counted.withLock { $0 += 1 }
    }
}

extension ConnectionStates {
    fileprivate var isConnected: Bool {
        if case .connected = current { true } else { false }
    }

    fileprivate var isWaiting: Bool {
        if case .waiting = current { true } else { false }
    }
}
