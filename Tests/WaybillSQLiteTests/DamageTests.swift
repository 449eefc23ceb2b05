import Foundation
import Testing
import WaybillSQLite
import WireCore
import WireTestSupport

@Suite("A damaged or foreign file", .timeLimit(.minutes(30))) struct DamageTests {
    private func reason(_ temporary: TemporaryStore) -> SQLiteStoreError.Reason? {
        let error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
        #expect(error?.path == temporary.path)
        return error?.reason
    }

    @Test("A file cut short, or with other bytes in its pages, is corrupt")
    func corrupt() throws {
        let source = try TemporaryStore.filled()
        let whole = try Data(contentsOf: URL(fileURLWithPath: source.path))
        let pageSize = 4_096
        #expect(whole.count > 5 * pageSize)
        var damaged: [Data] = [whole.prefix(whole.count / 2), Data(repeating: 0x41, count: 9_000)]
        for page in 0..<whole.count / pageSize {
            var copy = whole
            // The head of the page; of the first one, after the file's own head.
            let start = page * pageSize + (page == 0 ? 100 : 0)
            copy.replaceSubrange(start..<start + 12, with: Data(repeating: 0xEE, count: 12))
            damaged.append(copy)
        }
        for data in damaged {
            let temporary = try TemporaryStore()
            try data.write(to: URL(fileURLWithPath: temporary.path))
            #expect(reason(temporary) == .corrupt)
            // Nothing has changed.
            #expect(try Data(contentsOf: URL(fileURLWithPath: temporary.path)) == data)
        }
    }

    @Test("A damaged file is set aside if that is wanted, and told")
    func setAside() throws {
        let temporary = try TemporaryStore.filled()
        let damaged = Data(repeating: 0x41, count: 9_000)
        try damaged.write(to: URL(fileURLWithPath: temporary.path))
        let log = Data(repeating: 0x42, count: 5_000)
        try log.write(to: URL(fileURLWithPath: temporary.path + "-wal"))
        let told = Locked<String?>(nil)
        let store = try temporary.open { options in
            options.whenCorrupt = .setAside
            options.onEvent = { event in
                guard case .setAside(let path, let error) = event else { return }
                #expect(error.reason == .corrupt)
                told.withLock { $0 = path }
            }
        }
        #expect(try store.messages().isEmpty)
        _ = try store.insert(TemporaryStore.message(1))
        let path = try #require(told.withLock { $0 })
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == damaged)
        // Its log goes with it.
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + "-wal")) == log)
    }

    @Test("Bytes that were changed while the store is open make it fail, not stop")
    func damagedWhileOpen() throws {
        let temporary = try TemporaryStore()
        var store = try temporary.open { $0.synchronization = .process }
        // More than SQLite keeps in memory.
        for number in 0..<1_000 {
            _ = try store.insert(TemporaryStore.message(number, byteCount: 6_000))
        }
        store.close()
        store = try temporary.open()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: temporary.path))
        let end = try file.seekToEnd()
        try file.seek(toOffset: 4_096)
        try file.write(contentsOf: Data(repeating: 0xEE, count: Int(end) - 4_096))
        try file.close()
        // An error, and not an empty list.
        let error = #expect(throws: SQLiteStoreError.self) { try store.messages() }
        #expect(error?.reason == .corrupt)
        for id: UInt64 in 1...1_000 { store.remove(id) }
        _ = try? store.insert(TemporaryStore.message(1))
        store.close()
        #expect(reason(temporary) == .corrupt)
    }

    @Test("The database of another program is refused and left alone")
    func notAStore() throws {
        let temporary = try TemporaryStore()
        temporary.execute("CREATE TABLE people (name TEXT)")
        #expect(reason(temporary) == .notAStore)
    }

    @Test("A file of a newer version is refused, and left as it is")
    func newer() throws {
        let temporary = try TemporaryStore.filled()
        temporary.execute("PRAGMA user_version = 8")
        let before = try temporary.contents()
        #expect(reason(temporary) == .newerVersion)
        #expect(try temporary.contents() == before)
        temporary.execute("PRAGMA user_version = 7")
        #expect(try temporary.open().messages().count == 200)
    }

    @Test("A file of the first version is brought up to date")
    func older() throws {
        let temporary = try TemporaryStore()
        temporary.execute(
            """
            PRAGMA application_id = 1466061684;
            PRAGMA user_version = 1;
            CREATE TABLE message (
                id INTEGER PRIMARY KEY, topic TEXT NOT NULL, body BLOB NOT NULL, content_type TEXT,
                headers BLOB NOT NULL, qos INTEGER NOT NULL, is_retained INTEGER NOT NULL,
                stored INTEGER NOT NULL, expiry INTEGER, attempts INTEGER NOT NULL DEFAULT 0,
                size INTEGER NOT NULL
            );
            CREATE TABLE pending_unsubscribe (position INTEGER PRIMARY KEY, filter TEXT NOT NULL);
            CREATE TABLE store (key INTEGER PRIMARY KEY CHECK (key = 1), last INTEGER NOT NULL);
            INSERT INTO store VALUES (1, 7);
            INSERT INTO message VALUES (3, 't/3', x'61', NULL, x'', 1, 0, 1000, NULL, 4, 150);
            INSERT INTO pending_unsubscribe (filter) VALUES ('a/#');
            """
        )
        let store = try temporary.open()
        let messages = try store.messages()
        #expect(messages.numbers == [3])
        #expect(messages.first?.body == [0x61] && messages.first?.attempts == 5)
        #expect(messages.first?.stage == .published)
        #expect(try store.pendingUnsubscribes() == ["a/#"])
        // The lengths count, and not the number in the file: 3 bytes of the topic, 1 of the body, and 128.
        #expect(store.byteCount == 132)
        #expect(try store.insert(TemporaryStore.message(8)) == 8)
    }

    @Test("A file of the third version is brought up to date: its messages have no suspicious ends")
    func third() throws {
        let temporary = try TemporaryStore.filled(2)
        temporary.execute(
            """
            ALTER TABLE message DROP COLUMN suspicious_ends;
            ALTER TABLE message DROP COLUMN options;
            ALTER TABLE message DROP COLUMN is_adapted;
            ALTER TABLE message DROP COLUMN needs_token;
            DROP TABLE stream;
            PRAGMA user_version = 3
            """
        )
        var store = try temporary.open()
        #expect(try store.messages().map(\.suspiciousEnds) == [0, 0])
        store.setSuspiciousEnds(2, of: 2)
        store.close()
        store = try temporary.open()
        #expect(try store.messages().map(\.suspiciousEnds) == [0, 2])
    }

    @Test(
        "A file of the fourth version is brought up to date: interceptors have adapted its messages"
    )
    func fourth() throws {
        let temporary = try TemporaryStore.filled(2)
        temporary.execute(
            """
            ALTER TABLE message DROP COLUMN is_adapted;
            ALTER TABLE message DROP COLUMN needs_token;
            ALTER TABLE message DROP COLUMN options;
            DROP TABLE stream;
            PRAGMA user_version = 4
            """
        )
        let store = try temporary.open()
        var message = TemporaryStore.message(3)
        message.needsToken = false
        _ = try store.insert(message)
        #expect(try store.messages().map(\.isAdapted) == [true, true, false])
        #expect(try store.messages().map(\.needsToken) == [true, true, false])
    }

    @Test("A file of the fifth version is brought up to date: it has no progress of streams")
    func fifth() throws {
        let temporary = try TemporaryStore.filled(2)
        temporary.execute(
            "ALTER TABLE message DROP COLUMN options; DROP TABLE stream; PRAGMA user_version = 5"
        )
        let store = try temporary.open()
        #expect(try store.lastEventID(of: "a") == nil)
        store.setLastEventID("1", of: "a")
        #expect(try store.lastEventID(of: "a") == "1" && store.messages().count == 2)
    }

    @Test("A file of the second version is brought up to date, and keeps its messages and stages")
    func second() throws {
        let temporary = try TemporaryStore()
        temporary.execute(
            """
            PRAGMA application_id = 1466061684;
            PRAGMA user_version = 2;
            CREATE TABLE message (
                id INTEGER PRIMARY KEY, topic TEXT NOT NULL, body BLOB NOT NULL, content_type TEXT,
                headers BLOB NOT NULL, qos INTEGER NOT NULL, is_retained INTEGER NOT NULL,
                stored INTEGER NOT NULL, expiry INTEGER, attempts INTEGER NOT NULL DEFAULT 0,
                size INTEGER NOT NULL
            );
            CREATE TABLE pending_unsubscribe (position INTEGER PRIMARY KEY, filter TEXT NOT NULL);
            CREATE TABLE store (key INTEGER PRIMARY KEY CHECK (key = 1), last INTEGER NOT NULL);
            INSERT INTO store VALUES (1, 0);
            ALTER TABLE message ADD COLUMN stage INTEGER NOT NULL DEFAULT 1;
            ALTER TABLE store ADD COLUMN session TEXT;
            CREATE TABLE received (identifier INTEGER PRIMARY KEY);
            INSERT INTO message (id, topic, body, content_type, headers, qos, is_retained, stored, expiry, size, attempts,
                stage)
            VALUES (3, 't/3', x'61', 'text/plain', x'', 2, 1, 1000, 4000000000000, 150, 0, 2),
                (4, 't/4', x'62', NULL, x'', 1, 0, 1000, NULL, 150, 2, 1);
            UPDATE store SET last = 7, session = 'ada';
            INSERT INTO received VALUES (9);
            """
        )
        var store = try temporary.open()
        #expect(try store.beginSession("ada"))
        var kept = StoredMessage(
            topic: "t/3",
            body: [0x61],
            contentType: "text/plain",
            qos: 2,
            expiry: Date(timeIntervalSince1970: 4_000_000_000),
            options: [StoredOption("retained", .flag(true))]
        )
        (kept.id, kept.attempts, kept.stage) = (3, 1, .released)
        kept.isAdapted = true
        #expect(try store.messages().first == kept)
        #expect(try store.receivedIdentifiers() == [9])
        // Both have 3 bytes of the topic, 1 of the body and 128, and one has 10 of the content type.
        #expect(store.byteCount == 274)
        let options = [StoredOption("correlationData", .bytes([1, 2]))]
        let message = StoredMessage(topic: "t/8", body: [], qos: 1, options: options)
        #expect(try store.insert(message) == 8)
        store.close()
        store = try temporary.open()
        #expect(try store.messages().numbers == [3, 4, 8])
        #expect(try store.messages().map(\.options) == [kept.options, [], options])
        // The options have 21 bytes: format, name, kind and value, with two lengths.
        #expect(store.byteCount == 274 + 131 + 21)
    }

    @Test("A folder that is not there, and a URL that is no file's")
    func cannotOpen() throws {
        let error = #expect(throws: SQLiteStoreError.self) {
            try SQLiteSessionStore(path: "/nowhere/at/all/store")
        }
        #expect(error?.reason == .cannotOpen)
        let url = try #require(URL(string: "https://example.com/store"))
        #expect(throws: SQLiteStoreError.self) { try SQLiteSessionStore(url: url) }
    }

    @Test("Only the owner may read the file and its log")
    func permissions() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        _ = try store.insert(TemporaryStore.message(1))
        for path in [temporary.path, temporary.path + "-wal"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        store.close()
    }

    @Test("A log cut short at any byte of the last write: all earlier messages are there")
    func cutShort() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        for number in 0..<3 { _ = try store.insert(TemporaryStore.message(number, byteCount: 700)) }
        let log = URL(fileURLWithPath: temporary.path + "-wal")
        let file = try Data(contentsOf: URL(fileURLWithPath: temporary.path))
        let before = try Data(contentsOf: log)
        _ = try store.insert(TemporaryStore.message(3, byteCount: 700))
        let after = try Data(contentsOf: log)
        // The log only grows, and the file is not written before the log is full.
        #expect(after.count > before.count && after.prefix(before.count) == before)
        #expect(try Data(contentsOf: URL(fileURLWithPath: temporary.path)) == file)
        store.close()

        let copy = try TemporaryStore(inMemory: true)
        let copiedLog = URL(fileURLWithPath: copy.path + "-wal")
        // Seven is prime, so the cuts are at different places in each frame.
        let cuts = stride(from: before.count, to: after.count, by: 7)
        for count in Array(cuts) + [after.count - 1, after.count] {
            try file.write(to: URL(fileURLWithPath: copy.path))
            try after.prefix(count).write(to: copiedLog)
            let store = try copy.open()
            let expected = count == after.count ? [0, 1, 2, 3] : [0, 1, 2]
            #expect(try store.messages().numbers == expected, "\(count) bytes")
            store.close()
        }
        print("a store was cut within \(after.count - before.count) bytes")
    }
}
