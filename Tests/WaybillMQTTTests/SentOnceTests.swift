import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// QoS 1 for messages that must not be sent again.
@Suite("MQTT transport: messages that are sent once", .inSimulation, .timeLimit(.minutes(30)))
struct SentOnceTests {
    /// PUBLISH of QoS 1 to `t` with one byte.
    private func publish(_ id: UInt8, _ text: UInt8) -> [UInt8] {
        [0x32, 0x06, 0, 1, 0x74, 0, id, text]
    }

    private func once(_ text: String, isIdempotent: Bool = false) -> MQTTEntry {
        .command(
            .send(
                qos: .atLeastOnce,
                options: isIdempotent ? [.idempotent, .sentOnce] : [.sentOnce]
            ),
            topic: "t",
            body: .bytes(Array(text.utf8))
        )
    }

    @Test("It is confirmed as any message of QoS 1, and nothing is stored")
    func confirmed() async throws {
        let store = InMemorySessionStore()
        let script = ScriptedByteStream.accepted(
            .expect(publish(1, 0x61)),
            .reply([0x40, 2, 0, 1])
        )
        let (transport, provider) = try scripted([script]) { $0.session.store = store }
        try await provider.request(once("a"))
        #expect(script.isComplete && script.failures == [])
        #expect(store.messages().isEmpty)
        await transport.shutdown()
    }

    @Test("Unconfirmed at the end of the connection it fails, and the next one never sees it")
    func lost() async throws {
        let clock = ManualClock()
        let unconfirmed = ScriptedByteStream.accepted(.new, .expect(publish(1, 0x61)), .reset)
        // The server has the session. The next packet is that of the next send.
        let next = ScriptedByteStream.accepted(
            .present,
            .expect(publish(2, 0x62)),
            .reply([0x40, 2, 0, 2])
        )
        let (transport, provider) = try scripted([unconfirmed, next], clock: clock) {
            $0.session.cleanStart = false
        }
        let error = await expectError(.connectionLost) { try await provider.request(once("a")) }
        #expect(error?.topic == "t")
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            "\(transport.states.current)" == "connected"
        }
        try await provider.request(.send("b", qos: .atLeastOnce))
        #expect(next.isComplete && next.failures == [])
        await transport.shutdown()
    }

    @Test("It does not wait in the offline queue, but for the connection, as QoS 0 does")
    func offline() async throws {
        let clock = ManualClock()
        let lost = ScriptedByteStream.accepted(.skip(6), .reset)
        // A server that never answers.
        let silent = ScriptedByteStream(.expect(Packet.connect))
        let next = ScriptedByteStream.accepted(.skip(1))
        let (transport, provider) = try scripted([lost, silent, next], clock: clock) {
            $0.offline.includesUnacknowledged = true
            $0.timeouts.connect = .seconds(3)
        }
        try await provider.request(.send("x"))
        // Nothing is random here: the first wait is zero, so the next attempt is under way.
        try await waitUntil { silent.isComplete }
        // The queue would keep it for 30 seconds.
        let ended = Locked(false)
        let timers = clock.timerCount
        let waiting = Task {
            defer { ended.withLock { $0 = true } }
            try await provider.request(once("a"))
        }
        try await waitUntil { clock.timerCount > timers }
        clock.advance(by: .milliseconds(2_999))
        await untilQuiet()
        #expect(!ended.withLock { $0 })
        clock.advance(by: .milliseconds(1))
        await expectError(.notConnected) { try await waiting.value }
        // The next connection never sees it.
        try await waitUntil(moving: {
            if !next.hasReached(2) { clock.advance(by: .milliseconds(10)) }
        }) {
            "\(transport.states.current)" == "connected"
        }
        #expect(next.hasReached(3) && !next.hasReached(4))
        await transport.shutdown()
    }

    @Test("Without a connection and without connecting on demand it fails at once")
    func notConnected() async throws {
        let (transport, provider) = try scripted([]) { $0.connectsOnDemand = false }
        await expectError(.notConnected) { try await provider.request(once("a")) }
        await transport.shutdown()
    }

    @Test("A retry policy repeats it only if the entry says so", arguments: [true, false])
    func retries(isIdempotent: Bool) async throws {
        let clock = ManualClock()
        let unconfirmed = ScriptedByteStream.accepted(.expect(publish(1, 0x61)), .reset)
        let next =
            isIdempotent
            ? ScriptedByteStream.accepted(.expect(publish(2, 0x61)), .reply([0x40, 2, 0, 2]))
            : .accepted(.expect([0xE0, 0]))
        let (transport, provider) = try scripted([unconfirmed, next], clock: clock)
        let retrying = provider.intercepted(RetryPolicy(maximumAttempts: 3, delay: .none))
        let sending = Task { try await retrying.request(once("a", isIdempotent: isIdempotent)) }
        if isIdempotent {
            try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
                next.isComplete
            }
            _ = try await sending.value
            #expect(next.failures == [])
        } else {
            await expectError(.connectionLost) { try await sending.value }
            try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
                next.hasReached(3)
            }
            await untilQuiet()
        }
        await transport.shutdown()
        if !isIdempotent { #expect(next.isComplete) }
    }

    @Test("A broker that keeps the session sees one PUBLISH, whatever follows", arguments: versions)
    func broker(version: MQTTConfiguration.Version) async throws {
        let fixture = try Fixture()
        fixture.broker.faults.withholdsAcknowledgements = true
        let (transport, provider) = try fixture.provider(version) {
            $0.clientIdentifier = "c"
            $0.session.cleanStart = false
            $0.session.expiry = version == .v5 ? .seconds(600) : nil
            $0.reconnection = ReconnectionPolicy()
            $0.reconnection.initialDelay = .milliseconds(1)
            $0.reconnection.maximumDelay = .milliseconds(1)
        }
        func send(_ topic: String, isSentOnce: Bool) async throws {
            let command = EntryCommand.send(
                qos: .atLeastOnce,
                options: isSentOnce ? [.sentOnce] : []
            )
            try await provider.request(.command(command, topic: topic, body: .bytes([0x61])))
        }
        try await provider.request(.connect)
        let again = Task { try await send("again", isSentOnce: false) }
        let once = Task { try await send("once", isSentOnce: true) }
        try await waitUntil { fixture.lines.count("PUBLISH") == 2 }
        // A line comes before the broker decides about the acknowledgement. Packets are handled in order.
        try await provider.request(.send("after"))
        try await waitUntil { fixture.lines.count("PUBLISH") == 3 }
        fixture.broker.faults.withholdsAcknowledgements = false
        fixture.broker.restart(keepingState: true)
        await expectError(.connectionLost) { try await once.value }
        // The other message is repeated, and confirmed over the new connection.
        try await again.value
        try await send("last", isSentOnce: false)
        #expect(fixture.lines.count("once") == 1)
        #expect(fixture.lines.all.count { $0.contains("PUBLISH") && $0.contains("again") } == 2)
        await fixture.end(transport)
    }
}
