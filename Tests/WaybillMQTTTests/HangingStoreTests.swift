import Dispatch
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSession
import WaybillTesting
import WireCore
import WireTestSupport

/// A store on a disk that hangs: it answers when the test says so, and a cancellation does not change that.
private final class HangingStore: SessionStore {
    let store = InMemorySessionStore()
    private let asked = Locked<[(text: String, mayAnswer: Promise<Void>)]>([])
    private let removed = Locked<[StoredMessage.ID]>([])
    private let cancelled = Locked<[String]>([])
    /// Whether stages and identifiers are never stored, and the removal of everything waits for ``mayEmpty``.
    let hangs: Bool
    let mayEmpty = DispatchSemaphore(value: 0)

    /// So that a send without a connection fails.
    let isOnDisk = false

    init(hangs: Bool = false) { self.hangs = hangs }

    /// The bodies whose tasks were cancelled, in order.
    var cancellations: [String] { cancelled.withLock { $0 } }

    /// The numbers that were removed, in order.
    var removals: [StoredMessage.ID] { removed.withLock { $0 } }

    /// The bodies that the store was asked for, in order.
    var texts: [String] { asked.withLock { $0.map(\.text) } }

    func answer(_ index: Int, _ result: Result<Void, any Error> = .success(())) {
        asked.withLock { $0[index].mayAnswer }.resolve(result)
    }

    func insert(_ message: StoredMessage) -> StoredMessage.ID { store.insert(message) }

    func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
        let mayAnswer = Promise<Void>()
        let text = String(decoding: message.body, as: UTF8.self)
        await withTaskCancellationHandler {
            asked.withLock { $0.append((text, mayAnswer)) }
            await mayAnswer.waitUntilResolved()
        } onCancel: {
            cancelled.withLock { $0.append(text) }
        }
        try mayAnswer.result?.get()
        return store.insert(message)
    }

    func remove(_ id: StoredMessage.ID) {
        store.remove(id)
        removed.withLock { $0.append(id) }
    }

    func messages() -> [StoredMessage] { store.messages() }

    func removeAll() {
        if hangs { mayEmpty.wait() }
        store.removeAll()
    }

    func beginSession(_ name: String) -> Bool { store.beginSession(name) }

    func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    ) {
        if !hangs { store.setStage(stage, of: id, done: done) }
    }

    func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        if !hangs { store.insertReceived(identifier, done: done) }
    }
}

@Suite("MQTT transport: a store that does not answer", .inSimulation, .timeLimit(.minutes(30)))
struct HangingStoreTests {
    private let store = HangingStore()
    private let clock = ManualClock()

    private func client(
        _ script: ScriptedByteStream...,
        change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted(script, clock: clock) {
            $0.session.cleanStart = false
            $0.session.store = store
            change(&$0)
        }
    }

    /// PUBLISH of QoS 1 with a number in the store and a body.
    private func publish(_ number: UInt8, _ text: String) -> [UInt8] {
        [0x32, 6, 0, 1, 0x74, 0x80, number] + Array(text.utf8)
    }

    private func send(_ text: String, _ command: EntryCommand = .send(qos: .atLeastOnce))
        -> MQTTEntry
    {
        .command(command, topic: "t", body: .bytes(Array(text.utf8)))
    }

    /// The end of a send.
    private final class Sending: Sendable {
        let isOver = Promise<Void>()
        let task: Task<Void, any Error>

        init(_ provider: Provider<MQTTEntry>, _ entry: MQTTEntry) {
            task = Task { [isOver] in
                defer { isOver.resolve(.success(())) }
                try await provider.request(entry)
            }
        }
    }

