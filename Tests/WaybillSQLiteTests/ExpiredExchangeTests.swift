import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSQLite
import WaybillTesting
import WireCore
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Messages of QoS 2 on a disk that are too old for the next process.
@Suite("A transport with expired messages on a disk", .timeLimit(.minutes(30)))
struct ExpiredExchangeTests {
    @Test("Their exchanges end with PUBREL, and they are not sent")
    func ends() async throws {
        let temporary = try TemporaryStore()
        let past = Date() - 200
        let now = Locked<Date?>(past)
        let options = SQLiteSessionStore.Options(maximumAge: .seconds(100))
        let store = try SQLiteSessionStore(path: temporary.path, options: options) {
            now.withLock { $0 } ?? Date()
        }
        #expect(try store.beginSession("c"))
        for expiry in [nil, past + 10] {
            _ = try store.insert(StoredMessage(topic: "t", body: [], qos: 2, expiry: expiry))
        }
        now.withLock { $0 = nil }
        let script = ScriptedByteStream(
            .skip(21),
            .reply([0x20, 3, 1, 0, 0]),
            .expect(("62 02 8001 62 02 8002" as Hex).bytes),
            .reply(("70 02 8001 70 02 8002" as Hex).bytes)
        )
        var configuration = MQTTConfiguration(version: .v5)
        configuration.clientIdentifier = "c"
        configuration.session.cleanStart = false
        configuration.session.expiry = .seconds(60)
        configuration.limits.receiveMaximum = nil
        configuration.limits.announcesPacketSize = false
        configuration.aliases.accepted = 0
        configuration.session.store = store
        let transport = try MQTTTransport(
            scripts: [script],
            clock: ManualClock(),
            configuration: configuration
        )
        var events = transport.events.makeAsyncIterator()
        try await Provider<CommandEntry>(transport: transport).connect()
        try await waitUntil { script.isComplete || script.failures != [] }
        try #require(script.failures == [])
        try await waitUntil { store.byteCount == 0 }
        await transport.shutdown()
        var failures: [WaybillError.Code?] = []
        while let event = await events.next(), event.kind != .disconnected {
            if event.kind == .sendFailed { failures.append(event.error?.code) }
        }
        #expect(failures == [.timedOut, .timedOut])
        store.close()
    }
}
