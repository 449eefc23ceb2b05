import Dispatch
import Foundation
import Testing
import Waybill
import WaybillSQLite
import WireCore
import WireTestSupport

@Suite(
    "A store whose writes fail, that is closed under load, or called from its callbacks",
    .timeLimit(.minutes(30))
)
struct FailureTests {
    /// Makes a store that refuses messages whose topic is `bad`, and with it their whole transaction.
    private func refusing() throws -> TemporaryStore {
        let temporary = try TemporaryStore.filled(2)
        temporary.execute(
            """
            ALTER TABLE message RENAME TO old;
            CREATE TABLE message (
                id INTEGER PRIMARY KEY, topic TEXT NOT NULL CHECK (topic <> 'bad'), body, content_type, headers,
                qos, is_retained, stored, expiry, attempts DEFAULT 0, size, stage DEFAULT 1,
                response_topic, correlation_data, is_text, suspicious_ends, is_adapted, needs_token, options
            );
            INSERT INTO message SELECT * FROM old;
            DROP TABLE old;
            """
        )
        return temporary
    }

    private let bad = StoredMessage(topic: "bad", body: [], qos: 1)

    /// How the callers have ended.
    private final class Ends: Sendable {
        let accepted = Locked<Set<StoredMessage.ID>>([])
        let isOver = Locked(false)
        let count = Locked(0)
        let store = Locked<SQLiteSessionStore?>(nil)
        private let reasons = Locked<[String: [String]]>([:])

        func note(_ call: String, _ error: (any Error)? = nil) {
            let text = error.map { ($0 as? SQLiteStoreError)?.reason.name ?? "other" } ?? "ok"
            reasons.withLock { $0[call, default: []].append(text) }
        }

        var all: [String: [String]] { reasons.withLock { $0 } }
    }

    @Test("The loss of a session takes the stage of messages that are not written yet")
    func lostSession() async throws {
        let (temporary, gate) = (try TemporaryStore(), Gate())
        let store = try SQLiteSessionStore(
            path: temporary.path,
            options: .init(synchronization: .batched(within: .seconds(3_600))),
            now: gate.now
        )
        gate.close()
        _ = try store.insert(TemporaryStore.message(1))
        let flushing = Task { try await store.flush() }
        await gate.waitUntilReached()
        // The writer stands still.
        let id = try store.insert(StoredMessage(topic: "t/2", body: [], qos: 2))
        store.setStage(.released, of: id) {}
        store.loseSession()
        gate.open()
        try await flushing.value
        #expect(try store.messages().map(\.stage) == [.published, .published])
        store.close()
    }

    @Test("Closed while a write fails: each caller ends once, and lost messages are told")
    func closedWhileFailing() async throws {
        let temporary = try refusing()
        let (gate, events, ends) = (Gate(), StoreEvents(), Ends())
        let store = try SQLiteSessionStore(
            path: temporary.path,
            options: .init(
                synchronization: .batched(within: .seconds(3_600)),
                onEvent: events.note
            ),
            now: gate.now
        )
        gate.close()
        // Accepted, and then refused by the file together.
        _ = try store.insert(bad)
        _ = try store.insert(TemporaryStore.message(7))
        let flushing = Task {
            do { try await store.flush(); ends.note("flush") } catch { ends.note("flush", error) }
        }
        await gate.waitUntilReached()
        store.setStage(.released, of: 1) { ends.note("stage") }
        store.insertReceived(5) { ends.note("received") }
        let second = Task {
            do { try await store.flush(); ends.note("flush 2") } catch {
                ends.note("flush 2", error)
            }
        }
        try await waitUntil { store.waiting.changes == 2 }
        // Not on one of the few threads for tasks, which it blocks.
        async let closing: Void = withCheckedContinuation { continuation in
            DispatchQueue(label: "closing").async {
                store.close()
                continuation.resume()
            }
        }
        await Task.yield()
        gate.open()
        await closing
        await flushing.value
        await second.value
        try await waitUntil { ends.all.count == 4 }
        #expect(ends.all["flush"] == ["failed"])
        // Before or after the last transaction: it has failed, or it had nothing left to write.
        #expect(ends.all["flush 2"]?.count == 1)
        #expect(ends.all["stage"] == ["ok"] && ends.all["received"] == ["ok"])
        #expect(events.lost == [7])
        // Changes are written without the messages.
        let again = try temporary.open()
        #expect(try again.messages().numbers == [0, 1])
        #expect(try again.receivedIdentifiers() == [5])
    }

    @Test("What is set of a message while the file refuses it is written with it later")
    func setDuringTheWrite() async throws {
        let temporary = try refusing()
        let gate = Gate()
        let store = try SQLiteSessionStore(
            path: temporary.path,
            options: .init(synchronization: .batched(within: .seconds(3_600))),
            now: gate.now
        )
        gate.close()
        let refused = try store.insert(bad)
        let id = try store.insert(TemporaryStore.message(7))
        let flushing = Task { try await store.flush() }
        await gate.waitUntilReached()
        store.setStage(.released, of: id) {}
        store.setSuspiciousEnds(3, of: id)
        gate.open()
        await #expect(throws: SQLiteStoreError.self) { try await flushing.value }
        store.remove(refused)
        try await store.flush()
        let message = try store.messages().last
        #expect(message?.id == id && message?.stage == .released)
        #expect(message?.suspiciousEnds == 3)
    }

