import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSession
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("MQTT transport: what is written at the end", .inSimulation, .timeLimit(.minutes(30)))
struct StoreFlushTests {
    private let clock = ManualClock()
    private let hints = ConnectionHints()

    private static let publish = ("32 06 0001 74 0001 78" as Hex).bytes
    private static let puback = ("40 02 0001" as Hex).bytes
    private static let disconnect = ("E0 00" as Hex).bytes

    enum Ending: CaseIterable {
        case disconnect, shutdown, withConnection, run, pause, hint
    }

    private func client(
        _ script: ScriptedByteStream,
        _ store: LazyStore,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted([script], clock: clock) {
            $0.session.store = store
            $0.hints = [hints]
            change(&$0)
        }
    }

    /// Sends, and ends in one of the ways.
    private func sendAndEnd(
        _ ending: Ending,
        _ transport: MQTTTransport,
        _ provider: Provider<MQTTEntry>,
        isOver: @escaping @Sendable () -> Bool
    ) async throws {
        let send = MQTTEntry.send("x", qos: .atLeastOnce)
        switch ending {
        case .withConnection:
            try await provider.withConnection { _ = try await provider.request(send) }
        case .run:
            let running = Task { try await provider.run() }
            try await waitUntil { provider.isConnected }
            try await provider.request(send)
            running.cancel()
            try await running.value
        case .disconnect:
            try await provider.request(send)
            try await provider.disconnect()
        case .shutdown:
            try await provider.request(send)
            await transport.shutdown()
        case .pause:
            try await provider.request(send)
            await provider.pause()
        case .hint:
            try await provider.request(send)
            hints.send(.pause)
            try await waitUntil(isOver)
        }
    }

