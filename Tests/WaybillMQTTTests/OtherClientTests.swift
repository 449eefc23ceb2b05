import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// A connection under another client identifier, whose session at the server is another one (MQTT 5, 3.1.3-2).
@Suite("MQTT transport: another client identifier", .inSimulation, .timeLimit(.minutes(30)))
struct OtherClientTests {
    /// Names each CONNECT, in the order of the list, and later ones with the last name.
    private final class Renaming: Interceptor {
        private let names: Locked<[String]>

        init(_ names: String...) { self.names = Locked(names) }

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .connect else { return }
            request.command[.clientIdentifier] = names.withLock {
                $0.count > 1 ? $0.removeFirst() : $0[0]
            }
        }
    }

    /// CONNECT with the client identifier `d` and a lasting session.
    private let other = ("10 0D 0004 4D515454 04 00 003C 0001 64" as Hex).bytes
    /// PUBLISH of QoS 1 with the packet identifier 1.
    private let publish = ("32 06 0001 74 0001 78" as Hex).bytes

    private func client(
        _ names: Renaming,
        _ clock: ManualClock = ManualClock(),
        _ scripts: ScriptedByteStream...
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
        }
        return (transport, provider.intercepted(names))
    }

    @Test("A message of QoS 1 in flight is sent as a new one")
    func atLeastOnce() async throws {
        let first = ScriptedByteStream.accepted(.new, .expect(publish), .reset)
        let second = ScriptedByteStream(
            .expect(other),
            .reply(Packet.resumed),
            .expect(publish),
            .reply(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try client(Renaming("c", "d"), ManualClock(), first, second)
        try await provider.connect()
        try await provider.request(.send("x", qos: .atLeastOnce))
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
    }

    @Test("An exchange of QoS 2 is not continued: its call fails, and no PUBREL is sent")
    func exactlyOnce() async throws {
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(("34 06 0001 74 0001 78" as Hex).bytes),
            .reply(("50 02 0001" as Hex).bytes),
            .expect(("62 02 0001" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream(
            .expect(other),
            .reply(Packet.resumed),
            .expect(("30 04 0001 74 79" as Hex).bytes)
        )
        let (transport, provider) = try client(Renaming("c", "d"), ManualClock(), first, second)
        try await provider.connect()
        await expectError(.connectionLost) {
            try await provider.request(.send("x", qos: .exactlyOnce))
        }
        try await provider.request(.send("y"))
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(second.failures == [])
        await transport.shutdown()
    }

    @Test("Filters are subscribed to again, and a packet identifier of QoS 2 is a new message's")
    func received() async throws {
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(("82 06 0001 0001 74 02" as Hex).bytes),
            .reply(("90 03 0001 02 34 06 0001 74 0007 61" as Hex).bytes),
            .expect(("50 02 0007" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream(
            .expect(other),
            .reply(Packet.resumed),
            .expect(("82 06 0002 0001 74 02" as Hex).bytes),
            .reply(("90 03 0002 02 34 06 0001 74 0007 62" as Hex).bytes),
            .expect(("50 02 0007" as Hex).bytes)
        )
        let (transport, provider) = try client(Renaming("c", "d"), ManualClock(), first, second)
        try await provider.connect()
        var messages = try await provider.messages(.subscribe()).makeAsyncIterator()
        #expect(try await messages.next()?.text == "a")
        #expect(try await messages.next()?.text == "b")
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(second.failures == [])
        await transport.shutdown()
    }

    @Test("An attempt under another identifier that the server refuses changes nothing")
    func refused() async throws {
        let first = ScriptedByteStream.accepted(.new, .expect(publish), .reset)
        let second = ScriptedByteStream(.expect(other), .reply(("20 02 00 03" as Hex).bytes))
        let third = ScriptedByteStream.accepted(
            .present,
            .expect(("3A 06 0001 74 0001 78" as Hex).bytes),
            .reply(("40 02 0001" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try client(Renaming("c", "d", "c"), clock, first, second, third)
        try await provider.connect()
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil(moving: { clock.advance(by: .milliseconds(500)) }) {
            third.isComplete || third.failures != []
        }
        _ = try await sending.value
        #expect(second.failures == [] && third.failures == [])
        await transport.shutdown()
    }

    @Test("An explicit connect with another identifier sends nothing whose call has failed")
    func explicit() async throws {
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(publish),
            .expect(("E0 00" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream(.expect(other), .reply(Packet.resumed))
        let (transport, provider) = try scripted([first, second]) {
            $0.session.cleanStart = false
            $0.timeouts.drain = .zero
        }
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { first.hasReached(4) }
        try await provider.disconnect()
        await expectError(.connectionLost) { try await sending.value }
        try await provider.request(.command(.connect(.clientIdentifier("d"))))
        await untilQuiet()
        #expect(first.failures == [] && second.isComplete)
        await transport.shutdown()
    }

    // MARK: With a store

    private let store = InMemorySessionStore()
    private let subscribe = ("82 06 0001 0001 74 02" as Hex).bytes
    private let suback = ("90 03 0001 02" as Hex).bytes

    private func storing(
        _ names: Renaming?,
        _ clock: ManualClock = ManualClock(),
        _ scripts: ScriptedByteStream...
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
            $0.session.store = store
            $0.session.lateDelivery = .off
        }
        return (transport, names.map { provider.intercepted($0) } ?? provider)
    }

    /// PUBLISH of QoS 2 with the packet identifier 7 or another, and its PUBREC.
    private func arrival(_ text: UInt8, _ identifier: UInt8 = 7) -> [UInt8] {
        [0x34, 6, 0, 1, 0x74, 0, identifier, text]
    }
    private func pubrec(_ identifier: UInt8 = 7) -> [UInt8] { [0x50, 2, 0, identifier] }

    @Test("What was taken under another identifier is not taken in the next process")
    func storedReceived() async throws {
        let first = ScriptedByteStream(
            .expect(other),
            .reply(Packet.connack),
            .expect(subscribe),
            .reply(suback + arrival(0x61)),
            // At once, because nothing is stored.
            .expect(pubrec())
        )
        let (transport, provider) = try storing(Renaming("d"), ManualClock(), first)
        var messages = try await provider.messages(.subscribe()).makeAsyncIterator()
        #expect(try await messages.next()?.text == "a")
        try await waitUntil { first.isComplete || first.failures != [] }
        #expect(first.failures == [] && store.receivedIdentifiers() == [])
        await transport.shutdown()

        // The session of the configured identifier, with a message of its own.
        let next = ScriptedByteStream.accepted(.present, .reply(arrival(0x62)), .expect(pubrec()))
        let (later, again) = try storing(nil, ManualClock(), next)
        var all = try again.allMessages().makeAsyncIterator()
        try await again.connect()
        try await waitUntil { next.isComplete || next.failures != [] }
        #expect(next.failures == [])
        await later.shutdown()
        #expect(try await all.next()?.body.text == "b")
    }

    @Test("What was sent under another identifier is sent again in the next process")
    func storedSent() async throws {
        let first = ScriptedByteStream(
            .expect(other),
            .reply(Packet.connack),
            .expect(("34 06 0001 74 8001 78" as Hex).bytes),
            .reply(("50 02 8001" as Hex).bytes),
            .expect(("62 02 8001" as Hex).bytes)
        )
        let (transport, provider) = try storing(Renaming("d"), ManualClock(), first)
        let sending = Task { try await provider.request(.send("x", qos: .exactlyOnce)) }
        try await waitUntil { first.isComplete || first.failures != [] }
        #expect(first.failures == [])
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }
        #expect(store.messages().map(\.stage) == [.published])

        let next = ScriptedByteStream.accepted(
            .present,
            .expect(("3C 06 0001 74 8001 78" as Hex).bytes),
            .reply(("50 02 8001" as Hex).bytes),
            .expect(("62 02 8001" as Hex).bytes),
            .reply(("70 02 8001" as Hex).bytes)
        )
        let (later, again) = try storing(nil, ManualClock(), next)
        try await again.connect()
        try await waitUntil { store.messages().isEmpty || next.failures != [] }
        #expect(next.failures == [])
        await later.shutdown()
    }

    @Test(
        "Back under the configured identifier, the store keeps exchanges again, also after a refused CONNECT"
    )
    func storedAgain() async throws {
        /// The next connection subscribes again, as each has another session.
        func script(_ connect: [UInt8], _ number: UInt8, _ identifier: UInt8) -> ScriptedByteStream
        {
            ScriptedByteStream(
                .expect(connect),
                .reply(Packet.connack),
                .expect([0x82, 6, 0, number, 0, 1, 0x74, 2]),
                .reply([0x90, 3, 0, number, 2] + arrival(0x60 + identifier, identifier)),
                .expect(pubrec(identifier)),
                .reset
            )
        }
        let first = script(other, 1, 1)
        let second = script(Packet.lastingConnect, 2, 2)
        let refused = ScriptedByteStream(.expect(other), .reply(("20 02 00 03" as Hex).bytes))
        let last = ScriptedByteStream.accepted(
            .present,
            .reply(arrival(0x63, 3)),
            .expect(pubrec(3))
        )
        let clock = ManualClock()
        let names = Renaming("d", "c", "d", "c")
        let (transport, provider) = try storing(names, clock, first, second, refused, last)
        var messages = try await provider.messages(.subscribe()).makeAsyncIterator()
        #expect(try await messages.next()?.text == "a")
        #expect(try await messages.next()?.text == "b")
        try await waitUntil(moving: { clock.advance(by: .milliseconds(500)) }) {
            last.hasReached(3) || last.failures != []
        }
        #expect(try await messages.next()?.text == "c")
        try await waitUntil { last.isComplete || last.failures != [] }
        for script in [first, second, refused, last] { #expect(script.failures == []) }
        #expect(store.receivedIdentifiers() == [2, 3])
        await transport.shutdown()
    }

    @Test("The store keeps the filters that the configured identifier has left, and no others")
    func storedFilters() async throws {
        store.setPendingUnsubscribes(["a"])
        let first = ScriptedByteStream(
            .expect(other),
            .reply(Packet.resumed),
            .expect(subscribe),
            .reply(suback),
            .expect(("A2 05 0002 0001 74" as Hex).bytes)
        )
        let (transport, provider) = try storing(Renaming("d"), ManualClock(), first)
        var messages: Messages<Message>? = try await provider.messages(.subscribe())
        withExtendedLifetime(messages) {}
        messages = nil
        try await waitUntil { first.isComplete || first.failures != [] }
        #expect(first.failures == [])
        await transport.shutdown()
        #expect(store.pendingUnsubscribes() == ["a"])

        let next = ScriptedByteStream.accepted(
            .present,
            .expect(("A2 05 0001 0001 61" as Hex).bytes),
            .reply(("B0 02 0001" as Hex).bytes)
        )
        let (later, again) = try storing(nil, ManualClock(), next)
        try await again.connect()
        try await waitUntil { store.pendingUnsubscribes() == [] || next.failures != [] }
        #expect(next.failures == [])
        await later.shutdown()
    }

    // MARK: The owner of a session

    @Test(
        "A session has the identifier of the last CONNACK",
        arguments: [
            ([], "a", true, nil),
            ([], "", true, nil),
            ([("a", nil)], "a", true, nil),
            ([("a", nil)], "b", false, nil),
            ([("a", nil)], "A", false, nil),
            ([("a", nil)], "", false, nil),
            ([("", nil)], "", false, nil),
            ([("", "x")], "x", true, "x"),
            ([("", "x"), ("x", nil)], "x", true, "x"),
            ([("", "x"), ("b", nil)], "x", false, nil),
            ([("", "x"), ("", "y")], "y", true, "y"),
            ([("a", "x")], "a", true, nil),
            ([("a", "x")], "x", false, nil),
            ([("\u{E9}", nil)], "e\u{301}", false, nil),
        ] as [([(String, String?)], String, Bool, String?)]
    )
    func owner(
        noted: [(String, String?)],
        next: String,
        isSame: Bool,
        assigned: String?
    ) {
        var owner = MQTTSessionOwner()
        for (requested, assigned) in noted {
            owner.noteRequested(requested)
            owner.noteConnected(assigned: assigned)
        }
        #expect(owner.isSame(as: next) == isSame)
        #expect(owner.assigned == assigned)
        #expect(!MQTTSessionOwner("stored").isSame(as: next))
    }
}