    @Test("A refused transaction fails its callers, and the store goes on")
    func refused() async throws {
        let temporary = try refusing()
        let events = StoreEvents()
        let store = try temporary.open { $0.onEvent = events.note }
        store.remove(1)
        let error = #expect(throws: SQLiteStoreError.self) { try store.insert(bad) }
        #expect(error?.reason == .failed)
        try await waitUntil { events.all.count == 1 }
        guard case .writeFailed? = events.all.first else {
            Issue.record("\(events.all)")
            return
        }
        #expect(try store.insert(TemporaryStore.message(8)) == 4)
        #expect(try store.messages().numbers == [1, 8])
        await #expect(throws: SQLiteStoreError.self) { try await store.add(bad) }
        #expect(store.waiting.messages == 0 && store.byteCount == 261 + 3)
    }

    @Test("Closed under load: it returns, and every caller ends once")
    func closedUnderLoad() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        let ends = Ends()
        await withTaskGroup { group in
            for task in 0..<16 {
                group.addTask {
                    var number = 0
                    while true {
                        number += 1
                        do {
                            let id = try await store.add(TemporaryStore.message(number))
                            ends.accepted.withLock { _ = $0.insert(id) }
                            if number.isMultiple(of: 5) { try await store.flush() }
                        } catch {
                            return ends.note("\(task)", error)
                        }
                    }
                }
            }
            group.addTask {
                try? await waitUntil { ends.accepted.withLock { $0.count } >= 100 }
                // Blocks while the others go on.
                store.close()
            }
            await group.waitForAll()
        }
        #expect(ends.all.count == 16)
        for reasons in ends.all.values { #expect(reasons == ["closed"]) }
        #expect(try Set(temporary.open().messages().map(\.id)) == ends.accepted.withLock { $0 })
    }

    @Test("A removal after the store was closed does not count as written")
    func removedLate() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        let id = try store.insert(TemporaryStore.message(1))
        store.close()
        try await store.flush()
        #expect(store.unwrittenCount == 0)
        store.remove(id)
        store.remove(id)
        #expect(store.unwrittenCount == 1)
        await #expect(throws: SQLiteStoreError.self) { try await store.flush() }
        #expect(try temporary.open().messages().numbers == [1])
    }

    @Test("Messages are read while others are stored without an end")
    func readUnderLoad() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.synchronization = .process }
        let state = Ends()
        await withTaskGroup { group in
            for number in 0..<8 {
                group.addTask {
                    while !state.isOver.withLock({ $0 }) {
                        guard let id = try? await store.add(TemporaryStore.message(number)) else {
                            return
                        }
                        store.remove(id)
                    }
                }
            }
            for _ in 0..<20 {
                _ = try? store.messages()
                _ = try? store.beginSession("a\(Int.random(in: 0...1))")
                store.removeAll()
            }
            state.isOver.withLock { $0 = true }
            await group.waitForAll()
        }
        store.close()
    }

    @Test("Every function may be called from every callback", arguments: 0..<8)
    func callbacks(_ number: Int) async throws {
        let temporary = try refusing()
        let state = Ends()
        let message = TemporaryStore.message(5)
        let call: @Sendable () -> Void = {
            guard let store = state.store.withLock({ $0 }) else { return }
            switch number {
            case 0: _ = try? store.insert(message)
            case 1: _ = try? store.messages()
            case 2: store.removeAll()
            case 3: store.close()
            case 4: _ = try? store.beginSession("b")
            case 5: _ = try? store.receivedIdentifiers()
            case 6: _ = try? store.pendingUnsubscribes()
            default: store.setStage(.released, of: 1) { state.count.withLock { $0 += 100 } }
            }
            state.count.withLock { $0 += 1 }
        }
        let store = try temporary.open { $0.onEvent = { _ in call() } }
        state.store.withLock { $0 = store }
        store.setStage(.released, of: 1, done: call)
        try await waitUntil { state.count.withLock { $0 } >= 1 }
        store.insertReceived(4, done: call)
        try await waitUntil { state.count.withLock { $0 } >= 2 }
        // The event of a failed write.
        if number != 3 {
            #expect(throws: SQLiteStoreError.self) { try store.insert(bad) }
            try await waitUntil { state.count.withLock { $0 } >= 3 }
        }
        store.close()
        state.store.withLock { $0 = nil }
    }

    @Test("A handler that stores a message when a write has failed does not recurse")
    func recursion() async throws {
        let temporary = try refusing()
        let state = Ends()
        let bad = bad
        let store = try temporary.open { options in
            options.onEvent = { _ in
                let again = state.count.withLock { count in
                    count += 1
                    return count < 20_000
                }
                if again { _ = try? state.store.withLock { $0 }?.insert(bad) }
            }
        }
        state.store.withLock { $0 = store }
        _ = try? store.insert(bad)
        try await waitUntil { state.count.withLock { $0 } == 20_000 }
        state.store.withLock { $0 = nil }
        store.close()
    }
}
