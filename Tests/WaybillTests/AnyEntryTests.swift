import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Entries without a type of their own, and the retries and the timeouts of a single one.
@Suite(
    "Entries without a type, retries and timeouts of an entry",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct AnyEntryTests {
    @Test("An entry without a type says all that an entry can say")
    func anyEntry() async throws {
        let mock = MockTransport().expect(.connect).expect(.send).expect(.subscribe)
            .expect(.unsubscribe).expect(.disconnect)
        let provider = Provider<AnyEntry>(transport: mock)
        try await provider.request(.connect)
        let messages = try await provider.messages(.subscribe(topic: "lamps/+", qos: .atLeastOnce))
        try await provider.request(
            .send(
                topic: "lamps/hall",
                body: .text("on"),
                headers: ["k": "v"],
                qos: .atLeastOnce,
                .idempotent,
                .responseTopic("lamps/answers")
            )
        )
        mock.push("on", to: "lamps/hall")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "on")
        try await provider.request(.unsubscribe(topic: "lamps/+"))
        try await provider.request(.disconnect(.timeout(.seconds(1))))
        try await provider.request(.connect(.keepAlive(.seconds(9))))

        let requests = mock.requests
        #expect(
            requests.map(\.command.name) == [
                "connect", "subscribe", "send", "unsubscribe", "disconnect", "connect",
            ]
        )
        #expect(requests[1].topics == ["lamps/+"])
        #expect(requests[2].headers == ["k": "v"] && requests[2].body == "on")
        let send = requests[2].command
        #expect(send == .send(qos: .atLeastOnce, .responseTopic("lamps/answers"), .idempotent))
        #expect(send.qos == .atLeastOnce && send.isSet(.idempotent))
        #expect(send[.responseTopic] == "lamps/answers")
        #expect(requests[4].command[.timeout] == .seconds(1))
        #expect(requests[5].command[.keepAlive] == .seconds(9))
    }

    // MARK: Several enums

    private enum LampEntry: EntryType {
        case lamps
        case turnOn(room: String)

        var topic: String? {
            switch self {
            case .lamps: "lamps/+"
            case .turnOn(let room): "lamps/\(room)"
            }
        }

        var topics: [EntryTopic] {
            switch self {
            case .lamps: ["lamps/+", "dimmers/+"]
            case .turnOn: topic.map { [EntryTopic($0)] } ?? []
            }
        }

        var command: EntryCommand {
            switch self {
            case .lamps: .subscribe(qos: .atLeastOnce)
            case .turnOn: .send(qos: .atLeastOnce, .idempotent)
            }
        }

        var body: EntryBody {
            switch self {
            case .lamps: .none
            case .turnOn: .text("on")
            }
        }

        var headers: Headers { ["k": "v"] }
        var needsToken: Bool { false }
        var retry: RetryPolicy? { RetryPolicy(maximumAttempts: 2, delay: .none) }
    }

    private enum DoorEntry: EntryType {
        case open

        var topic: String? { "doors/front" }
        var command: EntryCommand { .send }
    }

    @Test("Several enums share one provider")
    func severalEnums() async throws {
        let mock = MockTransport().expect(.send, Self.lost, .success).expect(.subscribe)
        let provider = Provider<AnyEntry>(transport: mock)
        try await provider.request(AnyEntry(LampEntry.turnOn(room: "hall")))
        let messages = try await provider.messages(AnyEntry(LampEntry.lamps), as: String.self)
        let erased: any EntryType = DoorEntry.open
        try await provider.request(AnyEntry(erased))
        mock.push("bright", to: "dimmers/hall")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "bright")

        // The first attempt is repeated, as the policy of the entry says.
        let requests = mock.requests
        #expect(
            requests.map(\.topics) == [
                ["lamps/hall"], ["lamps/hall"], ["lamps/+", "dimmers/+"], ["doors/front"],
            ]
        )
        #expect(requests[1].command == .send(qos: .atLeastOnce, .idempotent))
        #expect(requests[1].headers == ["k": "v"] && requests[1].body == "on")
        #expect(requests[2].command == .subscribe(qos: .atLeastOnce))
        #expect(requests[3].command == .send && requests[3].headers == [:])
        #expect(!AnyEntry(LampEntry.lamps).needsToken && AnyEntry(DoorEntry.open).needsToken)
    }

    /// Counts how often its properties are read.
    private struct CountedEntry: EntryType {
        let reads = LockedBox([String: Int]())

        private func read<Value>(_ value: Value, _ name: String = #function) -> Value {
            reads.change { $0[name, default: 0] += 1 }
            return value
        }

        var topic: String? { read("t") }
        var topics: [EntryTopic] { read(["t"]) }
        var command: EntryCommand { read(.send) }
        var body: EntryBody { read(.text("x")) }
        var headers: Headers { read([:]) }
        var needsToken: Bool { read(true) }
        var retry: RetryPolicy? { read(RetryPolicy(maximumAttempts: 2, delay: .none)) }
    }

    @Test("An entry of any type is read once, when it is copied")
    func readOnce() async throws {
        let entry = CountedEntry()
        let copy = AnyEntry(entry)
        let provider = Provider<AnyEntry>(transport: MockTransport().expect(.send))
        try await provider.request(copy)
        try await provider.request(copy)
        let names = ["topic", "topics", "command", "body", "headers", "needsToken", "retry"]
        let once = Dictionary(uniqueKeysWithValues: names.map { ($0, 1) })
        #expect(entry.reads.value == once)
    }

    @Test("An entry without a type shows neither body nor password")
    func secrets() {
        let entry = AnyEntry(
            topic: "t?token=s3cret",
            command: .connect(.password("s3cret")),
            body: .text("s3cret"),
            headers: ["k": "s3cret"]
        )
        var text = "\(entry)" + String(reflecting: entry)
        dump(entry, to: &text)
        #expect(!text.contains("s3cret"), "\(text)")
    }

    // MARK: Retries

    private static let lost = MockTransport.Outcome.failure(WaybillError(.connectionLost, "lost"))

    private static func entry(_ policy: RetryPolicy?) -> AnyEntry {
        AnyEntry(topic: "t", command: .send(qos: .atLeastOnce), retry: policy)
    }

    @Test("An entry's own policy counts, with interceptors and without")
    func ownPolicy() async throws {
        let mock = MockTransport().expect(.send, Self.lost, Self.lost, .success)
        let plain = Provider<AnyEntry>(transport: mock)
        await expectError(.connectionLost) { try await plain.request(Self.entry(nil)) }
        try await plain.request(Self.entry(RetryPolicy(maximumAttempts: 2, delay: .none)))
        #expect(mock.requests.count == 3)
    }

    @Test("The interceptors do not go on where the entry's attempts are used up")
    func ownPolicyWins() async throws {
        let mock = MockTransport().expect(.send, Self.lost)
        let provider = Provider<AnyEntry>(transport: mock)
            .intercepted(RetryPolicy(maximumAttempts: 5, delay: .none))
        await expectError(.connectionLost) {
            try await provider.request(Self.entry(RetryPolicy(maximumAttempts: 2, delay: .none)))
        }
        #expect(mock.requests.count == 2)
        await expectError(.connectionLost) { try await provider.request(Self.entry(nil)) }
        #expect(mock.requests.count == 2 + 5)
        // An error outside the entry's policy is left to the interceptors.
        let narrow = RetryPolicy(maximumAttempts: 1, delay: .none, codes: [.timedOut])
        await expectError(.connectionLost) { try await provider.request(Self.entry(narrow)) }
        #expect(mock.requests.count == 2 + 5 + 5)
    }

    @Test("An entry's policy uses its budget")
    func ownBudget() async throws {
        let mock = MockTransport().expect(.send, Self.lost)
        let provider = Provider<AnyEntry>(transport: mock)
        let budget = RetryBudget(capacity: 2)
        let policy = RetryPolicy(maximumAttempts: 10, delay: .none, budget: budget)
        await expectError(.connectionLost) { try await provider.request(Self.entry(policy)) }
        #expect(mock.requests.count < 10)
    }

    // MARK: Timeouts

    @Test("A command states its own timeout; without one the transport's counts")
    func timeout() async throws {
        let mock = MockTransport().expect(.connect).expect(.send).expect(.subscribe)
            .expect(.disconnect)
        let provider = Provider<AnyEntry>(transport: mock)
        try await provider.request(.connect(.timeout(.seconds(1))))
        try await provider.request(.send(topic: "t"))
        try await provider.request(.send(topic: "t", .timeout(.seconds(2))))
        _ = try await provider.messages(.subscribe(topic: "t", .timeout(.seconds(3))))
        try await provider.request(.disconnect(.timeout(.seconds(4))))
        let timeouts = mock.requests.map { $0.command[.timeout] }
        #expect(timeouts == [.seconds(1), nil, .seconds(2), .seconds(3), .seconds(4)])
    }
}
