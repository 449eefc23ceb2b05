import CWaybillSQLite
import Foundation
import Testing
import WaybillSQLite
import WireCore
import WireTestSupport

@Suite("A store on disk", .timeLimit(.minutes(30))) struct StoreTests {
    @Test("All parts of a message are there again, in the order of the numbers")
    func contents() async throws {
        let temporary = try TemporaryStore()
        var message = StoredMessage(
            topic: "a/\u{0}ü",
            body: [0, 255, 10],
            contentType: "text/plain",
            headers: [["", ""], ["ä\u{0}", "b"], [], ["one"]],
            qos: 2,
            expiry: Date(timeIntervalSince1970: 4_000_000_000.5),
            options: [
                StoredOption("retained", .flag(true)),
                StoredOption("responseTopic", .text("replies/\u{0}ü")),
                StoredOption("correlationData", .bytes([0, 255])),
                StoredOption("payloadFormat", .integer(0)),
                StoredOption("of a later version", .integer(.min)),
            ]
        )
        let store = try temporary.open()
        #expect(try store.insert(message) == 1)
        #expect(try await store.add(TemporaryStore.message(2)) == 2)
        let empty = StoredMessage(
            topic: "",
            body: [],
            qos: 1,
            options: [
                StoredOption("responseTopic", .text("")),
                StoredOption("correlationData", .bytes([])),
            ]
        )
        #expect(try store.insert(empty) == 3)
        let byteCount = store.byteCount
        store.close()
        let again = try temporary.open()
        // What was counted from the messages is what is counted from the file.
        #expect(again.byteCount == byteCount)
        (message.id, message.attempts) = (1, 1)
        let messages = try again.messages()
        #expect(messages.first == message)
        #expect(messages.map(\.id) == [1, 2, 3])
        #expect(messages.last?.body == [])
        // An empty value is not a missing one.
        #expect(
            messages.last?.options == [
                StoredOption("correlationData", .bytes([])),
                StoredOption("responseTopic", .text("")),
            ]
        )
        #expect(messages.first?.options.map(\.name).last == "retained")
        #expect(messages[1].options == [])
        #expect(try again.messages().map(\.attempts) == [2, 2, 2])
    }

    @Test("The log takes 8 MiB at most, also after a far longer message")
    func logSize() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        let id = try store.insert(TemporaryStore.message(1, byteCount: 24 << 20))
        store.remove(id)
        // Once the log is written to the file, it begins again, at its limit.
        for number in 2...5 { _ = try store.insert(TemporaryStore.message(number)) }
        let log = try #require(try temporary.contents()["store.sqlite-wal"])
        #expect(log.count <= 8 << 20)
        store.close()
    }

    @Test(
        "Many tasks: every number once, in the order of the numbers, and numbers never come again"
    )
    func order() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        let ids = try await withThrowingTaskGroup { group in
            for task in 0..<20 {
                group.addTask {
                    var ids: [StoredMessage.ID] = []
                    for step in 0..<20 {
                        let message = TemporaryStore.message(task * 100 + step)
                        ids.append(
                            step.isMultiple(of: 2)
                                ? try await store.add(message) : try store.insert(message)
                        )
                    }
                    #expect(ids == ids.sorted())
                    return ids
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(ids) == Set(1...400))
        #expect(try store.messages().map(\.id) == Array(1...400))
        for id in ids { store.remove(id) }
        try await store.flush()
        #expect(store.byteCount == 0)
        store.close()
        let again = try temporary.open()
        #expect(try again.messages().isEmpty)
        #expect(try again.insert(TemporaryStore.message(1)) == 401)
    }

    @Test("A message above the limit is refused before it is written; a removal makes room")
    func limit() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.maximumByteCount = 10_000 }
        let first = try store.insert(TemporaryStore.message(1, byteCount: 5_000))
        let error = await #expect(throws: SQLiteStoreError.self) {
            try await store.add(TemporaryStore.message(2, byteCount: 5_000))
        }
        #expect(error?.reason == .full)
        #expect(store.waiting.messages == 0)
        store.remove(first)
        #expect(try store.insert(TemporaryStore.message(3, byteCount: 5_000)) == 2)
        store.close()
        let again = try temporary.open { $0.maximumByteCount = 10_000 }
        #expect(throws: SQLiteStoreError.self) {
            try again.insert(TemporaryStore.message(4, byteCount: 5_000))
        }
        #expect(try again.messages().numbers == [3])
    }

    @Test("Progress of streams: the last ID, by the bytes of the topic, of the last 1,000 streams")
    func progress() async throws {
        let temporary = try TemporaryStore()
        var store = try temporary.open()
        for number in 1...1_002 { store.setLastEventID("\(number)", of: "t/\(number)") }
        try await store.flush()
        for number in 1...3 { store.setLastEventID("\(number)", of: "e\u{301}") }
        store.setLastEventID("\u{0}ü", of: "\u{E9}")
        store.setLastEventID("x", of: "gone")
        store.setLastEventID("", of: "gone")
        store.setLastEventID(String(repeating: "x", count: 1_025), of: "long")
        try await store.flush()
        store.close()
        store = try temporary.open()
        #expect(try store.lastEventID(of: "e\u{301}") == "3")
        #expect(try store.lastEventID(of: "\u{E9}") == "\u{0}ü")
        for topic in ["gone", "long", "never"] { #expect(try store.lastEventID(of: topic) == nil) }
        let known = try (1...1_002).filter { try store.lastEventID(of: "t/\($0)") != nil }
        #expect(known.count == 998)
        store.removeAll()
        #expect(try store.lastEventID(of: "\u{E9}") == nil)
        store.close()
        temporary.execute("INSERT INTO stream VALUES (1, x'61', x'FF')")
        store = try temporary.open()
        #expect(throws: SQLiteStoreError.self) { try store.lastEventID(of: "a") }
    }

    @Test("What is too old is dropped when the store is read, and told")
    func expiry() throws {
        let temporary = try TemporaryStore()
        let now = Locked(Date(timeIntervalSince1970: 1_000))
        let told = Locked<[Int]>([])
        var options = SQLiteSessionStore.Options(maximumAge: .seconds(100))
        options.onEvent = { event in
            if case .expired(let message) = event {
                told.withLock { $0 += [message].numbers }
            }
        }
        let store = try SQLiteSessionStore(path: temporary.path, options: options) {
            now.withLock { $0 }
        }
        for (number, expiry) in [(1, 1_050.0), (2, nil), (3, 1_200), (4, 1_060.001)] {
            var message = TemporaryStore.message(number)
            message.expiry = expiry.map { Date(timeIntervalSince1970: $0) }
            _ = try store.insert(message)
        }
        now.withLock { $0 = Date(timeIntervalSince1970: 1_060) }
        #expect(try store.messages().numbers == [2, 3, 4])
        #expect(told.withLock { $0 } == [1])
        now.withLock { $0 = Date(timeIntervalSince1970: 1_100) }
        #expect(try store.messages().isEmpty)
        #expect(told.withLock { $0 } == [1, 4, 2, 3] || told.withLock { $0 } == [1, 2, 3, 4])
        #expect(store.byteCount == 0)
    }

    @Test("A message of QoS 2 that is too old stays in a session, because its exchange has to end")
    func expiryOfExchange() throws {
        let temporary = try TemporaryStore()
        let start = Date(timeIntervalSince1970: 1_000)
        let now = Locked(start)
        let options = SQLiteSessionStore.Options(maximumAge: .seconds(100))
        let store = try SQLiteSessionStore(path: temporary.path, options: options) {
            now.withLock { $0 }
        }
        #expect(try store.beginSession("ada"))
        for (qos, expiry) in [(1, 10.0), (2, nil), (2, 10)] {
            let message = StoredMessage(
                topic: "t",
                body: [],
                qos: qos,
                expiry: expiry.map { start + $0 }
            )
            _ = try store.insert(message)
        }
        now.withLock { $0 = start + 50 }
        #expect(try store.messages().map(\.id) == [2, 3])
        now.withLock { $0 = start + 200 }
        let messages = try store.messages()
        #expect(messages.map(\.id) == [2, 3])
        #expect(messages.allSatisfy { $0.expiry == .distantPast })
    }

    @Test("Stages, identifiers and filters are there again; another session forgets them")
    func session() async throws {
        let temporary = try TemporaryStore()
        var store = try temporary.open()
        #expect(try store.beginSession("ada"))
        let ids = try (1...3).map { try store.insert(TemporaryStore.message($0)) }
        await withCheckedContinuation { done in
            store.setStage(.released, of: ids[1]) { done.resume() }
        }
        for identifier: UInt16 in [7, 65_535, 1] {
            await withCheckedContinuation { done in
                store.insertReceived(identifier) { done.resume() }
            }
        }
        store.removeReceived(7) {}
        store.setPendingUnsubscribes(["a/#", "", "b\u{0}"])
        store.close()

        store = try temporary.open()
        #expect(try store.beginSession("ada"))
        #expect(try store.messages().map(\.stage) == [.published, .released, .published])
        #expect(try store.receivedIdentifiers() == [1, 65_535])
        #expect(try store.pendingUnsubscribes() == ["a/#", "", "b\u{0}"])
        #expect(try store.beginSession("bob"))
        #expect(try store.messages().map(\.stage) == [.published, .published, .published])
        #expect(try store.receivedIdentifiers() == [])
        store.insertReceived(2) {}
        store.setStage(.released, of: ids[0]) {}
        store.loseSession()
        #expect(try store.messages().map(\.stage) == [.published, .published, .published])
        #expect(try store.receivedIdentifiers() == [])
        store.removeAll()
        #expect(try store.messages().isEmpty)
        #expect(try store.pendingUnsubscribes() == [])
    }

    @Test("A stage that is set before its message is written is stored with it")
    func setBeforeTheWrite() async throws {
        let temporary = try TemporaryStore()
        let gate = Gate()
        var options = SQLiteSessionStore.Options()
        options.synchronization = .batched(within: .seconds(3_600))
        let store = try SQLiteSessionStore(path: temporary.path, options: options, now: gate.now)
        #expect(try store.beginSession("ada"))
        try await store.flush()
        gate.close()
        // The writer stands still with the first message.
        _ = try store.insert(TemporaryStore.message(0))
        store.setStage(.published, of: 99) {}
        await gate.waitUntilReached()
        let id = try store.insert(TemporaryStore.message(1))
        store.setStage(.released, of: id) {}
        store.setSuspiciousEnds(3, of: id)
        #expect(store.waiting.messages == 1)
        gate.open()
        #expect(try store.messages().map(\.stage) == [.published, .released])
        #expect(try store.messages().map(\.suspiciousEnds) == [0, 3])
        store.close()
        let again = try temporary.open()
        #expect(try again.beginSession("ada"))
        #expect(try again.messages().map(\.stage) == [.published, .released])
        #expect(try again.messages().map(\.suspiciousEnds) == [0, 3])
    }

    @Test("A batched message is accepted at once, and written by a flush or in time")
    func batched() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.synchronization = .batched(within: .seconds(3_600)) }
        let first = try await store.add(TemporaryStore.message(1))
        _ = try store.insert(TemporaryStore.message(2))
        store.setStage(.released, of: 99) {}
        try await waitUntil { store.waiting.messages == 0 }
        _ = try store.insert(TemporaryStore.message(3))
        #expect(store.waiting.messages == 1)
        store.remove(first)
        try await store.flush()
        let fourth = try await store.add(TemporaryStore.message(4))
        // Neither the message nor its removal is written.
        store.remove(fourth)
        #expect(store.waiting.messages == 0 && store.waiting.changes == 0)
        #expect(try store.messages().numbers == [2, 3])
        store.close()

        let soon = try temporary.open { $0.synchronization = .batched(within: .milliseconds(1)) }
        _ = try soon.insert(TemporaryStore.message(5))
        try await waitUntil { soon.waiting.messages == 0 }
        #expect(try soon.messages().numbers == [2, 3, 5])
    }

    @Test(
        "A transaction waits for the disk, except where the file is enough",
        arguments: [
            (SQLiteSessionStore.Synchronization.full, 2 as Int64), (.process, 1),
            (.batched(within: .seconds(1)), 2),
        ]
    )
    func synchronization(_ option: SQLiteSessionStore.Synchronization, _ level: Int64) throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.synchronization = option }
        #expect(try store.synchronousLevel() == level)
    }

    @Test("A closed store refuses messages, and ignores the rest")
    func closed() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.synchronization = .batched(within: .seconds(3_600)) }
        let id = try store.insert(TemporaryStore.message(1))
        store.close()
        store.close()
        let error = #expect(throws: SQLiteStoreError.self) {
            try store.insert(TemporaryStore.message(2))
        }
        #expect(error?.reason == .closed)
        await #expect(throws: SQLiteStoreError.self) {
            try await store.add(TemporaryStore.message(2))
        }
        #expect(throws: SQLiteStoreError.self) { try store.messages() }
        store.remove(id)
        store.removeAll()
        store.setPendingUnsubscribes(["a"])
        store.loseSession()
        store.removeReceived(1) {}
        #expect(throws: SQLiteStoreError.self) { try store.beginSession("x") }
        await withCheckedContinuation { done in
            store.setStage(.released, of: id) { done.resume() }
        }
        #expect(try temporary.open().messages().numbers == [1])
    }

    @Test("A store that was let go of writes what waits, and can be opened again")
    func letGo() async throws {
        let temporary = try TemporaryStore()
        do {
            let store = try temporary.open { $0.synchronization = .batched(within: .zero) }
            _ = try store.insert(TemporaryStore.message(1))
        }
        try await waitUntil { (try? temporary.open().messages().numbers) == [1] }
    }

    @Test(
        "While the writer stands still, no call of an event loop waits, and what waits is bounded"
    )
    func bounds() async throws {
        let temporary = try TemporaryStore()
        let gate = Gate()
        let store = try SQLiteSessionStore(path: temporary.path, options: .init(), now: gate.now)
        let ids = try await withThrowingTaskGroup { group in
            for number in 0..<500 {
                group.addTask { try await store.add(TemporaryStore.message(number)) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        gate.close()
        store.setStage(.published, of: ids[0]) {}
        await gate.waitUntilReached()
        // Calls of an event loop: they return, and the same change twice takes no more room.
        for round in 0..<100 {
            for id in ids {
                store.setStage(round.isMultiple(of: 2) ? .released : .published, of: id) {}
                if round > 50 { store.remove(id) }
            }
            for identifier: UInt16 in 1...100 {
                store.insertReceived(identifier) {}
                store.removeReceived(identifier) {}
            }
            store.setPendingUnsubscribes(["\(round)"])
        }
        #expect(store.waiting.changes <= 500 + 100)
        // Callers that store messages.
        let count = 5_000
        try await withThrowingTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    _ = try await store.add(TemporaryStore.message(number, byteCount: 5_000))
                }
            }
            try await waitUntil { store.waiting.messages + store.waiting.callers == count }
            // 4 MiB, and one message more at the most.
            #expect(store.waiting.bytes <= 4 << 20 + 6_000)
            #expect(store.waiting.callers > 4_000)
            // None of them was told a result.
            #expect(store.waiting.messages + store.waiting.callers == count)
            gate.open()
            try await group.waitForAll()
        }
        #expect(try store.messages().count == count)
        #expect(try store.pendingUnsubscribes() == ["99"])
        #expect(try store.receivedIdentifiers() == [])
    }

    @Test(
        "While the writer stands still, a caller that is cancelled ends, and its message is forgotten"
    )
    func withdrawn() async throws {
        let temporary = try TemporaryStore()
        let gate = Gate()
        let store = try SQLiteSessionStore(path: temporary.path, options: .init(), now: gate.now)
        gate.close()
        // In the transaction that stands still: it waits for the disk.
        let first = Task { try await store.add(TemporaryStore.message(0)) }
        await gate.waitUntilReached()
        let size = store.byteCount
        let count = 1_700
        // Some wait for the next transaction, and the others for room in it.
        let tasks = (1...count).map { number in
            Task { try await store.add(TemporaryStore.message(number, byteCount: 5_000)) }
        }
        try await waitUntil { store.waiting.messages + store.waiting.callers == count }
        #expect(store.waiting.messages > 500 && store.waiting.callers > 500)
        first.cancel()
        for task in tasks[..<(count - 10)] { task.cancel() }
        var endCount = 0
        for task in tasks[..<(count - 10)] {
            if case .failure(is CancellationError) = await task.result { endCount += 1 }
        }
        #expect(endCount == count - 10)
        #expect(store.waiting.messages + store.waiting.callers == 10)
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.add(TemporaryStore.message(9_999))
        }
        await #expect(throws: CancellationError.self) { try await early.value }
        gate.open()
        #expect(try await first.value == 1)
        for task in tasks[(count - 10)...] { _ = try await task.value }
        let numbers = try store.messages().numbers
        #expect(Set(numbers) == Set([0] + ((count - 9)...count)))
        for id in try store.messages().map(\.id) where id != 1 { store.remove(id) }
        try await store.flush()
        #expect(store.byteCount == size)
    }
}
