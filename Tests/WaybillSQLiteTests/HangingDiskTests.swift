import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSQLite
import WaybillSession
import WaybillTesting
import WireTestSupport

/// A transport whose store is a file on a disk that hangs.
@Suite("A transport on a disk that hangs", .timeLimit(.minutes(30))) struct HangingDiskTests {
    private let clock = ManualClock()

    private func client(
        _ store: SQLiteSessionStore,
        _ script: ScriptedByteStream...
    ) throws -> (MQTTTransport, Provider<CommandEntry>) {
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.clientIdentifier = "c"
        configuration.session.cleanStart = false
        configuration.session.store = store
        let transport = try MQTTTransport(
            scripts: script,
            clock: clock,
            configuration: configuration
        )
        return (transport, Provider(transport: transport))
    }

    private func send(_ text: String) -> CommandEntry {
        .command(.send(qos: .atLeastOnce), topic: "t", body: .bytes(Array(text.utf8)))
    }

    @Test("All sends end at their time limits; the disk goes on, and so do later sends")
    func ends() async throws {
        let temporary = try TemporaryStore()
        let gate = Gate()
        let store = try SQLiteSessionStore(path: temporary.path, options: .init(), now: gate.now)
        let script = ScriptedByteStream(
            .skip(15),
            .reply([0x20, 2, 0, 0]),
            // The number of the message is 202: the others had theirs, which never come again.
            .expect(("32 09 0001 74 80CA 6C617374" as Hex).bytes),
            .reply([0x40, 2, 0x80, 0xCA])
        )
        let (transport, provider) = try client(store, script)
        gate.close()
        let first = Task { try await provider.request(send("0")) }
        await gate.waitUntilReached()
        let others = (1...200).map { number in
            Task { try await provider.request(send("\(number)")) }
        }
        try await waitUntil { store.waiting.messages == 200 }
        clock.advance(by: .seconds(30))
        for task in [first] + others { await expectError(.timedOut) { try await task.value } }
        // Those that no transaction has are forgotten.
        try await waitUntil { store.waiting.messages == 0 }
        let last = Task { try await provider.request(send("last")) }
        try await waitUntil { store.waiting.messages == 1 }
        gate.open()
        _ = try await last.value
        #expect(script.failures == [])
        try await store.flush()
        #expect(try store.messages().isEmpty && store.byteCount == 0)
        await transport.shutdown()
        store.close()
    }

    @Test("A shutdown ends; what the disk takes after it is sent by the next transport")
    func shutDown() async throws {
        let temporary = try TemporaryStore()
        let gate = Gate()
        let store = try SQLiteSessionStore(path: temporary.path, options: .init(), now: gate.now)
        var (transport, provider) = try client(store)
        gate.close()
        let first = Task { [provider] in try await provider.request(send("a")) }
        await gate.waitUntilReached()
        let second = Task { [provider] in try await provider.request(send("b")) }
        try await waitUntil { store.waiting.messages == 1 }
        let isOver = Promise<Void>()
        isOver.resolve { [transport] in await transport.shutdown() }
        // It waits for the disk, as long as it may take to close.
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isOver.result != nil }
        await expectError(.shutDown) { try await first.value }
        await expectError(.shutDown) { try await second.value }
        gate.open()
        try await store.flush()
        let script = ScriptedByteStream(
            .skip(15),
            .reply([0x20, 2, 0, 0]),
            .expect(("32 06 0001 74 8001 61 32 06 0001 74 8002 62" as Hex).bytes),
            .reply(("40 02 8001 40 02 8002" as Hex).bytes)
        )
        (transport, provider) = try client(store, script)
        try await provider.request(.connect)
        try await waitUntil { (try? store.messages().isEmpty) == true }
        #expect(script.failures == [])
        await transport.shutdown()
        store.close()
    }
}
