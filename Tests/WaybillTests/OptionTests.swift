import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

extension OptionName {
    /// An option of an app's own.
    fileprivate static let priority = OptionKey<Int>("priority")
    /// It is spelled like the one before, and is another one.
    fileprivate static let otherPriority = OptionKey<Int>("priority")
    /// Several texts.
    fileprivate static let words = OptionKey<Set<String>>("words")
    /// One that must not be left out.
    fileprivate static let essential = OptionKey<Bool>("essential", canBeOmitted: false)
}

extension SendOption {
    fileprivate static func priority(_ level: Int) -> Self { Self(.priority, level) }

    fileprivate static func otherPriority(_ level: Int) -> Self { Self(.otherPriority, level) }

    fileprivate static func words(_ words: Set<String>) -> Self { Self(.words, words) }

    fileprivate static var essential: Self { Self(.essential, true) }
}

extension EntryCommand.Kind {
    /// A kind of an app's own.
    fileprivate static let dance = Self("dance")
    /// It is spelled like the one before, and is another one.
    fileprivate static let otherDance = Self("dance")
}

/// A transport whose protocol has a time limit, and no other option.
private struct StrictTransport: Transport {
    let mock = MockTransport().expect(.send).expect(.dance)

    var states: ConnectionStates { mock.states }

    func perform(_ request: Request) async throws -> Receipt {
        var options = OptionReader(request)
        _ = options.take(.timeout)
        try options.finish(for: "This test")
        return try await mock.perform(request)
    }

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await mock.subscribe(request)
    }

    func shutdown() async { await mock.shutdown() }
}

