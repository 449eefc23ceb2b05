import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSession
import WaybillTesting
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A session whose exchanges are stored: the second transport stands for the next process.
@Suite(
    "MQTT transport: a session over the end of the process",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct StoredSessionTests {
    private let store = InMemorySessionStore()

    private func client(
        _ script: ScriptedByteStream,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted([script]) {
            $0.session.cleanStart = false
            $0.session.store = store
            change(&$0)
        }
    }

    /// PUBLISH of QoS 2 with the number 1 in the store.
    private let publish = ("34 06 0001 74 8001 78" as Hex).bytes
    private let repeated = ("3C 06 0001 74 8001 78" as Hex).bytes
    private let pubrec = ("50 02 8001" as Hex).bytes
    private let pubrel = ("62 02 8001" as Hex).bytes
    private let pubcomp = ("70 02 8001" as Hex).bytes

    /// Sends a message of QoS 2, and ends when the script has.
    private func sendUntilTheEnd(_ script: ScriptedByteStream) async throws {
        let (transport, provider) = try client(script)
        let sending = Task { try await provider.request(.send("x", qos: .exactlyOnce)) }
        try await waitUntil { script.isComplete }
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }
        #expect(script.failures == [])
    }

    @Test("A message that was sent goes on with PUBLISH, its identifier and DUP")
    func sent() async throws {
        try await sendUntilTheEnd(.accepted(.new, .expect(publish)))
        #expect(store.messages().map(\.stage) == [.published])
        let next = ScriptedByteStream.accepted(
            .present,
            .expect(repeated),
            .reply(pubrec),
            .expect(pubrel),
            .reply(pubcomp)
        )
        let (transport, provider) = try client(next)
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("A message that the server has goes on with PUBREL")
    func released() async throws {
        try await sendUntilTheEnd(
            .accepted(.new, .expect(publish), .reply(pubrec), .expect(pubrel))
        )
        #expect(store.messages().map(\.stage) == [.released])
        let next = ScriptedByteStream.accepted(.present, .expect(pubrel), .reply(pubcomp))
        let (transport, provider) = try client(next)
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("A lost session: what the server may not have is sent anew, what it had is given up")
    func lost() async throws {
        try await sendUntilTheEnd(
            .accepted(.new, .expect(publish), .reply(pubrec), .expect(pubrel))
        )
        _ = store.insert(StoredMessage(topic: "t", body: [0x79], qos: 2))
        let next = ScriptedByteStream.accepted(
            .new,
            .expect(("34 06 0001 74 8002 79" as Hex).bytes),
            .reply(("50 02 8002" as Hex).bytes),
            .expect(("62 02 8002" as Hex).bytes)
        )
        let (transport, provider) = try client(next)
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { next.isComplete }
        #expect(store.messages().map(\.id) == [2])
        #expect(store.messages().map(\.stage) == [.released])
        #expect(await take(to: .sendFailed, &events).last?.topic == "t")
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("A cancelled call leaves its message in the store until the exchange has ended")
    func cancelled() async throws {
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(publish),
            .reply(pubrec),
            .expect(pubrel)
        )
        let (transport, provider) = try client(first)
        let sending = Task { try await provider.request(.send("x", qos: .exactlyOnce)) }
        try await waitUntil { first.isComplete }
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        #expect(store.messages().map(\.stage) == [.released])
        await transport.shutdown()
        #expect(store.messages().map(\.stage) == [.released])
        let next = ScriptedByteStream.accepted(.present, .expect(pubrel), .reply(pubcomp))
        let (later, again) = try client(next)
        try await again.connect()
        try await waitUntil { store.messages().isEmpty }
        #expect(next.failures == [])
        await later.shutdown()
    }

    @Test("A call without a connection, that is cancelled, leaves nothing if it was never sent")
    func cancelledUnsent() async throws {
        let first = ScriptedByteStream.accepted(.new, .expect(publish))
        let (transport, provider) = try client(first) { $0.limits.inFlight = 1 }
        let sending = Task { try await provider.request(.send("x", qos: .exactlyOnce)) }
        try await waitUntil { first.isComplete }
        let second = Task { try await provider.request(.send("y", qos: .exactlyOnce)) }
        try await waitUntil { store.messages().count == 2 }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(store.messages().map(\.id) == [1])
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }
    }

    @Test("An explicit disconnect ends the call; the exchange goes on with the next connection")
    func disconnected() async throws {
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(publish),
            .reply(pubrec),
            .expect(pubrel),
            .expect(("E0 00" as Hex).bytes)
        )
        let next = ScriptedByteStream.accepted(.present, .expect(pubrel), .reply(pubcomp))
        let (transport, provider) = try scripted([first, next]) {
            $0.session.cleanStart = false
            $0.session.store = store
            $0.timeouts.drain = .zero
        }
        let sending = Task { try await provider.request(.send("x", qos: .exactlyOnce)) }
        try await waitUntil { store.messages().first?.stage == .released }
        try await provider.disconnect()
        await #expect(throws: WaybillError.self) { try await sending.value }
        #expect(store.messages().map(\.stage) == [.released])
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("A message of QoS 2 that has expired ends its exchange and is not sent")
    func expired() async throws {
        let past = Date(timeIntervalSince1970: 1)
        _ = store.insert(StoredMessage(topic: "t", body: [0x78], qos: 2, expiry: past))
        _ = store.insert(StoredMessage(topic: "t", body: [0x79], qos: 1, expiry: past))
        let next = ScriptedByteStream.accepted(.present, .expect(pubrel), .reply(pubcomp))
        #expect(store.beginSession("c"))
        let (transport, provider) = try client(next)
        // They stay until the app can be told.
        #expect(store.messages().map(\.id) == [1, 2])
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty }
        #expect(next.failures == [])
        await transport.shutdown()
        var failures: [WaybillError.Code?] = []
        while let event = await events.next(), event.kind != .disconnected {
            if event.kind == .sendFailed { failures.append(event.error?.code) }
        }
        #expect(failures == [.timedOut, .timedOut])
    }

    /// A store in which messages wait until they may be stored.
    private final class SlowStore: SessionStore {
        let store = InMemorySessionStore()
        let isAsked = Promise<Void>()
        let mayStore = Promise<Void>()
        let isStored = Promise<Void>()

        func insert(_ message: StoredMessage) -> StoredMessage.ID { store.insert(message) }

        func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
            isAsked.resolve(.success(()))
            try await mayStore.value()
            defer { isStored.resolve(.success(())) }
            return store.insert(message)
        }

        func remove(_ id: StoredMessage.ID) { store.remove(id) }

        func messages() -> [StoredMessage] { store.messages() }

        func removeAll() { store.removeAll() }
    }

    @Test(
        "A message that is stored while the session is discarded does not stay",
        .outsideSimulation
    )
    func discarded() async throws {
        let slow = SlowStore()
        let script = ScriptedByteStream.accepted(.new, .expect(("E0 00" as Hex).bytes))
        let (transport, provider) = try client(script) { $0.session.store = slow }
        try await provider.connect()
        let sending = Task { try await provider.request(.send("x", qos: .exactlyOnce)) }
        try await slow.isAsked.value()
        await transport.destroy()
        slow.mayStore.resolve(.success(()))
        await expectError(.shutDown) { try await sending.value }
        try await slow.isStored.value()
        try await waitUntil { slow.messages().isEmpty }
        #expect(script.failures == [])
        #expect(script.isComplete)
        await transport.shutdown()
    }

    @Test(
        "A stored message that the server refuses is removed, and reported",
        arguments: [true, false]
    )
    func refused(keepsExchanges: Bool) async throws {
        for (text, qos) in [("x", 1), ("y", 2)] {
            _ = store.insert(StoredMessage(topic: "t", body: Array(text.utf8), qos: qos))
        }
        let first = keepsExchanges ? "3A" : "32"
        let second = keepsExchanges ? "3C" : "34"
        let half = keepsExchanges ? "80" : "00"
        func hex(_ text: String) -> [UInt8] { Hex(stringLiteral: text).bytes }
        let script = ScriptedByteStream(
            .skip(32),
            .reply(hex(keepsExchanges ? "20 03 01 00 00" : "20 03 00 00 00")),
            .expect(
                hex("\(first) 07 0001 74 \(half)01 00 78")
                    + hex("\(second) 07 0001 74 \(half)02 00 79")
            ),
            .reply(hex("40 04 \(half)01 97 00 50 04 \(half)02 87 00"))
        )
        let (transport, provider) = try scripted([script], version: .v5) {
            $0.session.expiry = .seconds(60)
            $0.session.cleanStart = !keepsExchanges
            $0.session.store = store
        }
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty }
        var failures: [TransportEvent] = []
        for _ in 0..<2 { failures += await take(to: .sendFailed, &events).suffix(1) }
        #expect(failures.map { $0.error?.code } == [.rejected, .unauthorized])
        #expect(failures.allSatisfy { $0.topic == "t" && $0.byteCount == 1 })
        #expect(failures.first?.error?.peerReason?.hasPrefix("Quota exceeded") == true)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    /// A store that cannot be read.
    private struct Unreadable: SessionStore, Error {
        var hasSession = true
        var isOfFilters = false
        func insert(_ message: StoredMessage) throws -> StoredMessage.ID { throw self }
        func remove(_ id: StoredMessage.ID) {}
        func messages() throws -> [StoredMessage] {
            guard isOfFilters else { throw self }
            return []
        }
        func removeAll() {}
        func beginSession(_ name: String) throws -> Bool {
            guard hasSession else { throw self }
            return !isOfFilters
        }
        func receivedIdentifiers() throws -> [UInt16] { throw self }
        func pendingUnsubscribes() throws -> [String] { throw self }
    }

    @Test(
        "A store that cannot be read is no empty store: no transport is made",
        arguments: [(true, false), (false, false), (true, true)],
        [true, false]
    )
    func unreadable(_ kind: (hasSession: Bool, isOfFilters: Bool), cleanStart: Bool) throws {
        let store = Unreadable(hasSession: kind.hasSession, isOfFilters: kind.isOfFilters)
        let error = #expect(throws: WaybillError.self) {
            try scripted([], version: .v5) {
                $0.session.store = store
                $0.session.cleanStart = cleanStart
                $0.session.expiry = .seconds(60)
            }
        }
        #expect(error?.code == .limitExceeded)
        #expect(error?.underlying is Unreadable)
    }

    @Test("Any expiry that a store returns")
    func expiry() async throws {
        for seconds in [Double.infinity, -.infinity, .nan, 1e300, 1e17, -1e17] {
            var message = StoredMessage(topic: "t", body: [0x78], qos: 1)
            message.expiry = Date(timeIntervalSince1970: seconds)
            _ = store.insert(message)
        }
        let script = ScriptedByteStream(.skip(21), .reply(("20 03 00 00 00" as Hex).bytes))
        let (transport, provider) = try scripted([script], version: .v5) {
            bare(&$0)
            $0.session.expiry = .seconds(60)
            $0.session.cleanStart = false
            $0.session.store = store
        }
        try await provider.connect()
        // Three are over, and dropped.
        #expect(store.messages().count == 3)
        await transport.shutdown()
    }

    @Test("A server that grants no session: a stored message is sent over the next connection, too")
    func notGranted() async throws {
        _ = store.insert(StoredMessage(topic: "t", body: [0x78], qos: 1))
        let send = ("32 07 0001 74 8001 00 78" as Hex).bytes
        let first = ScriptedByteStream(
            .skip(21),
            .reply(("20 08 00 00 05 11 00000000" as Hex).bytes),
            .expect(send),
            .expect(("E0 00" as Hex).bytes)
        )
        let next = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(send),
            .reply(("40 02 8001" as Hex).bytes)
        )
        let (transport, provider) = try scripted([first, next], version: .v5) {
            bare(&$0)
            $0.session.cleanStart = false
            $0.session.expiry = .seconds(60)
            $0.timeouts.drain = .zero
            $0.session.store = store
        }
        try await provider.connect()
        try await waitUntil { first.hasReached(3) }
        try await provider.disconnect()
        #expect(store.messages().count == 1)
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty }
        #expect(first.failures == [] && next.failures == [])
        await transport.shutdown()
    }

    @Test("A client with another identifier sends the messages as new ones")
    func otherClient() async throws {
        try await sendUntilTheEnd(
            .accepted(.new, .expect(publish), .reply(pubrec), .expect(pubrel))
        )
        #expect(store.beginSession("other"))
        #expect(store.messages().map(\.stage) == [.published])
    }

    @Test("A received message of QoS 2 that was taken is not delivered again")
    func received() async throws {
        let message = ("34 06 0001 74 0007 61" as Hex).bytes
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(("82 06 0001 0001 74 02" as Hex).bytes),
            .reply(("90 03 0001 02" as Hex).bytes + message),
            .expect(("50 02 0007" as Hex).bytes)
        )
        let (transport, provider) = try client(first)
        var messages = try await provider.messages(.subscribe(qos: .exactlyOnce))
            .makeAsyncIterator()
        #expect(try await messages.next()?.body.text == "a")
        try await waitUntil { first.isComplete }
        #expect(store.receivedIdentifiers() == [7])
        await transport.shutdown()

        let next = ScriptedByteStream.accepted(
            .present,
            .reply(("3C 06 0001 74 0007 61" as Hex).bytes),
            .expect(("50 02 0007" as Hex).bytes),
            .reply(("62 02 0007" as Hex).bytes),
            .expect(("70 02 0007" as Hex).bytes)
        )
        let (later, again) = try client(next)
        let all = try again.allMessages()
        try await again.connect()
        try await waitUntil { next.isComplete }
        #expect(store.receivedIdentifiers() == [])
        #expect(next.failures == [])
        await later.shutdown()
        for try await message in all { Issue.record("\(message.topic) came again") }
    }
}