    struct Limit: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let command: EntryCommand
        let limit: Duration
        var version = MQTTConfiguration.Version.v5
    }

    static let limits = [
        Limit(
            testDescription: "of the send",
            command: .send(qos: .atLeastOnce, .timeout(.seconds(7))),
            limit: .seconds(7)
        ),
        Limit(
            testDescription: "of the transport",
            command: .send(qos: .exactlyOnce),
            limit: .seconds(30)
        ),
        Limit(
            testDescription: "the expiry of the message",
            command: .send(
                qos: .atLeastOnce,
                .timeout(.seconds(7)),
                .expiry(.seconds(3))
            ),
            limit: .seconds(3)
        ),
    ]

    @Test("A send ends at its time limit, and says what is not known", arguments: limits)
    func never(_ row: Limit) async throws {
        // Without a script: nothing is connected.
        let (transport, provider) = try client { $0.version = row.version }
        let sending = Sending(provider, send("a", row.command))
        try await waitUntil { store.texts == ["a"] }
        clock.advance(by: row.limit - .milliseconds(1))
        await untilQuiet()
        #expect(sending.isOver.result == nil)
        clock.advance(by: .milliseconds(1))
        let error = await expectError(.timedOut) { try await sending.task.value }
        #expect(error?.message.contains("it is not known whether the message was stored") == true)
        #expect(error?.topic == "t" && error?.command == "send")
        await transport.shutdown()
    }

    @Test("A message that is stored after its call has ended is removed, and never sent")
    func late() async throws {
        let script = ScriptedByteStream.accepted(
            .new,
            .expect(publish(2, "b")),
            .reply([0x40, 2, 0x80, 2])
        )
        let (transport, provider) = try client(script)
        let first = Sending(provider, send("a"))
        try await waitUntil { store.texts == ["a"] }
        clock.advance(by: .seconds(30))
        await expectError(.timedOut) { try await first.task.value }
        #expect(store.cancellations == ["a"])
        store.answer(0)
        let second = Sending(provider, send("b"))
        try await waitUntil { store.texts == ["a", "b"] && store.removals == [1] }
        store.answer(1)
        try await second.task.value
        #expect(script.failures == [] && script.isComplete)
        #expect(store.messages().isEmpty)
        await transport.shutdown()
    }

    @Test("A store that refuses late, and one that refuses in time")
    func refusal() async throws {
        struct Full: Error {}
        let (transport, provider) = try client()
        let first = Sending(provider, send("a"))
        try await waitUntil { store.texts == ["a"] }
        clock.advance(by: .seconds(30))
        await expectError(.timedOut) { try await first.task.value }
        store.answer(0, .failure(Full()))
        let second = Sending(provider, send("b"))
        try await waitUntil { store.texts == ["a", "b"] }
        store.answer(1, .failure(Full()))
        let error = await expectError(.limitExceeded) { try await second.task.value }
        #expect(error?.underlying is Full)
        await transport.shutdown()
    }

    @Test("Sends in the order of the calls: the next one waits until the first has ended")
    func order() async throws {
        let script = ScriptedByteStream.accepted(
            .new,
            .expect(publish(1, "b")),
            .reply([0x40, 2, 0x80, 1]),
            .expect(publish(2, "c")),
            .reply([0x40, 2, 0x80, 2])
        )
        let (transport, provider) = try client(script)
        let handles = ["a", "b", "c"].map { provider.enqueue(send($0)) }
        try await waitUntil { store.texts == ["a"] }
        await untilQuiet()
        #expect(store.texts == ["a"])
        clock.advance(by: .seconds(30))
        await expectError(.timedOut) { try await handles[0].receipt }
        for index in 1...2 {
            try await waitUntil { store.texts.count == index + 1 }
            store.answer(index)
            _ = try await handles[index].receipt
        }
        #expect(store.texts == ["a", "b", "c"])
        #expect(script.failures == [] && script.isComplete)
        await transport.shutdown()
    }

    @Test("What a store has not answered for is bounded, by number and by bytes")
    func bounds() async throws {
        let large = String(repeating: "a", count: 4 << 20)
        let rows: [(byteLimit: Int?, texts: [String])] = [
            (nil, [large, large]),
            // The offline queue may have more.
            (16 << 20, [large, large, large, large]),
            (nil, (0..<8_192).map { "\($0)" }),
        ]
        for (byteLimit, texts) in rows {
            let store = HangingStore()
            let (transport, provider) = try client {
                $0.session.store = store
                if let byteLimit { $0.offline.byteLimit = byteLimit }
            }
            var sendings: [Sending] = []
            for index in texts.indices {
                sendings.append(Sending(provider, send(texts[index])))
                // A call that was cancelled counts as one that has timed out.
                guard index == 1 else { continue }
                try await waitUntil { store.texts.count == 2 }
                sendings[1].task.cancel()
                await #expect(throws: CancellationError.self) { try await sendings[1].task.value }
            }
            try await waitUntil { store.texts.count == texts.count }
            clock.advance(by: .seconds(30))
            for sending in sendings where sending !== sendings[1] {
                await expectError(.timedOut) { try await sending.task.value }
            }
            // Refused at once, and the store is not asked.
            let error = await expectError(.limitExceeded) {
                try await provider.request(send("x"))
            }
            #expect(error?.message.contains("nothing was stored or sent") == true)
            #expect(store.texts.count == texts.count)
            // The late answer makes room.
            store.answer(0)
            try await waitUntil { store.removals == [1] }
            let next = Sending(provider, send("y"))
            try await waitUntil { store.texts.last == "y" }
            next.task.cancel()
            await transport.shutdown()
        }
    }

    @Test(
        "One late message, however large, refuses no other, whatever the offline queue allows",
        arguments: [(nil, 20 << 20), (1, 100)] as [(Int?, Int)]
    )
    func largeAndLate(_ limit: Int?, byteCount: Int) async throws {
        let script = ScriptedByteStream.accepted(
            .new,
            .expect(publish(1, "b")),
            .reply([0x40, 2, 0x80, 1])
        )
        let (transport, provider) = try client(script) {
            guard let limit else { return }
            $0.offline.messageLimit = limit
            $0.offline.byteLimit = limit
        }
        let large = Sending(provider, send(String(repeating: "a", count: byteCount)))
        try await waitUntil { store.texts.count == 1 }
        large.task.cancel()
        await #expect(throws: CancellationError.self) { try await large.task.value }
        let next = Sending(provider, send("b"))
        try await waitUntil { store.texts.last == "b" || next.isOver.result != nil }
        if store.texts.count == 2 { store.answer(1) }
        try await next.task.value
        #expect(script.failures == [] && script.isComplete)
        await transport.shutdown()
    }

    @Test("All that a stored message has counts against the limits")
    func size() {
        let message = StoredMessage(
            topic: "\u{E9}",
            body: [1, 2, 3],
            contentType: "four",
            headers: [["k", "va"], ["lo", "ng"]],
            qos: 1,
            options: [StoredOption("six", .bytes([1, 2, 3, 4, 5, 6]))]
        )
        // The format, the name and the value with their lengths, and the kind.
        #expect(message.byteCount == 128 + 2 + 3 + 4 + 3 + 4 + 1 + 4 + 1 + 7)
        #expect(StoredMessage(topic: "", body: [], qos: 1).byteCount == 128)
    }

    @Test("A cancellation ends the wait at once, and a message that is stored later is removed")
    func cancelled() async throws {
        let (transport, provider) = try client()
        let sending = Sending(provider, send("a"))
        try await waitUntil { store.texts == ["a"] }
        sending.task.cancel()
        await #expect(throws: CancellationError.self) { try await sending.task.value }
        #expect(store.cancellations == ["a"])
        store.answer(0)
        try await waitUntil { store.removals == [1] }
        #expect(store.messages().isEmpty)
        await transport.shutdown()
    }

    @Test("A task that is cancelled before stores nothing")
    func cancelledBefore() async throws {
        let (transport, provider) = try client()
        let isCancelled = Promise<Void>()
        let task = Task {
            await isCancelled.waitUntilResolved()
            _ = try await transport.perform(
                Request(
                    topic: "t",
                    command: .send(qos: .atLeastOnce),
                    body: Payload([0x61])
                )
            )
        }
        task.cancel()
        isCancelled.resolve(.success(()))
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(store.texts.isEmpty)
        await transport.shutdown()
        _ = provider
    }

    /// Sends after the end of the transport, whose store was asked for `a` alone.
    @discardableResult
    private func sendAfterTheEnd(
        _ provider: Provider<MQTTEntry>,
        _ store: HangingStore
    ) async throws -> WaybillError? {
        let sending = Sending(provider, send("b"))
        try await waitUntil { sending.isOver.result != nil || store.texts.count > 1 }
        #expect(store.texts == ["a"])
        sending.task.cancel()
        return await expectError(.shutDown) { try await sending.task.value }
    }

    @Test("A shutdown ends the wait at once, and a message that is stored later stays")
    func shutDown() async throws {
        let (transport, provider) = try client()
        let sending = Sending(provider, send("a"))
        try await waitUntil { store.texts == ["a"] }
        await transport.shutdown()
        let error = await expectError(.shutDown) { try await sending.task.value }
        #expect(error?.message.contains("it is not known whether the message was stored") == true)
        // The store is not asked to forget it.
        #expect(store.cancellations == [])
        store.answer(0)
        try await waitUntil { store.messages().count == 1 }
        // A send after the shutdown fails at once, and the store is not asked.
        let refused = try await sendAfterTheEnd(provider, store)
        #expect(refused?.message.contains("not known") == false && refused?.topic == "t")
        #expect(store.messages().map(\.body) == [[0x61]])
    }

    @Test("A disconnect ends; a message that is stored after it is not sent, and removed")
    func disconnected() async throws {
        let script = ScriptedByteStream.accepted(.new, .expect(("E0 00" as Hex).bytes))
        let (transport, provider) = try client(script)
        try await provider.connect()
        let sending = Sending(provider, send("a"))
        try await waitUntil { store.texts == ["a"] }
        try await provider.disconnect()
        #expect(sending.isOver.result == nil)
        store.answer(0)
        await expectError(.notConnected) { try await sending.task.value }
        #expect(script.failures == [] && script.isComplete)
        #expect(store.messages().isEmpty)
        await transport.shutdown()
    }

    @Test("A stage that is never stored: the call, a disconnect and a shutdown end")
    func stage() async throws {
        let store = HangingStore(hangs: true)
        let script = ScriptedByteStream.accepted(
            .new,
            .expect(("34 06 0001 74 8001 61" as Hex).bytes),
            .reply(("50 02 8001" as Hex).bytes),
            .expect(("E0 00" as Hex).bytes)
        )
        let (transport, provider) = try client(script) {
            $0.session.store = store
            $0.timeouts.drain = .seconds(2)
        }
        let sending = Sending(provider, send("a", .send(qos: .exactlyOnce)))
        try await waitUntil { store.texts == ["a"] }
        store.answer(0)
        try await waitUntil { script.hasReached(4) }
        await untilQuiet()
        clock.advance(by: .seconds(30))
        await expectError(.timedOut) { try await sending.task.value }
        let end = Sending(provider, .disconnect)
        try await waitUntil(moving: { clock.advance(by: .milliseconds(100)) }) {
            end.isOver.result != nil
        }
        try await end.task.value
        #expect(script.failures == [] && script.isComplete)
        #expect(store.messages().map(\.stage) == [.published])
        await transport.shutdown()
    }

    @Test("An identifier that is never stored: the acknowledgement and a shutdown end")
    func received() async throws {
        let store = HangingStore(hangs: true)
        let script = ScriptedByteStream.accepted(
            .new,
            .expect(("82 06 0001 0001 74 02" as Hex).bytes),
            .reply(("90 03 0001 02 34 06 0001 74 0007 61" as Hex).bytes)
        )
        let (transport, provider) = try client(script) { $0.session.store = store }
        var messages = try await provider.messages(.subscribe("t", .manualAcknowledgement))
            .makeAsyncIterator()
        let id = try #require(try await messages.next()?.id)
        let sending = Sending(provider, .command(.ack(id, .awaitsCompletion)))
        await untilQuiet()
        // Also if the call begins only now, its limit of 30 s is before the first PINGREQ.
        clock.advance(by: .seconds(25))
        await untilQuiet()
        #expect(sending.isOver.result == nil)
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) {
            sending.isOver.result != nil
        }
        await expectError(.timedOut) { try await sending.task.value }
        // PUBREC was not sent.
        #expect(script.failures == [] && script.isComplete)
        await transport.shutdown()
    }

    @Test("A transport that is destroyed: the wait for the store ends, and nothing stays stored")
    func destroyed() async throws {
        let store = HangingStore(hangs: true)
        let (transport, provider) = try client {
            $0.session.store = store
            $0.timeouts.close = .seconds(5)
        }
        let sending = Sending(provider, send("a"))
        try await waitUntil { store.texts == ["a"] }
        let isOver = Promise<Void>()
        isOver.resolve { await transport.destroy() }
        await expectError(.shutDown) { try await sending.task.value }
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isOver.result != nil }
        try await sendAfterTheEnd(provider, store)
        // Both answers come after the end.
        store.mayEmpty.signal()
        store.answer(0)
        try await waitUntil { store.removals == [1] }
        #expect(store.messages().isEmpty)
    }

    @Test("The table of what a store has not answered for")
    func table() {
        func at(_ seconds: Int64) -> WireInstant {
            WireInstant(nanoseconds: seconds * 1_000_000_000)
        }
        var waits = StoreWaits(messageLimit: 2, byteLimit: 100)
        let calls = (0..<4).map { _ in StoreCall() }
        #expect(waits.earliestDeadline == nil)
        for (index, deadline) in [20, 10, 30, 30].enumerated() {
            let number = waits.begin(calls[index], byteCount: 40, deadline: at(Int64(deadline)))
            #expect(number == UInt64(index + 1))
        }
        #expect(waits.earliestDeadline == at(10))
        #expect(waits.takeExpired(at: at(9)).isEmpty)
        // Twice the same event counts once, and an answer comes before or after.
        waits.abandon(1)
        waits.abandon(1)
        waits.end(2)
        waits.abandon(2)
        #expect(waits.begin(calls[1], byteCount: 0, deadline: at(40)) == 5)
        #expect(waits.takeExpired(at: at(20)).isEmpty)
        #expect(waits.earliestDeadline == at(30))
        // Both in order, although more are late then than the limit says.
        let expired = waits.takeExpired(at: at(30))
        #expect(expired.map { ObjectIdentifier($0) } == calls[2...].map { ObjectIdentifier($0) })
        #expect(waits.earliestDeadline == at(40))
        #expect(waits.begin(calls[2], byteCount: 0, deadline: at(50)) == nil)
        waits.end(1)
        waits.end(3)
        waits.end(3)
        waits.end(99)
        #expect(waits.begin(calls[0], byteCount: 30, deadline: at(35)) == 6)
        #expect(waits.earliestDeadline == at(35))
        let last = waits.takeExpired(at: at(40))
        #expect(last.map { ObjectIdentifier($0) } == calls[0...1].map { ObjectIdentifier($0) })
        #expect(waits.earliestDeadline == nil)
        waits.end(5)
        waits.end(6)
        waits.end(4)
        // One message may exceed the limit of bytes, two do not.
        var bytes = StoreWaits(messageLimit: 10, byteLimit: 100)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(bytes.begin(calls[0], byteCount: 1_000, deadline: at(60)) == number)
        }
        bytes.abandon(1)
        #expect(bytes.begin(calls[1], byteCount: 49, deadline: at(60)) == 4)
        bytes.abandon(4)
        #expect(bytes.begin(calls[1], byteCount: 1, deadline: at(60)) == 5)
        bytes.abandon(5)
        #expect(bytes.begin(calls[1], byteCount: 0, deadline: at(60)) == nil)
        bytes.end(1)
        bytes.abandon(2)
        #expect(bytes.begin(calls[1], byteCount: 0, deadline: at(60)) == nil)
        bytes.end(2)
        #expect(bytes.begin(calls[1], byteCount: 0, deadline: at(60)) == 6)
        // A limit of nothing still lets one message be late.
        var least = StoreWaits(messageLimit: 0, byteLimit: 0)
        #expect(least.begin(calls[0], byteCount: 1, deadline: at(1)) == 1)
        least.abandon(1)
        #expect(least.begin(calls[1], byteCount: 1, deadline: at(1)) == nil)
    }

    @Test("Each of many deadlines passes alone")
    func manyDeadlines() {
        let count = 50_000
        func at(_ index: Int) -> WireInstant { WireInstant(nanoseconds: Int64(index) * 1_000) }
        var waits = StoreWaits(messageLimit: 2 * count, byteLimit: 2 * count)
        let call = StoreCall()
        for index in 0..<count {
            _ = waits.begin(call, byteCount: 1, deadline: at(count - index))
        }
        // With a search through all that wait, this takes some minutes.
        let counts = (1...count).map { waits.takeExpired(at: at($0)).count }
        #expect(counts.allSatisfy { $0 == 1 })
        #expect(waits.earliestDeadline == nil)
    }

    @Test("A send with a shorter limit than those before it ends first")
    func shorterLimit() async throws {
        let (transport, provider) = try client()
        let slow = Sending(provider, send("a"))
        try await waitUntil { store.texts.count == 1 }
        let soon = Sending(
            provider,
            send("b", .send(qos: .atLeastOnce, .timeout(.seconds(5))))
        )
        try await waitUntil { store.texts.count == 2 }
        clock.advance(by: .seconds(5))
        await expectError(.timedOut) { try await soon.task.value }
        #expect(slow.isOver.result == nil)
        clock.advance(by: .seconds(20))
        let late = Sending(provider, send("c"))
        try await waitUntil { store.texts.count == 3 }
        clock.advance(by: .seconds(5))
        await expectError(.timedOut) { try await slow.task.value }
        #expect(late.isOver.result == nil)
        clock.advance(by: .seconds(25))
        await expectError(.timedOut) { try await late.task.value }
        await transport.shutdown()
    }
}
