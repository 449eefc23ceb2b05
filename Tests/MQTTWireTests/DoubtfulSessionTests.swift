import MQTTWire
import Testing
import WireCore

/// A session that the server may have lost, and begun anew with a CONNECT whose CONNACK was lost.
@Suite("A session in doubt (MQTT 5, 3.2.2.1.1)")
struct DoubtfulSessionTests {
    /// A connection with the session of one that has answered two messages with PUBREC.
    private func start(
        _ session: MQTTSessionState = MQTTSessionState(),
        isInDoubt: Bool
    ) throws -> ClientHarness {
        var harness = try ClientHarness(.v5, connack: nil) { $0.keepsSession = true }
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        harness.receive(.message("a", .exactlyOnce, id: 1), .message("b", .exactlyOnce, id: 2))
        for index in 0..<2 { harness.take(index) }
        for step in harness.steps { harness.client.stored(step, at: harness.now) }
        #expect(harness.sent == [.pubrec(.ack(1)), .pubrec(.ack(2))])
        var session = harness.cut()
        if isInDoubt { session.noteDoubt() }
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        _ = harness.told()
        harness.steps = []
        return harness
    }

    @Test("A PUBLISH without DUP begins a new exchange, and ends those of the lost session")
    func lost() throws {
        var harness = try start(isInDoubt: true)
        harness.receive(.message("c", .exactlyOnce, id: 1))
        #expect(harness.told() == ["message c"])
        harness.take(harness.receipts.count - 1)
        #expect(harness.sent == [.pubrec(.ack(1))])
        // The server has lost this one, too, so a message with DUP was not delivered before.
        harness.receive(.message("d", .exactlyOnce, id: 2, dup: true))
        #expect(harness.told() == ["message d"])
    }

    @Test("A PUBLISH with DUP, or a PUBREL, goes on with the exchange as ever")
    func kept() throws {
        var harness = try start(isInDoubt: true)
        harness.receive(.message("a", .exactlyOnce, id: 1, dup: true))
        harness.receive(.pubrel(.ack(2)))
        #expect(harness.told() == [])
        #expect(harness.sent == [.pubrec(.ack(1)), .pubcomp(.ack(2))])
        harness.receive(.message("c", .exactlyOnce, id: 2))
        #expect(harness.told() == ["message c"])
    }

    @Test("The doubt outlives a connection that does not resolve it")
    func outlives() throws {
        var harness = try start(isInDoubt: true)
        try harness.connect(
            resuming: harness.cut(),
            connack: MQTTConnackPacket(sessionPresent: true)
        )
        _ = harness.told()
        harness.receive(.message("c", .exactlyOnce, id: 2))
        #expect(harness.told() == ["message c"])
    }

    @Test("A call that waits for an exchange of the lost session ends")
    func call() throws {
        var harness = try ClientHarness(.v5, connack: nil) { $0.keepsSession = true }
        try harness.connect(
            resuming: MQTTSessionState(),
            connack: MQTTConnackPacket(sessionPresent: true)
        )
        harness.receive(.message("a", .exactlyOnce, id: 1))
        #expect(harness.answer(0, awaitedBy: 7) == .waiting)
        var session = harness.cut()
        session.noteDoubt()
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        _ = harness.told()
        harness.receive(.message("b", .exactlyOnce, id: 1))
        #expect(harness.told() == ["session lost 7", "message b"])
    }

    @Test("An identifier that an earlier process has stored is in doubt")
    func process() throws {
        var harness = try ClientHarness(.v5, connack: nil) { $0.keepsSession = true }
        try harness.connect(
            resuming: MQTTSessionState(received: [5, 6]),
            connack: MQTTConnackPacket(sessionPresent: true)
        )
        harness.receive(.message("a", .exactlyOnce, id: 5, dup: true))
        #expect(harness.told() == [])
        #expect(harness.sent == [.pubrec(.ack(5))])
        harness.receive(.message("b", .exactlyOnce, id: 6))
        #expect(harness.told() == ["store superseded(6)", "message b"])
        #expect(harness.steps == [.superseded(6)])
    }

    @Test("The identifiers of the lost session leave the store before the new one is stored")
    func stored() throws {
        var harness = try start(MQTTSessionState(received: []), isInDoubt: true)
        harness.receive(.message("c", .exactlyOnce, id: 1))
        harness.take(harness.receipts.count - 1)
        #expect(
            harness.steps.prefix(2).sorted { "\($0)" < "\($1)" } == [
                .superseded(1), .superseded(2),
            ]
        )
        #expect(harness.steps.dropFirst(2) == [.taken(1)])
        #expect(harness.sent == [])
        for step in harness.steps { harness.client.stored(step, at: harness.now) }
        #expect(harness.sent == [.pubrec(.ack(1))])
    }

    @Test("Without a doubt even a PUBLISH without DUP is a repetition")
    func without() throws {
        var harness = try start(isInDoubt: false)
        harness.receive(.message("a", .exactlyOnce, id: 1))
        #expect(harness.told() == [])
        #expect(harness.sent == [.pubrec(.ack(1))])
    }
}