    @Test(
        "An acknowledged message is gone from the store after each end",
        arguments: Ending.allCases
    )
    func ends(_ ending: Ending) async throws {
        let script = ScriptedByteStream.accepted(
            .expect(Self.publish),
            .reply(Self.puback),
            .expect(Self.disconnect)
        )
        let wasClosed = Locked<[Bool]>([])
        // The socket is closed first: DISCONNECT has arrived.
        let store = LazyStore { wasClosed.withLock { $0.append(script.isComplete) } }
        let (transport, provider) = try client(script, store)
        try await sendAndEnd(ending, transport, provider) { store.flushCount > 0 }
        #expect(store.messages() == [])
        #expect(wasClosed.withLock { $0 } == [true])
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test(
        "A store that hangs: the end waits for the close timeout, and reports what is not written"
    )
    func hangs() async throws {
        let script = ScriptedByteStream.accepted(
            .expect(Self.publish),
            .reply(Self.puback),
            .expect(Self.disconnect)
        )
        let store = LazyStore(hangs: true)
        let (transport, provider) = try client(script, store) { $0.timeouts.close = .seconds(7) }
        var events = transport.events.makeAsyncIterator()
        try await provider.request(.send("x", qos: .atLeastOnce))
        let isOver = Promise<Void>()
        isOver.resolve { try await provider.disconnect() }
        await untilQuiet()
        clock.advance(by: .seconds(6))
        await untilQuiet()
        #expect(isOver.result == nil)
        clock.advance(by: .seconds(1))
        try await isOver.value()
        let event = await take(to: .storeIncomplete, &events).last
        #expect(event?.count == 1)
        #expect(event?.error?.code == .timedOut)
        #expect(store.messages().count == 1)
        store.write()
        await transport.shutdown()
    }

    @Test("A second shutdown waits for the end of the first one")
    func secondShutdown() async throws {
        let store = LazyStore(hangs: true)
        let script = ScriptedByteStream.accepted(
            .expect(Self.publish),
            .reply(Self.puback),
            .expect(Self.disconnect),
            .finish
        )
        let (transport, provider) = try client(script, store)
        try await provider.request(.send("x", qos: .atLeastOnce))
        let first = Promise<Void>()
        first.resolve { await transport.shutdown() }
        await untilQuiet()
        let second = Promise<Void>()
        second.resolve { await transport.shutdown() }
        await untilQuiet()
        #expect(first.result == nil && second.result == nil)
        store.write()
        try await first.value()
        try await second.value()
        #expect(store.unwrittenCount == 0)
        await transport.shutdown()
    }

    @Test("A shutdown after the end of the connection waits for the store, too")
    func shutDownLater() async throws {
        let script = ScriptedByteStream.accepted(
            .expect(Self.publish),
            .reply(Self.puback),
            .finish
        )
        let store = LazyStore()
        let (transport, provider) = try client(script, store) { $0.reconnection = .never }
        try await provider.request(.send("x", qos: .atLeastOnce))
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected") }
        #expect(store.messages().count == 1)
        await transport.shutdown()
        #expect(store.messages() == [])
        // A second one has nothing to wait for.
        let count = store.flushCount
        await transport.shutdown()
        #expect(store.flushCount == count)
    }

    @Test("The removal of an acknowledged message waits for the next flush")
    func order() async throws {
        let script = ScriptedByteStream.accepted(.expect(Self.publish), .reply(Self.puback))
        let store = LazyStore()
        let (transport, provider) = try client(script, store)
        let (sent, continuation) = AsyncStream.makeStream(of: Int.self)
        let handle = provider.enqueue(.send("x", qos: .atLeastOnce))
        Task {
            _ = try await handle.receipt
            continuation.yield(store.unwrittenCount)
            continuation.finish()
        }
        #expect(await sent.first { _ in true } == 1)
        await transport.shutdown()
    }

    // MARK: Sends that fail

    /// Sends where no connection can be made, until the removal is to be written.
    private func failing(_ store: LazyStore) async throws -> (MQTTTransport, Promise<Void>) {
        let (transport, provider) = try scripted([], clock: clock) {
            $0.session.store = store
            $0.offline.waitsForConnection = false
        }
        let isOver = Promise<Void>()
        isOver.resolve { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { store.flushCount == 1 }
        await untilQuiet()
        return (transport, isOver)
    }

    @Test("A send that fails is told so after the removal is written")
    func failed() async throws {
        let store = LazyStore(hangs: true)
        let (transport, isOver) = try await failing(store)
        #expect(isOver.result == nil)
        #expect(store.messages().count == 1)
        store.write()
        let error = await expectError(.connectionRefused) { try await isOver.value() }
        #expect(error?.mayHaveArrived == false)
        #expect(store.messages() == [])
        await transport.shutdown()
    }

    @Test(
        "A removal that is not written within a second: the error says that the message may arrive"
    )
    func failedAndStored() async throws {
        let store = LazyStore(hangs: true)
        let (transport, isOver) = try await failing(store)
        clock.advance(by: .milliseconds(999))
        await untilQuiet()
        #expect(isOver.result == nil)
        clock.advance(by: .milliseconds(1))
        let error = await expectError(.connectionRefused) { try await isOver.value() }
        #expect(error?.mayHaveArrived == true)
        store.write()
        await transport.shutdown()
    }

    @Test("A shutdown leaves the message for the next transport, and its error says so")
    func shutDown() async throws {
        let store = LazyStore()
        let script = ScriptedByteStream.accepted(
            .expect(Self.publish),
            .expect(Self.disconnect)
        )
        let (transport, provider) = try client(script, store)
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { script.hasReached(4) }
        await transport.shutdown()
        let error = await expectError(.shutDown) { try await sending.value }
        #expect(error?.mayHaveArrived == true)
        #expect(store.messages().count == 1)
    }

    @Test("What an error says of the message")
    func mayHaveArrived() {
        let unknown: [WaybillError.Code] = [
            .connectionLost, .timedOut, .protocolViolation, .cancelled,
        ]
        for code in unknown { #expect(WaybillError(code, "").mayHaveArrived) }
        let known: [WaybillError.Code] = [
            .notConnected, .connectionRefused, .outOfDescriptors, .unauthorized, .rejected,
            .unsupported, .invalidEntry, .limitExceeded, .shutDown, .tls,
        ]
        for code in known { #expect(!WaybillError(code, "").mayHaveArrived) }
        var error = WaybillError(.timedOut, "")
        error.mayHaveArrived = false
        #expect(!error.mayHaveArrived)
    }

    @Test("A send that has waited for a lost connection was never sent, and its error says so")
    func offline() async throws {
        let script = ScriptedByteStream.accepted(.expect(Self.publish), .finish)
        let (transport, provider) = try client(script, LazyStore()) {
            $0.session.cleanStart = true
            $0.offline.waitsForConnection = false
        }
        let first = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { !provider.isConnected && script.isComplete }
        let second = Task { try await provider.request(.send("y", qos: .atLeastOnce)) }
        await untilQuiet()
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) {
            clock.now >= ManualClock.Instant(offset: .seconds(60))
        }
        let lost = await expectError(.timedOut) { try await first.value }
        #expect(lost?.mayHaveArrived == true)
        let unsent = await expectError(.timedOut) { try await second.value }
        #expect(unsent?.mayHaveArrived == false)
        await transport.shutdown()
    }
}
