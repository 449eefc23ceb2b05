import Testing
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Filters without a listener, on a server that keeps the session and has not got the UNSUBSCRIBE.
@Suite("MQTT transport: what was left", .timeLimit(.minutes(5))) struct LeftFilterTests {
    /// CONNECT of MQTT 3.1.1 with client identifier `c`, keep alive 60, and a session that outlives the connection.
    private static let connect = ("10 0D 0004 4D515454 04 00 003C 0001 63" as Hex).bytes
    private static let connack = ("20 02 00 00" as Hex).bytes
    private static let resumed = ("20 02 01 00" as Hex).bytes
    private static let subscribe = ("82 06 0001 0001 74 01" as Hex).bytes
    private static let suback = ("90 03 0001 01" as Hex).bytes

    private func configuration(
        _ store: (any SessionStore)?,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTConfiguration {
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.clientIdentifier = "c"
        configuration.cleanStart = false
        configuration.store = store
        change(&configuration)
        return configuration
    }

    private func unsubscribe(_ identifier: UInt8, _ filters: [UInt8]) -> [UInt8] {
        let names: [UInt8] = filters.flatMap { [0, 1, $0] as [UInt8] }
        return [0xA2, UInt8(2 + names.count), 0, identifier] + names
    }

    private func isStored(_ filters: [String], _ store: InMemorySessionStore) async throws {
        try await waitUntil { store.pendingUnsubscribes() == filters }
    }

    @Test("It is stored until the server has confirmed it, and not a moment longer")
    func confirmed() async throws {
        let store = InMemorySessionStore()
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.connack),
            .expect(Self.subscribe),
            .reply(Self.suback),
            .expect(unsubscribe(2, [0x74])),
            // The server confirms nothing before this message.
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reply(("B0 02 0002" as Hex).bytes)
        )
        let transport = try MQTTTransport(scripts: script, configuration: configuration(store))
        let provider = Provider<MQTTEntry>(transport: transport)
        var messages: Messages<Message>? = try await provider.messages(
            .subscribe(qos: .atLeastOnce)
        )
        withExtendedLifetime(messages) {}
        messages = nil
        #expect(store.pendingUnsubscribes() == ["t"])
        try await provider.request(.send("y", to: "x"))
        try await isStored([], store)
        #expect(script.failures == [])
        await transport.shutdown()
        #expect(store.pendingUnsubscribes() == [])
    }

    @Test("A connection that is lost before the confirmation: the next one tells the server again")
    func again() async throws {
        let store = InMemorySessionStore()
        let first = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.connack),
            .expect(Self.subscribe),
            .reply(Self.suback),
            .expect(unsubscribe(2, [0x74])),
            .reset
        )
        let second = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.resumed),
            .skip(7),
            .reply(("B0 02 0003" as Hex).bytes)
        )
        let transport = try MQTTTransport(
            scripts: first,
            second,
            configuration: configuration(store)
        )
        let provider = Provider<MQTTEntry>(transport: transport)
        var messages: Messages<Message>? = try await provider.messages(
            .subscribe(qos: .atLeastOnce)
        )
        withExtendedLifetime(messages) {}
        messages = nil
        try await waitUntil { second.isComplete }
        try await isStored([], store)
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
    }

    @Test("The next launch tells a server that still has the session, all filters in one packet")
    func nextLaunch() async throws {
        let store = InMemorySessionStore()
        store.setPendingUnsubscribes(["a", "b", "t"])
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.resumed),
            .expect(unsubscribe(1, [0x61, 0x62, 0x74])),
            .reply(("B0 02 0001" as Hex).bytes),
            // The app's new subscription follows the UNSUBSCRIBE.
            .expect(("82 06 0002 0001 74 01" as Hex).bytes),
            .reply(("90 03 0002 01" as Hex).bytes)
        )
        let transport = try MQTTTransport(scripts: script, configuration: configuration(store))
        let provider = Provider<MQTTEntry>(transport: transport)
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        #expect(store.pendingUnsubscribes() == [])
        #expect(script.failures == [])
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("A server that has lost the session needs not be told; nor does one that never keeps it")
    func nothingToTell() async throws {
        let store = InMemorySessionStore()
        store.setPendingUnsubscribes(["a"])
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.connack),
            .expect(("30 04 0001 78 79" as Hex).bytes)
        )
        let transport = try MQTTTransport(scripts: script, configuration: configuration(store))
        try await Provider<MQTTEntry>(transport: transport).request(.send("y", to: "x"))
        #expect(store.pendingUnsubscribes() == [])
        #expect(script.failures == [] && script.isComplete)
        await transport.shutdown()
        // With a clean session, the transport does not read the store.
        store.setPendingUnsubscribes(["a"])
        let clean = ScriptedByteStream(.skip(15), .reply(Self.connack), .skip(100))
        let other = try MQTTTransport(
            scripts: clean,
            configuration: configuration(store) { $0.cleanStart = true }
        )
        try await Provider<MQTTEntry>(transport: other).request(.connect)
        #expect(store.pendingUnsubscribes() == ["a"])
        await other.shutdown()
    }

    @Test("Left while there is no connection, and no other follows: it stays stored")
    func whileAway() async throws {
        let store = InMemorySessionStore()
        let clock = ManualClock()
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.connack),
            .expect(Self.subscribe),
            .reply(Self.suback),
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reset
        )
        let transport = try MQTTTransport(
            scripts: script,
            clock: clock,
            configuration: configuration(store)
        )
        let provider = Provider<MQTTEntry>(transport: transport)
        var messages: Messages<Message>? = try await provider.messages(
            .subscribe(qos: .atLeastOnce)
        )
        withExtendedLifetime(messages) {}
        try await provider.request(.send("y", to: "x"))
        try await waitUntil { "\(transport.states.current)" != "connected" }
        messages = nil
        try await isStored(["t"], store)
        await transport.shutdown()
        #expect(store.pendingUnsubscribes() == ["t"])
        store.removeAll()
        #expect(store.pendingUnsubscribes() == [])
    }

    @Test("A server that will not hear of it, or a filter that cannot be sent, holds nothing up")
    func refused() async throws {
        let store = InMemorySessionStore()
        store.setPendingUnsubscribes(["a", "", "b"])
        let script = ScriptedByteStream(
            .skip(29),
            .reply(("20 03 01 00 00" as Hex).bytes),
            .expect(("A2 06 0002 00 0001 61" as Hex).bytes),
            // Reason code 0x87: not authorized.
            .reply(("B0 04 0002 00 87" as Hex).bytes),
            .expect(("A2 06 0004 00 0001 62" as Hex).bytes),
            .reply(("B0 04 0004 00 00" as Hex).bytes)
        )
        let configuration = configuration(store) {
            $0.version = .v5
            $0.receiveMaximum = 1_024
            $0.sessionExpiry = .seconds(60)
        }
        let transport = try MQTTTransport(scripts: script, configuration: configuration)
        let provider = Provider<MQTTEntry>(transport: transport)
        let connect = Task { try await provider.request(.connect) }
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        if script.failures == [] { _ = try await connect.value }
        #expect(store.pendingUnsubscribes() == [])
        await transport.shutdown()
    }

    @Test("The confirmation of an earlier leaving does not count for a later one")
    func leftAgain() async throws {
        let store = InMemorySessionStore()
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.connack),
            .expect(Self.subscribe),
            .reply(Self.suback),
            .expect(unsubscribe(2, [0x74])),
            .expect(("82 06 0003 0001 74 01" as Hex).bytes),
            .reply(("90 03 0003 01" as Hex).bytes),
            .expect(unsubscribe(4, [0x74])),
            // The server confirms the first UNSUBSCRIBE. Then a message arrives.
            .reply(("B0 02 0002 30 04 0001 78 79" as Hex).bytes),
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reply(("B0 02 0004" as Hex).bytes)
        )
        let transport = try MQTTTransport(scripts: script, configuration: configuration(store))
        let provider = Provider<MQTTEntry>(transport: transport)
        var all = try provider.allMessages().makeAsyncIterator()
        for _ in 0..<2 {
            let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
            withExtendedLifetime(messages) {}
        }
        #expect(try await all.next()?.topic == "x")
        #expect(store.pendingUnsubscribes() == ["t"])
        try await provider.request(.send("y", to: "x"))
        try await isStored([], store)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A SUBSCRIBE that was not answered counts as left: the server may have it")
    func unanswered() async throws {
        let store = InMemorySessionStore()
        let first = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.connack),
            .expect(Self.subscribe),
            .reset
        )
        // The attempt after this one waits for the clock, so the caller has its error before it.
        let between = ScriptedByteStream(.expect(Self.connect), .reset)
        let second = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.resumed),
            .skip(7),
            .reply(("B0 02 0002" as Hex).bytes)
        )
        let clock = ManualClock()
        let transport = try MQTTTransport(
            scripts: first,
            between,
            second,
            clock: clock,
            configuration: configuration(store)
        )
        let provider = Provider<MQTTEntry>(transport: transport)
        await expectError(.connectionLost) {
            try await provider.messages(.subscribe(qos: .atLeastOnce))
        }
        try await isStored(["t"], store)
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) { second.isComplete }
        try await isStored([], store)
        for script in [first, between, second] { #expect(script.failures == []) }
        await transport.shutdown()
    }
}
