import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// Sends while there is no connection, and sends when there will be no more connection.
@Suite("MQTT transport: offline (design 5.9)", .inSimulation, .timeLimit(.minutes(30)))
struct OfflineTests {
    /// PUBLISH of QoS 1 to `t` with one byte.
    private func publish(_ id: UInt8, _ text: UInt8) -> [UInt8] {
        [0x32, 0x06, 0, 1, 0x74, 0, id, text]
    }

    /// A transport that has lost its connection. Its next attempt comes after 10 ms of the clock.
    private func offline(
        _ next: ScriptedByteStream...,
        clock: ManualClock,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> (MQTTTransport, Provider<MQTTEntry>) {
        let lost = ScriptedByteStream.accepted(.skip(6), .reset)
        let refused = ScriptedByteStream(.expect(Packet.connect), .finish)
        let (transport, provider) = try scripted([lost, refused] + next, clock: clock, change)
        try await provider.request(.send("x"))
        try await waitUntil {
            "\(transport.states.current)".hasPrefix("waiting") && refused.isComplete
                // The timer of the next attempt is set after the state.
                && clock.timerCount == 1
        }
        return (transport, provider)
    }

    /// Starts the sends in order: each begins when the one before it waits, or when a full queue has dropped one.
    private func send(
        _ texts: [String],
        qos: QoS = .atLeastOnce,
        _ provider: Provider<MQTTEntry>,
        _ clock: ManualClock
    ) async throws -> [Task<Receipt, any Error>] {
        var tasks: [Task<Receipt, any Error>] = []
        let ended = LineLog()
        for text in texts {
            let (timers, before) = (clock.timerCount, ended.all.count)
            tasks.append(
                Task {
                    defer { ended.append(text) }
                    return try await provider.request(.send(text, qos: qos))
                }
            )
            // Each waiting send has a timer.
            try await waitUntil { clock.timerCount > timers || ended.all.count > before }
        }
        return tasks
    }

    @Test("Sends wait in the order of the calls and go out when the connection is back")
    func order() async throws {
        let clock = ManualClock()
        let next = ScriptedByteStream.accepted(
            .expect(publish(1, 0x61) + publish(2, 0x62) + publish(3, 0x63)),
            .reply([0x40, 2, 0, 1, 0x40, 2, 0, 2, 0x40, 2, 0, 3])
        )
        let (transport, provider) = try await offline(next, clock: clock)
        let sends = try await send(["a", "b", "c"], provider, clock)
        clock.advance(by: .milliseconds(10))
        for send in sends { _ = try await send.value }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("QoS 0 does not wait by default: it fails when the connection is not back in time")
    func atMostOnce() async throws {
        let clock = ManualClock()
        let next = ScriptedByteStream(.expect(Packet.connect))
        let (transport, provider) = try await offline(next, clock: clock)
        let sends = try await send(["a"], qos: .atMostOnce, provider, clock)
        clock.advance(by: .seconds(10))
        await expectError(.notConnected) { try await sends[0].value }
        // The attempt was made, and nothing else was sent.
        await untilQuiet()
        #expect(next.failures == [])
        #expect(next.isComplete)
        await transport.shutdown()
    }

    @Test("QoS 0 waits where that is asked for")
    func queuedAtMostOnce() async throws {
        let clock = ManualClock()
        let next = ScriptedByteStream.accepted(.expect([0x30, 0x04, 0, 1, 0x74, 0x61]))
        let (transport, provider) = try await offline(next, clock: clock) {
            $0.offline.includesUnacknowledged = true
        }
        let sends = try await send(["a"], qos: .atMostOnce, provider, clock)
        clock.advance(by: .milliseconds(10))
        _ = try await sends[0].value
        try await waitUntil { next.isComplete }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test(
        "A full queue: which send is dropped, and its error",
        arguments: [
            (OfflinePolicy.Overflow.fail, 2), (.dropNewest, 2), (.dropOldest, 0),
        ]
    )
    func overflow(policy: OfflinePolicy.Overflow, loser: Int) async throws {
        let clock = ManualClock()
        let left: [UInt8] = loser == 0 ? [0x62, 0x63] : [0x61, 0x62]
        let next = ScriptedByteStream.accepted(
            .expect(publish(1, left[0]) + publish(2, left[1])),
            .reply([0x40, 2, 0, 1, 0x40, 2, 0, 2])
        )
        let (transport, provider) = try await offline(next, clock: clock) {
            $0.offline.messageLimit = 2
            $0.offline.overflow = policy
        }
        var sends = try await send(["a", "b", "c"], provider, clock)
        let lost = sends.remove(at: loser)
        await expectError(.limitExceeded) { try await lost.value }
        clock.advance(by: .milliseconds(10))
        for send in sends { _ = try await send.value }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("The bytes of the queue are bounded, too")
    func byteLimit() async throws {
        let clock = ManualClock()
        let next = ScriptedByteStream.accepted(
            .expect([0x32, 0x07, 0, 1, 0x74, 0, 1, 0x61, 0x62] + publish(2, 0x65)),
            .reply([0x40, 2, 0, 1, 0x40, 2, 0, 2])
        )
        let (transport, provider) = try await offline(next, clock: clock) {
            $0.offline.byteLimit = 3
        }
        let sends = try await send(["ab", "cd", "e"], provider, clock)
        await expectError(.limitExceeded) { try await sends[1].value }
        clock.advance(by: .milliseconds(10))
        _ = try await (sends[0].value, sends[2].value)
        #expect(next.failures == [])
        #expect(next.isComplete)
        await transport.shutdown()
    }

    @Test("A send that waits at the shutdown fails, and is not sent")
    func shutDownWhileWaiting() async throws {
        let clock = ManualClock()
        let next = ScriptedByteStream()
        let (transport, provider) = try await offline(next, clock: clock)
        let sends = try await send(["a"], provider, clock)
        await transport.shutdown()
        await expectError(.shutDown) { try await sends[0].value }
        clock.advance(by: .seconds(60))
        await untilQuiet()
        // No byte has come.
        #expect(next.isComplete)
    }

    @Test("A send that has waited too long fails, and is not sent")
    func timeToLive() async throws {
        let clock = ManualClock()
        let silent = ScriptedByteStream(.expect(Packet.connect))
        let back = ScriptedByteStream.accepted(.expect(publish(1, 0x62)), .reply([0x40, 2, 0, 1]))
        let (transport, provider) = try await offline(silent, back, clock: clock) {
            $0.offline.timeToLive = .seconds(2)
        }
        let sends = try await send(["a"], provider, clock)
        clock.advance(by: .seconds(2))
        let error = await expectError(.timedOut) { try await sends[0].value }
        #expect(error?.topic == "t")
        // The attempt that gets no answer ends, and the next one finds nothing to send.
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) {
            "\(transport.states.current)" == "connected"
        }
        try await provider.request(.send("b", qos: .atLeastOnce))
        #expect(silent.failures == [] && back.failures == [])
        #expect(back.isComplete)
        await transport.shutdown()
    }

    @Test("Cancelled while it waits, a send is not sent")
    func cancelled() async throws {
        let clock = ManualClock()
        let next = ScriptedByteStream.accepted(.expect(publish(1, 0x62)), .reply([0x40, 2, 0, 1]))
        let (transport, provider) = try await offline(next, clock: clock)
        let sends = try await send(["a", "b"], provider, clock)
        sends[0].cancel()
        await #expect(throws: CancellationError.self) { try await sends[0].value }
        clock.advance(by: .milliseconds(10))
        _ = try await sends[1].value
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("What a store holds from before goes out first, and is forgotten when it is acknowledged")
    func leftovers() async throws {
        let store = InMemorySessionStore()
        for text in ["a", "b"] {
            _ = store.insert(
                StoredMessage(topic: "t", body: Array(text.utf8), qos: 1)
            )
        }
        let script = ScriptedByteStream.accepted(
            .expect(publish(1, 0x61) + publish(2, 0x62)),
            .expect(publish(3, 0x63)),
            .reply([0x40, 2, 0, 1, 0x40, 2, 0, 2, 0x40, 2, 0, 3])
        )
        let (transport, provider) = try scripted([script]) { $0.session.store = store }
        try await provider
            .request(.send("c", qos: .atLeastOnce))
        try await waitUntil { store.messages().isEmpty }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test(
        "A message is in the store while it is under way, and stays when the transport is shut down"
    )
    func stored() async throws {
        let store = InMemorySessionStore()
        let script = ScriptedByteStream.accepted(.skip(8))
        let (transport, provider) = try scripted([script]) { $0.session.store = store }
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { script.isComplete }
        #expect(store.messages().map(\.body) == [[0x78]])
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }
        #expect(store.messages().count == 1)
    }

    @Test("A store that refuses: nothing is sent")
    func refusedByStore() async throws {
        struct Full: SessionStore, Error {
            func insert(_ message: StoredMessage) throws -> StoredMessage.ID { throw self }
            func remove(_ id: StoredMessage.ID) {}
            func messages() -> [StoredMessage] { [] }
            func removeAll() {}
        }
        let (transport, provider) = try scripted([]) { $0.session.store = Full() }
        let error = await expectError(.limitExceeded) {
            try await provider.request(.send("x", qos: .atLeastOnce))
        }
        #expect(error?.underlying is Full)
        await transport.shutdown()
    }

    @Test(
        "Destroyed: the server is to forget the session, and so does the store",
        .outsideSimulation
    )
    func destroyed() async throws {
        let store = InMemorySessionStore()
        let script = ScriptedByteStream(
            .skip(32),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .skip(9),
            .expect(("E0 07 00 05 11 00000000" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script]) {
            $0.version = .v5
            $0.session.expiry = .seconds(60)
            $0.session.store = store
        }
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { !store.messages().isEmpty }
        try await waitUntil { "\(transport.states.current)".hasPrefix("connected") }
        await transport.destroy()
        await expectError(.shutDown) { try await sending.value }
        #expect(store.messages().isEmpty)
        #expect(script.failures == [])
    }

    @Test("Disconnecting waits for what is under way, and no longer than the limit")
    func drain() async throws {
        for isAnswered in [true, false] {
            let clock = ManualClock()
            let script = ScriptedByteStream.accepted(
                .skip(8),
                .skip(6),
                .reply(isAnswered ? [0x40, 2, 0, 1] : []),
                .expect([0xE0, 0])
            )
            let (transport, provider) = try scripted([script], clock: clock)
            try await provider.request(.connect)
            let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
            try await waitUntil { script.hasReached(4) }
            let isOver = Locked(false)
            let disconnecting = Task {
                defer { isOver.withLock { $0 = true } }
                return try await provider.request(.disconnect)
            }
            await untilQuiet()
            #expect(!isOver.withLock { $0 })
            // The server answers nothing before this message.
            try await provider.request(.send("y"))
            if !isAnswered {
                try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
                    isOver.withLock { $0 }
                }
                #expect(clock.now.offset >= .seconds(5))
            }
            _ = try await disconnecting.value
            if isAnswered {
                _ = try await sending.value
            } else {
                await expectError(.connectionLost) { try await sending.value }
            }
            #expect(script.failures == [])
            await transport.shutdown()
        }
    }
}