@Suite("Options of commands", .inSimulation, .timeLimit(.minutes(30))) struct OptionTests {
    // MARK: Values

    @Test("Given twice, the last one counts")
    func repeated() {
        let command = EntryCommand.send(.timeout(.seconds(1)), .idempotent, .timeout(.seconds(2)))
        #expect(command[.timeout] == .seconds(2))
        #expect(command.options == [.timeout, .idempotent])
        #expect(command == .send(.idempotent, .timeout(.seconds(2))))
        #expect(command == .send(options: [.idempotent, .timeout(.seconds(2))]))
        let waiting = EntryCommand.send(.waitsForConnection, .waitsForConnection(false))
        #expect(waiting[.waitsForConnection] == false && !waiting.isSet(.waitsForConnection))
    }

    @Test("Commands compare by kind, quality of service and options, whatever the order of these")
    func order() {
        let one = EntryCommand.send(
            qos: .atLeastOnce,
            .timeout(.seconds(1)),
            .idempotent,
            .responseTopic("r")
        )
        let same = EntryCommand.send(
            qos: .atLeastOnce,
            .responseTopic("r"),
            .timeout(.seconds(1)),
            .idempotent
        )
        #expect(one == same && one.hashValue == same.hashValue)
        let others: [EntryCommand] = [
            .send, .send(qos: .atLeastOnce), .subscribe(qos: .atLeastOnce),
            .send(qos: .exactlyOnce, .timeout(.seconds(1)), .idempotent, .responseTopic("r")),
            .send(qos: .atLeastOnce, .timeout(.seconds(2)), .idempotent, .responseTopic("r")),
            .send(qos: .atLeastOnce, .timeout(.seconds(1)), .responseTopic("r")),
            .send(qos: .atLeastOnce, .timeout(.seconds(1)), .priority(1), .responseTopic("r")),
            .ack(Message.ID(1)), .ack(Message.ID(2)), .nack(Message.ID(1)),
        ]
        #expect(!others.contains(one))
        #expect(Set(others + [one, same]).count == others.count + 1)
    }

    @Test("Texts compare by their bytes")
    func bytes() {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        #expect(composed == decomposed)
        #expect(SendOption.responseTopic(composed) != .responseTopic(decomposed))
        let command = EntryCommand.send(.responseTopic(composed))
        #expect(command != .send(.responseTopic(decomposed)))
        #expect(command == .send(.responseTopic("caf\u{E9}")))
        let words = SendOption.words([composed, "b"])
        #expect(words != .words([decomposed, "b"]) && words != .words([composed]))
        #expect(words == .words(["b", "caf\u{E9}"]))
        #expect(words.hashValue == SendOption.words(["b", "caf\u{E9}"]).hashValue)
    }

    @Test("The command is small, since every message carries one")
    func size() {
        #expect(MemoryLayout<EntryCommand>.size <= 16)
        // It decides whether the frame of an asynchronous call needs memory of its own.
        #expect(MemoryLayout<Request>.size <= 128)
    }

    @Test("An option is set, replaced and removed by its key, in one copy alone")
    func keys() {
        let plain: EntryCommand = .send
        #expect(plain.isPlain && plain[.timeout] == nil)
        var command = plain
        command[.timeout] = .seconds(1)
        #expect(command[.timeout] == .seconds(1) && command.options == [.timeout])
        let copy = command
        command[.timeout] = .seconds(2)
        #expect(command[.timeout] == .seconds(2) && command.options == [.timeout])
        command[.idempotent] = true
        command[.timeout] = nil
        #expect(command[.timeout] == nil && command.options == [.idempotent])
        #expect(command.isSet(.idempotent) && !command.isPlain)
        command[.idempotent] = nil
        command[.idempotent] = nil
        #expect(command == plain && command.isPlain)
        #expect(copy == .send(.timeout(.seconds(1))))
    }

    @Test("Descriptions, mirrors and dumps show the names of options, and no value")
    func descriptions() {
        let secret = "s3cret"
        let option = ConnectOption.password(secret)
        let command = EntryCommand.connect(.userName("\(secret)-user"), option)
        #expect("\(command)" == "connect (userName, password)")
        #expect("\(option)" == "password" && option.name == .password)
        let plain: EntryCommand = .connect
        #expect("\(plain)" == "connect")
        // The message of an acknowledgement is no option.
        let answer = EntryCommand.ack(Message.ID(1))
        #expect("\(answer)" == "ack" && answer.options.isEmpty && answer.message != nil)
        let values: [Any] = [
            command, option, [option], Optional(option) as Any, AnyEntry(command: command),
            Request(topic: nil, command: command),
        ]
        for value in values {
            var text = "\(value)" + String(reflecting: value)
            dump(value, to: &text)
            for child in Mirror(reflecting: value).children { dump(child, to: &text) }
            #expect(!text.contains(secret), "\(type(of: value)): \(text)")
        }
        var text = ""
        dump(command, to: &text)
        #expect(text.contains("password"))
    }

    // MARK: What a transport reads

    @Test("What a transport has not taken is refused by its name, with command and topic")
    func notTaken() throws {
        let command = EntryCommand.send(.timeout(.seconds(1)), .priority(3), .idempotent)
        let request = Request(topic: "t", command: command)
        var options = OptionReader(request)
        let isPlain = options.isPlain
        let limit = options.take(.timeout)
        let level = options.take(.priority)
        let isIdempotent: Bool = options.take(.idempotent)
        let topic = options.take(.responseTopic)
        let waits: Bool = options.take(.waitsForConnection)
        try options.finish(for: "This test")
        #expect(!isPlain && limit == .seconds(1) && level == 3)
        #expect(isIdempotent && topic == nil && !waits)

        var partial = OptionReader(request)
        _ = partial.take(.timeout)
        do throws(WaybillError) {
            try partial.finish(for: "This test")
            Issue.record("nothing was refused")
        } catch {
            #expect(error.code == .unsupported && error.option == .priority)
            #expect(error.message == "This test does not support priority for send")
            #expect(error.topic == "t" && error.command == "send")
        }
    }

    @Test("The kind of a command, and the message that it names, need not be taken")
    func noOptions() throws {
        for command in [EntryCommand(.dance), .ack(Message.ID(1)), .nack(Message.ID(1)), .send] {
            try OptionReader(Request(topic: nil, command: command)).finish(for: "This test")
        }
    }

    // MARK: Options and kinds of an app's own

    @Test("Keys that are spelled alike are different")
    func spelling() {
        let command = EntryCommand.send(.priority(1), .otherPriority(2))
        #expect(command[.priority] == 1 && command[.otherPriority] == 2)
        #expect(command.options.map(\.description) == ["priority", "priority"])
        #expect(command.options == [.priority, .otherPriority])
        #expect(OptionName.priority != .otherPriority)
        #expect(EntryCommand.send(.priority(1)) != .send(.otherPriority(1)))
        var one = command
        one[.priority] = nil
        #expect(one == .send(.otherPriority(2)))
    }

    @Test("Interceptors read and set an option of the app's own")
    func ownOption() async throws {
        struct Prioritizing: Interceptor {
            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                request.command[.priority] = (request.command[.priority] ?? 0) + 1
            }
        }
        let mock = MockTransport().expect(.send)
        let provider = Provider<AnyEntry>(transport: mock).intercepted(Prioritizing())
        try await provider.request(.send(topic: "t"))
        try await provider.request(.send(topic: "t", .priority(7)))
        #expect(mock.requests.map { $0.command[.priority] } == [1, 8])
    }

    @Test("A kind of the app's own has a name, and is the same object alone")
    func ownKind() async throws {
        let command = EntryCommand(.dance)
        #expect(command.kind == .dance && command.code == .other && command.options.isEmpty)
        #expect(command.name == "dance" && "\(command)" == "dance")
        #expect(EntryCommand.Kind.dance != .otherDance && command != EntryCommand(.otherDance))
        #expect(Set([EntryCommand.Kind.dance, .otherDance, .send, .send]).count == 3)
        var limited = command
        limited[.timeout] = .seconds(1)
        #expect(limited.kind == .dance && "\(limited)" == "dance (timeout)")
        let transport = StrictTransport()
        let provider = Provider<AnyEntry>(transport: transport)
        try await provider.request(AnyEntry(command: limited))
        #expect(transport.mock.requests.map(\.command) == [limited])
        await transport.shutdown()
    }

    @Test("The policy leaves out an own option where its key allows it, and refuses any other")
    func ignored() async throws {
        let transport = StrictTransport()
        let provider = Provider<AnyEntry>(transport: transport)
        let refused = await expectError(.unsupported) {
            try await provider.request(.send(topic: "t", .priority(3)))
        }
        #expect(refused?.option == .priority && refused?.command == "send")
        #expect(transport.mock.requests.isEmpty)

        let portable = provider.whenUnsupported(.ignore([.priority, .essential]))
        for _ in 0..<2 {
            try await portable.request(.send(topic: "t", .priority(3), .timeout(.seconds(1))))
        }
        let sent = transport.mock.requests.map(\.command)
        #expect(sent == Array(repeating: .send(.timeout(.seconds(1))), count: 2))

        let essential = await expectError(.unsupported) {
            try await portable.request(.send(topic: "t", .priority(3), .essential))
        }
        #expect(essential?.option == .essential)
        // It is spelled like one that may be left out.
        let other = await expectError(.unsupported) {
            try await portable.request(.send(topic: "t", .otherPriority(3)))
        }
        #expect(other?.option == .otherPriority && other?.option != .priority)
        #expect(transport.mock.requests.count == 2)
        await transport.shutdown()
    }
}
