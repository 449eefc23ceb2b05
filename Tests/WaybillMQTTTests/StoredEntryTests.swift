import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillTesting
import WireTestSupport

extension OptionName {
    /// An option of an app's own, which an interceptor takes out.
    fileprivate static let priority = OptionKey<Int>(stored: "test.priority")
    /// One that no other test uses, because the first use makes it known.
    fileprivate static let late = OptionKey<Int>(stored: "test.late")
}

/// A store has the request of the entry; the second transport stands for the next process.
@Suite("MQTT transport: what is stored of an entry", .inSimulation, .timeLimit(.minutes(30)))
struct StoredEntryTests {
    private let store = InMemorySessionStore()

    /// Adds a header to each send, or fails for one topic.
    private struct Stamp: Interceptor {
        let value: String
        var failing: String?

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .send else { return }
            if request.topic == failing { throw WaybillError(.interceptorFailed, "no token") }
            request.headers = [request.needsToken ? "token" : "none": value]
        }
    }

    /// CONNECT is not looked at. CONNACK with a session, or without one.
    private func script(
        isPresent: Bool,
        _ steps: ScriptedByteStream.Step...
    ) -> ScriptedByteStream {
        let connack: [UInt8] = [0x20, 3, isPresent ? 1 : 0, 0, 0]
        return ScriptedByteStream(steps: [.skip(21), .reply(connack)] + steps)
    }

    private func client(
        _ scripts: [ScriptedByteStream],
        keepsSession: Bool = true,
        _ stamp: Stamp?
    ) throws -> (MQTTTransport, Provider<AnyEntry>) {
        var configuration = MQTTConfiguration(version: .v5)
        bare(&configuration)
        configuration.clientIdentifier = "c"
        configuration.session.cleanStart = !keepsSession
        configuration.session.expiry = .seconds(60)
        configuration.session.store = store
        let transport = try MQTTTransport(
            scripts: scripts,
            clock: ManualClock(),
            configuration: configuration
        )
        let provider = Provider<AnyEntry>(transport: transport)
        return (transport, stamp.map { provider.intercepted($0) } ?? provider)
    }

    /// PUBLISH to a topic of one letter with a user property of two texts, and the body `x`.
    private func publish(
        _ topic: String,
        _ identifier: UInt16,
        qos: UInt8 = 1,
        isDuplicate: Bool = false,
        _ name: String?,
        _ value: String = ""
    ) -> [UInt8] {
        func text(_ text: String) -> [UInt8] { [0, UInt8(text.utf8.count)] + Array(text.utf8) }
        let property = name.map { [0x26] + text($0) + text(value) } ?? []
        let rest =
            text(topic) + [UInt8(identifier >> 8), UInt8(truncatingIfNeeded: identifier)]
            + [UInt8(property.count)] + property + [0x78]
        return [0x30 | qos << 1 | (isDuplicate ? 8 : 0), UInt8(rest.count)] + rest
    }

    private func puback(_ identifier: UInt16) -> [UInt8] {
        [0x40, 2, UInt8(identifier >> 8), UInt8(truncatingIfNeeded: identifier)]
    }

    @Test(
        "Interceptors run again when the next process sends a message",
        arguments: [1, 2],
        [true, false]
    )
    func nextProcess(qos: Int, isPresent: Bool) async throws {
        let first = script(
            isPresent: false,
            .expect(publish("t", 0x8001, qos: UInt8(qos), "token", "one"))
        )
        let (transport, provider) = try client([first], Stamp(value: "one"))
        let sending = Task {
            try await provider.request(
                .send(topic: "t", body: .bytes([0x78]), qos: qos == 2 ? .exactlyOnce : .atLeastOnce)
            )
        }
        try await waitUntil { first.isComplete || first.failures != [] }
        #expect(first.failures == [])
        // Neither the header nor its value is in the store.
        #expect(store.messages().map(\.headers) == [[]])
        #expect(store.messages().map(\.isAdapted) == [false])
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }

        let again = publish("t", 0x8001, qos: UInt8(qos), isDuplicate: isPresent, "token", "two")
        let next = script(isPresent: isPresent, .expect(again))
        let (second, other) = try client([next], Stamp(value: "two"))
        try await other.connect()
        try await waitUntil { next.isComplete || next.failures != [] }
        #expect(next.failures == [])
        await second.shutdown()
    }

    @Test(
        "Without a session at the store, too; and a message that was adapted before is sent as it is"
    )
    func adapted() async throws {
        var old = StoredMessage(topic: "a", body: [0x78], headers: [["token", "old"]], qos: 1)
        old.isAdapted = true
        _ = store.insert(old)
        var plain = StoredMessage(topic: "b", body: [0x78], qos: 1)
        plain.needsToken = false
        _ = store.insert(plain)
        let next = script(
            isPresent: false,
            .expect(publish("a", 1, "token", "old")),
            .expect(publish("b", 2, "none", "new")),
            .reply(puback(1) + puback(2))
        )
        let (transport, provider) = try client([next], keepsSession: false, Stamp(value: "new"))
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty || next.failures != [] }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("Without interceptors a message is sent as it is stored")
    func plain() async throws {
        _ = store.insert(StoredMessage(topic: "a", body: [0x78], qos: 1))
        let next = script(
            isPresent: true,
            .expect(publish("a", 0x8001, isDuplicate: true, nil)),
            .reply(puback(0x8001))
        )
        let (transport, provider) = try client([next], nil)
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty || next.failures != [] }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    // MARK: Options

    /// Takes an option of the app out, and sends it as a header.
    private struct Ranking: Interceptor {
        let key: @Sendable () -> OptionKey<Int>

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .send, let rank = request.command[key()] else { return }
            request.command[key()] = nil
            request.headers = ["rank": "\(rank)"]
        }
    }

    @Test("An option of the app's own is stored, for the interceptors of the next process")
    func ownOption() async throws {
        let ranking = Ranking { .priority }
        let first = script(isPresent: false, .expect(publish("t", 0x8001, "rank", "7")))
        let (transport, provider) = try client([first], nil)
        let command = EntryCommand.send(qos: .atLeastOnce, SendOption(.priority, 7))
        let sending = Task {
            try await provider.intercepted(ranking).request(
                AnyEntry(topic: "t", command: command, body: .bytes([0x78]))
            )
        }
        try await waitUntil { first.isComplete || first.failures != [] }
        #expect(first.failures == [])
        let options = [StoredOption("test.priority", .integer(7))]
        #expect(store.messages().map(\.options) == [options])
        #expect(store.messages().map(\.headers) == [[]])
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }

        let again = publish("t", 0x8001, isDuplicate: true, "rank", "7")
        let next = script(isPresent: true, .expect(again))
        let (second, other) = try client([next], nil)
        try await other.intercepted(ranking).connect()
        try await waitUntil { next.isComplete || next.failures != [] }
        #expect(next.failures == [])
        await second.shutdown()
    }

    @Test("An option that the provider leaves out of the send is not stored either")
    func leftOut() async throws {
        let script = ScriptedByteStream.accepted(.expect(("33 06 0001 74 0001 78" as Hex).bytes))
        let (transport, provider) = try scripted([script]) { $0.session.store = store }
        let lenient = provider.whenUnsupported(.ignore([.payloadFormat]))
        let sending = Task {
            try await lenient.request(
                .send("x", qos: .atLeastOnce, .payloadFormat(.text), .retained)
            )
        }
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        #expect(store.messages().map(\.options) == [[StoredOption("retained", .flag(true))]])
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }
    }

    @Test("A message with an option that is not known stays and is told once; the others are sent")
    func unknownOption() async throws {
        let unknown = StoredOption("of a later version", .flag(true))
        _ = store.insert(StoredMessage(topic: "a", body: [0x78], qos: 1, options: [unknown]))
        _ = store.insert(StoredMessage(topic: "b", body: [0x78], qos: 1))
        let first = script(
            isPresent: true,
            .expect(publish("b", 0x8002, isDuplicate: true, nil)),
            .reply(puback(0x8002)),
            .expect(("E0 00" as Hex).bytes)
        )
        let second = script(isPresent: true, .expect(("E0 00" as Hex).bytes))
        let (transport, provider) = try client([first, second], nil)
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.topic == "a" && failure?.error?.code == .unsupported)
        #expect(failure?.error?.option?.description == "of a later version")
        #expect(failure?.error?.mayHaveArrived == true)
        try await waitUntil { store.messages().map(\.topic) == ["a"] || first.failures != [] }
        try await provider.disconnect()
        try await provider.connect()
        try await provider.disconnect()
        #expect(first.failures == [] && second.failures == [])
        #expect(store.messages().map(\.options) == [[unknown]])
        let others = await take(to: .disconnected, &events) + take(to: .disconnected, &events)
        #expect(others.allSatisfy { $0.kind != .sendFailed })
        await transport.shutdown()
    }

    @Test("A message is sent once the process knows its options")
    func knownLater() async throws {
        let options = [StoredOption("test.late", .integer(7))]
        _ = store.insert(StoredMessage(topic: "a", body: [0x78], qos: 1, options: options))
        let first = script(isPresent: true, .expect(("E0 00" as Hex).bytes))
        let second = script(
            isPresent: true,
            .expect(publish("a", 0x8001, isDuplicate: true, "rank", "7")),
            .reply(puback(0x8001))
        )
        let (transport, provider) = try client([first, second], nil)
        try await provider.connect()
        try await provider.disconnect()
        #expect(store.messages().count == 1)
        _ = OptionName.late
        try await provider.intercepted(Ranking { .late }).connect()
        try await waitUntil { store.messages().isEmpty || second.failures != [] }
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
    }

    @Test("An option of the app's own waits for the provider whose interceptor takes it out")
    func otherProvider() async throws {
        _ = OptionName.priority
        let options = [StoredOption("test.priority", .integer(7))]
        _ = store.insert(StoredMessage(topic: "a", body: [0x78], qos: 1, options: options))
        let others = [1, 2].map { _ in script(isPresent: true, .expect(("E0 00" as Hex).bytes)) }
        let last = script(
            isPresent: true,
            .expect(publish("a", 0x8001, isDuplicate: true, "rank", "7")),
            .reply(puback(0x8001))
        )
        let (transport, provider) = try client(others + [last], nil)
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.option == .priority && failure?.error?.mayHaveArrived == true)
        try await provider.disconnect()
        let leaving = provider.intercepted(Spoiler { _ in })
        try await leaving.connect()
        try await leaving.disconnect()
        #expect(store.messages().map(\.options) == [options])
        let later = await take(to: .disconnected, &events) + take(to: .disconnected, &events)
        #expect(later.allSatisfy { $0.kind != .sendFailed })
        try await provider.intercepted(Ranking { .priority }).connect()
        try await waitUntil { store.messages().isEmpty || last.failures != [] }
        #expect(others.allSatisfy { $0.failures == [] } && last.failures == [])
        await transport.shutdown()
    }

    /// Stores and removes messages until the next one has the packet identifier of the first.
    private func useUpNumbers() {
        for _ in 1..<0x8000 {
            store.remove(store.insert(StoredMessage(topic: "", body: [], qos: 1)))
        }
    }

    @Test("No other message gets the packet identifier of one of QoS 2 that waits")
    func keptIdentifier() async throws {
        let unknown = [StoredOption("of a later version", .flag(true))]
        _ = store.beginSession("c")
        _ = store.insert(StoredMessage(topic: "b", body: [0x78], qos: 2, options: unknown))
        useUpNumbers()
        let next = script(
            isPresent: true,
            .expect(publish("t", 1, qos: 2, nil)),
            .reply(("50 02 0001" as Hex).bytes),
            .expect(("62 02 0001" as Hex).bytes),
            .reply(("70 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try client([next], nil)
        try await provider.request(.send(topic: "t", body: .bytes([0x78]), qos: .exactlyOnce))
        try await waitUntil { store.messages().count == 1 || next.failures != [] }
        #expect(next.failures == [] && store.messages().map(\.topic) == ["b"])
        await transport.shutdown()
    }

    @Test("A message that waits stays, although a later one with its packet identifier is released")
    func sameIdentifier() async throws {
        let unknown = [StoredOption("of a later version", .flag(true))]
        _ = store.beginSession("c")
        _ = store.insert(StoredMessage(topic: "b", body: [0x78], qos: 2, options: unknown))
        useUpNumbers()
        var released = StoredMessage(topic: "a", body: [0x78], qos: 2)
        released.stage = .released
        #expect(store.insert(released) == 0x8001)
        let next = script(
            isPresent: true,
            .expect(("62 02 8001" as Hex).bytes),
            .reply(("70 02 8001" as Hex).bytes)
        )
        let (transport, provider) = try client([next], nil)
        #expect(store.messages().map(\.topic) == ["b", "a"])
        try await provider.connect()
        try await waitUntil { store.messages().count == 1 || next.failures != [] }
        #expect(next.failures == [] && store.messages().map(\.topic) == ["b"])
        await transport.shutdown()
    }

    @Test("An exchange of QoS 2 whose option is not known waits, and ends with PUBREL if it can")
    func unknownExchange() async throws {
        let unknown = [StoredOption("of a later version", .flag(true))]
        var released = StoredMessage(topic: "a", body: [0x78], qos: 2, options: unknown)
        released.stage = .released
        _ = store.beginSession("c")
        _ = store.insert(released)
        _ = store.insert(StoredMessage(topic: "b", body: [0x78], qos: 2, options: unknown))
        let next = script(
            isPresent: true,
            .expect(("62 02 8001" as Hex).bytes),
            .reply(("70 02 8001" as Hex).bytes)
        )
        let (transport, provider) = try client([next], nil)
        try await provider.connect()
        try await waitUntil { store.messages().count == 1 || next.failures != [] }
        #expect(next.failures == [] && store.messages().map(\.topic) == ["b"])
        await transport.shutdown()
        #expect(store.messages().map(\.options) == [unknown])
    }

    // MARK: What interceptors spoil

    /// Makes of each send what cannot be sent.
    private struct Spoiler: Interceptor {
        let change: @Sendable (inout Request) -> Void

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .send else { return }
            change(&request)
        }
    }

    @Test("A message that interceptors make invalid waits for the next connection")
    func spoiled() async throws {
        let changes: [@Sendable (inout Request) -> Void] = [
            { $0.command = .unsubscribe }, { $0.topic = "a/#" },
            { $0.command = .send(qos: .atLeastOnce, .method("PUT")) },
        ]
        for change in changes {
            _ = store.insert(StoredMessage(topic: "a", body: [0x78], qos: 1))
            let number = try #require(store.messages().first?.id)
            let identifier = 0x8000 | UInt16(number)
            let first = script(isPresent: true, .expect(("E0 00" as Hex).bytes))
            let second = script(
                isPresent: true,
                .expect(publish("a", identifier, isDuplicate: true, nil)),
                .reply(puback(identifier))
            )
            let (transport, provider) = try client([first, second], nil)
            var events = transport.events.makeAsyncIterator()
            let spoiling = provider.intercepted(Spoiler(change: change))
            try await spoiling.connect()
            let failure = await take(to: .sendFailed, &events).last
            #expect(failure?.error?.mayHaveArrived == true)
            #expect(store.messages().count == 1)
            try await spoiling.disconnect()
            try await provider.connect()
            try await waitUntil { store.messages().isEmpty || second.failures != [] }
            #expect(first.failures == [] && second.failures == [])
            await transport.shutdown()
        }
    }

    @Test("A message whose interceptor fails waits for the next connection; the others are sent")
    func failing() async throws {
        for topic in ["a", "b"] {
            _ = store.insert(StoredMessage(topic: topic, body: [0x78], qos: 1))
        }
        let first = script(
            isPresent: true,
            .expect(publish("b", 0x8002, isDuplicate: true, "token", "one")),
            .reply(puback(0x8002)),
            .expect(("E0 00" as Hex).bytes)
        )
        let second = script(
            isPresent: true,
            .expect(publish("a", 0x8001, isDuplicate: true, "token", "two")),
            .reply(puback(0x8001))
        )
        let (transport, provider) = try client([first, second], Stamp(value: "one", failing: "a"))
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.topic == "a")
        #expect(failure?.error?.mayHaveArrived == true)
        try await waitUntil { store.messages().map(\.topic) == ["a"] || first.failures != [] }
        try await provider.disconnect()
        // The connection of another provider has other interceptors.
        let other = Provider<AnyEntry>(transport: transport).intercepted(Stamp(value: "two"))
        try await other.connect()
        try await waitUntil { store.messages().isEmpty || second.failures != [] }
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
    }
}
