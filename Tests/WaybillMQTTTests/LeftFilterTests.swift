import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Filters without a listener, on a server that keeps the session and has not got the UNSUBSCRIBE.
@Suite("MQTT transport: what was left", .inSimulation, .timeLimit(.minutes(30)))
struct LeftFilterTests {
    private func client(
        _ scripts: [ScriptedByteStream],
        _ store: (any SessionStore)?,
        clock: ManualClock = ManualClock(),
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
            $0.session.store = store
            change(&$0)
        }
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
        let script = ScriptedByteStream.subscribed(
            .new,
            .expect(unsubscribe(2, [0x74])),
            // The server confirms nothing before this message.
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reply(("B0 02 0002" as Hex).bytes)
        )
        let (transport, provider) = try client([script], store)
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
        let first = ScriptedByteStream.subscribed(.new, .expect(unsubscribe(2, [0x74])), .reset)
        let second = ScriptedByteStream.accepted(
            .present,
            .skip(7),
            .reply(("B0 02 0003" as Hex).bytes)
        )
        let (transport, provider) = try client([first, second], store)
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
        let script = ScriptedByteStream.accepted(
            .present,
            .expect(unsubscribe(1, [0x61, 0x62, 0x74])),
            .reply(("B0 02 0001" as Hex).bytes),
            // The app's new subscription follows the UNSUBSCRIBE.
            .expect(("82 06 0002 0001 74 01" as Hex).bytes),
            .reply(("90 03 0002 01" as Hex).bytes)
        )
        let (transport, provider) = try client([script], store)
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
        let script = ScriptedByteStream.accepted(.new, .expect(("30 04 0001 78 79" as Hex).bytes))
        let (transport, provider) = try client([script], store)
        try await provider.request(.send("y", to: "x"))
        #expect(store.pendingUnsubscribes() == [])
        #expect(script.failures == [] && script.isComplete)
        await transport.shutdown()
        // With a clean session, the transport does not read the store.
        store.setPendingUnsubscribes(["a"])
        let clean = ScriptedByteStream(.skip(15), .reply(Packet.connack), .skip(100))
        let (other, otherProvider) = try client([clean], store) { $0.session.cleanStart = true }
        try await otherProvider.request(.connect)
        #expect(store.pendingUnsubscribes() == ["a"])
        await other.shutdown()
    }

    @Test("Left while there is no connection, and no other follows: it stays stored")
    func whileAway() async throws {
        let store = InMemorySessionStore()
        let clock = ManualClock()
        let script = ScriptedByteStream.subscribed(
            .new,
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reset
        )
        let (transport, provider) = try client([script], store, clock: clock)
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
            .skip(32),
            .reply(("20 03 01 00 00" as Hex).bytes),
            .expect(("A2 06 0002 00 0001 61" as Hex).bytes),
            // Reason code 0x87: not authorized.
            .reply(("B0 04 0002 00 87" as Hex).bytes),
            .expect(("A2 06 0004 00 0001 62" as Hex).bytes),
            .reply(("B0 04 0004 00 00" as Hex).bytes)
        )
        let (transport, provider) = try client([script], store) {
            $0.version = .v5
            $0.limits.receiveMaximum = 1_024
            $0.session.expiry = .seconds(60)
        }
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
        let script = ScriptedByteStream.subscribed(
            .new,
            .expect(unsubscribe(2, [0x74])),
            .expect(("82 06 0003 0001 74 01" as Hex).bytes),
            .reply(("90 03 0003 01" as Hex).bytes),
            .expect(unsubscribe(4, [0x74])),
            // The server confirms the first UNSUBSCRIBE. Then a message arrives.
            .reply(("B0 02 0002 30 04 0001 78 79" as Hex).bytes),
            .expect(("30 04 0001 78 79" as Hex).bytes),
            .reply(("B0 02 0004" as Hex).bytes)
        )
        let (transport, provider) = try client([script], store)
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
        let first = ScriptedByteStream.accepted(.new, .expect(Packet.subscribe), .reset)
        // The attempt after this one waits for the clock, so the caller has its error before it.
        let between = ScriptedByteStream(.expect(Packet.lastingConnect), .reset)
        let second = ScriptedByteStream.accepted(
            .present,
            .skip(7),
            .reply(("B0 02 0002" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try client([first, between, second], store, clock: clock)
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
