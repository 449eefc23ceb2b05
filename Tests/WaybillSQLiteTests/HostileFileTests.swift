import Foundation
import Testing
import Waybill
import WaybillSQLite
import WireTestSupport

/// Files with values that no store writes: each opens with what can be read, or is refused with an error.
@Suite("A file with hostile values", .timeLimit(.minutes(30))) struct HostileFileTests {
    /// What a change of the file leads to.
    enum Expectation: Sendable {
        /// These messages are read, of 0, 1 and 2; the rest is told with these numbers, 0 for another part of the file.
        case opens([Int], told: [StoredMessage.ID] = [])
        case fails(SQLiteStoreError.Reason)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let sql: String
        let expectation: Expectation
        var testDescription: String { sql }

        init(_ sql: String, _ expectation: Expectation) {
            self.sql = sql
            self.expectation = expectation
        }
    }

    /// The changes to the second message, whose number is 2.
    static let message: [Row] = [
        Row("id = -1", .opens([0, 2], told: [.max])),
        Row("id = 0", .opens([0, 2], told: [0])),
        Row("id = 9223372036854775807", .opens([0, 2], told: [0x7FFF_FFFF_FFFF_FFFF])),
        Row("id = -9223372036854775808", .opens([0, 2], told: [0x8000_0000_0000_0000])),
        Row("id = 4611686018427387905", .opens([0, 2], told: [0x4000_0000_0000_0001])),
        Row("topic = x'74'", .opens([0, 2], told: [2])),
        Row("topic = CAST(x'742FFF' AS TEXT)", .opens([0, 2], told: [2])),
        Row("body = 'text'", .opens([0, 2], told: [2])),
        Row("body = 7", .opens([0, 2], told: [2])),
        Row("body = 1.5", .opens([0, 2], told: [2])),
        Row("body = zeroblob(1000000)", .opens([0, 1, 2])),
        Row("content_type = x'00'", .opens([0, 2], told: [2])),
        Row("content_type = CAST(x'C0' AS TEXT)", .opens([0, 2], told: [2])),
        Row("content_type = 5", .opens([0, 1, 2])),
        Row("headers = 'abcd'", .opens([0, 2], told: [2])),
        Row("headers = 1", .opens([0, 2], told: [2])),
        Row("headers = x'00'", .opens([0, 2], told: [2])),
        Row("headers = x'00000001'", .opens([0, 2], told: [2])),
        Row("headers = x'FFFFFFFF'", .opens([0, 2], told: [2])),
        Row("headers = x'00000001FFFFFFFF'", .opens([0, 2], told: [2])),
        Row("headers = x'0000000100000001FFFFFFFF61'", .opens([0, 2], told: [2])),
        Row("headers = x'0000000100000001800000006161'", .opens([0, 2], told: [2])),
        Row("headers = x'000000010000000100000001FF'", .opens([0, 2], told: [2])),
        Row("headers = x'000000010000000100000001616161'", .opens([0, 2], told: [2])),
        Row("headers = x'0000000100000000'", .opens([0, 1, 2])),
        Row("qos = 0", .opens([0, 2], told: [2])),
        Row("qos = 3", .opens([0, 2], told: [2])),
        Row("qos = 9223372036854775807", .opens([0, 2], told: [2])),
        Row("qos = 'two'", .opens([0, 2], told: [2])),
        Row("qos = x'01'", .opens([0, 2], told: [2])),
        Row("is_retained = -9223372036854775808", .opens([0, 2], told: [2])),
        Row("is_retained = 'x'", .opens([0, 2], told: [2])),
        Row("stored = 'yesterday'", .opens([0, 2], told: [2])),
        Row("stored = 9223372036854775807", .opens([0, 1, 2])),
        Row("stored = 1e300", .opens([0, 2], told: [2])),
        Row("expiry = 'never'", .opens([0, 2], told: [2])),
        Row("expiry = 1e300", .opens([0, 2], told: [2])),
        Row("expiry = 9223372036854775807", .opens([0, 1, 2])),
        Row("expiry = -9223372036854775808", .opens([0, 2])),
        Row("attempts = 9223372036854775807", .opens([0, 1, 2])),
        Row("attempts = -5", .opens([0, 1, 2])),
        Row("attempts = 'many'", .opens([0, 1, 2])),
        Row("size = 9223372036854775807", .opens([0, 1, 2])),
        Row("size = -9223372036854775808", .opens([0, 1, 2])),
        Row("size = 'large'", .opens([0, 1, 2])),
        Row("stage = 0", .opens([0, 2], told: [2])),
        Row("stage = 9223372036854775807", .opens([0, 2], told: [2])),
        Row("stage = 'late'", .opens([0, 2], told: [2])),
        Row("stage = 2", .opens([0, 1, 2])),
        Row("response_topic = x'74'", .opens([0, 2], told: [2])),
        Row("response_topic = CAST(x'742FFF' AS TEXT)", .opens([0, 2], told: [2])),
        Row("response_topic = zeroblob(1000000)", .opens([0, 2], told: [2])),
        Row("response_topic = CAST(zeroblob(1000000) AS TEXT)", .opens([0, 1, 2])),
        Row("response_topic = 5", .opens([0, 1, 2])),
        Row("correlation_data = 'text'", .opens([0, 2], told: [2])),
        Row("correlation_data = 7", .opens([0, 2], told: [2])),
        Row("correlation_data = 1.5", .opens([0, 2], told: [2])),
        Row("correlation_data = zeroblob(1000000)", .opens([0, 1, 2])),
        Row("is_text = 2", .opens([0, 2], told: [2])),
        Row("is_text = -1", .opens([0, 2], told: [2])),
        Row("is_text = 9223372036854775807", .opens([0, 2], told: [2])),
        Row("is_text = 0.5", .opens([0, 2], told: [2])),
        Row("is_text = 'yes'", .opens([0, 2], told: [2])),
        Row("is_text = x'01'", .opens([0, 2], told: [2])),
        Row("is_text = 1", .opens([0, 1, 2])),
        // Flags named "a" and "b", true.
        Row("options = x'010161010101620101'", .opens([0, 1, 2])),
        Row("options = x''", .opens([0, 1, 2])),
        Row("options = x'01'", .opens([0, 2], told: [2])),
        Row("options = x'020161010101620101'", .opens([0, 2], told: [2])),
        Row("options = x'010162010101610101'", .opens([0, 2], told: [2])),
        Row("options = x'010161010101610101'", .opens([0, 2], told: [2])),
        Row("options = x'0101610102'", .opens([0, 2], told: [2])),
        Row("options = x'0101610501'", .opens([0, 2], told: [2])),
        Row("options = x'01FFFFFFFFFFFFFFFF7F'", .opens([0, 2], told: [2])),
        Row("options = x'01016104FFFFFFFFFFFFFFFF7F'", .opens([0, 2], told: [2])),
        Row("options = x'0101610301FF'", .opens([0, 2], told: [2])),
        Row("options = 'text'", .opens([0, 2], told: [2])),
        Row("options = 7", .opens([0, 2], told: [2])),
        Row("options = zeroblob(2000000)", .opens([0, 2], told: [2])),
        Row("is_adapted = 2", .opens([0, 2], told: [2])),
        Row("is_adapted = 'no'", .opens([0, 2], told: [2])),
        Row("needs_token = -1", .opens([0, 2], told: [2])),
        Row("suspicious_ends = -1", .opens([0, 1, 2])),
        Row("suspicious_ends = 9223372036854775807", .opens([0, 1, 2])),
        Row("suspicious_ends = 'many'", .opens([0, 1, 2])),
    ].map { Row("UPDATE message SET \($0.sql) WHERE id = 2", $0.expectation) }

    static let others: [Row] = [
        Row("UPDATE message SET size = 9223372036854775807", .opens([0, 1, 2])),
        Row(
            "UPDATE message SET id = id - 4611686018427387904",
            .opens(
                [],
                told: [
                    0xC000_0000_0000_0001, 0xC000_0000_0000_0002, 0xC000_0000_0000_0003,
                ]
            )
        ),
        Row("DELETE FROM store", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET last = 9223372036854775807", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET last = -1", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET last = 'last'", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET last = x'FFFFFFFFFFFFFFFF'", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET last = 1.5", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET last = 0", .opens([0, 1, 2])),
        Row("UPDATE store SET session = x'61'", .opens([0, 1, 2], told: [0])),
        Row("UPDATE store SET session = CAST(x'FF' AS TEXT)", .opens([0, 1, 2], told: [0])),
        Row("INSERT INTO received VALUES (-1)", .opens([0, 1, 2], told: [0])),
        Row("INSERT INTO received VALUES (0)", .opens([0, 1, 2], told: [0])),
        Row("INSERT INTO received VALUES (65536)", .opens([0, 1, 2], told: [0])),
        Row("INSERT INTO received VALUES (9223372036854775807)", .opens([0, 1, 2], told: [0])),
        Row("INSERT INTO pending_unsubscribe VALUES (-7, x'61')", .opens([0, 1, 2], told: [0])),
        Row(
            "INSERT INTO pending_unsubscribe VALUES (9, CAST(x'FF' AS TEXT))",
            .opens([0, 1, 2], told: [0])
        ),
        Row(
            "INSERT INTO pending_unsubscribe VALUES (9223372036854775807, 'a')",
            .opens([0, 1, 2])
        ),
        Row("DROP TABLE received", .fails(.corrupt)),
        Row("DROP TABLE stream", .fails(.corrupt)),
        Row("INSERT INTO stream VALUES (9223372036854775807, x'61', 'b')", .opens([0, 1, 2])),
        Row("DROP TABLE store", .fails(.corrupt)),
        Row("ALTER TABLE message RENAME COLUMN body TO content", .fails(.corrupt)),
        Row(
            "DROP TABLE received; CREATE VIEW received AS SELECT 1 AS identifier",
            .fails(.corrupt)
        ),
        Row(
            """
            DROP TABLE received;
            CREATE VIEW received AS WITH RECURSIVE n(identifier) AS (SELECT 1 UNION ALL SELECT identifier FROM n)
                SELECT identifier FROM n
            """,
            .fails(.corrupt)
        ),
        Row(
            "CREATE TRIGGER t AFTER UPDATE ON message BEGIN DELETE FROM message; END",
            .fails(.corrupt)
        ),
        Row("CREATE TABLE more (a); CREATE INDEX i ON message (topic)", .opens([0, 1, 2])),
        Row(
            "DROP TABLE store; CREATE TABLE store (key, last, session); INSERT INTO store VALUES ('1', 2, 3), (1, 0, 'a'), (1, 5, x'')",
            .opens([0, 1, 2], told: [0])
        ),
        Row(
            "DROP TABLE received; CREATE TABLE received (identifier); INSERT INTO received VALUES ('a'), (NULL), (7)",
            .opens([0, 1, 2], told: [0, 0])
        ),
        Row(
            """
            ALTER TABLE message RENAME TO old;
            CREATE TABLE message (id, topic, body, content_type, headers, qos, is_retained, stored, expiry, attempts, size,
                stage, response_topic, correlation_data, is_text, suspicious_ends, is_adapted, needs_token, options);
            INSERT INTO message SELECT id, topic, body, content_type, headers, qos, is_retained, stored, expiry,
                attempts, size, stage, response_topic, correlation_data, is_text, suspicious_ends, is_adapted,
                needs_token, options FROM old;
            INSERT INTO message DEFAULT VALUES
            """,
            .opens([0, 1, 2], told: [0])
        ),
        Row("ALTER TABLE message RENAME COLUMN is_text TO was_text", .fails(.corrupt)),
        Row("ALTER TABLE message RENAME COLUMN options TO choices", .fails(.corrupt)),
        Row("PRAGMA user_version = 6", .fails(.corrupt)),
        Row("PRAGMA user_version = 5", .fails(.corrupt)),
        Row("PRAGMA user_version = 4", .fails(.corrupt)),
        Row("PRAGMA user_version = 3", .fails(.corrupt)),
        Row("PRAGMA user_version = 2", .fails(.corrupt)),
        Row("PRAGMA user_version = 1", .fails(.corrupt)),
        Row("PRAGMA user_version = 0", .fails(.corrupt)),
        Row("PRAGMA user_version = -1", .fails(.corrupt)),
        Row("PRAGMA user_version = 2147483647", .fails(.newerVersion)),
        Row("PRAGMA application_id = 0", .fails(.notAStore)),
        Row("PRAGMA application_id = -1", .fails(.notAStore)),
    ]

    /// Uses everything that a store has.
    ///
    /// - Returns: The numbers in the topics of the messages.
    private func use(_ store: SQLiteSessionStore) async throws -> [Int] {
        let messages = try store.messages()
        _ = try store.receivedIdentifiers()
        _ = try store.pendingUnsubscribes()
        _ = try store.beginSession("ada")
        #expect(store.byteCount >= 0 && store.byteCount < 10_000_000)
        for message in messages {
            store.setStage(.released, of: message.id) {}
            #expect(StoredMessage.ID(1)...(1 << 62) ~= message.id && 1...2 ~= message.qos)
        }
        return messages.numbers
    }

    @Test("A value that no store writes", arguments: message + others)
    func value(_ row: Row) async throws {
        let temporary = try TemporaryStore.filled(3, inMemory: true)
        temporary.execute(row.sql)
        let events = StoreEvents()
        switch row.expectation {
        case .fails(let reason):
            let before = try temporary.contents()
            let error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
            #expect(error?.reason == reason, "\(String(describing: error))")
            #expect(try temporary.contents() == before)
        case .opens(let numbers, let told):
            var store = try temporary.open { $0.onEvent = events.note }
            #expect(try await use(store) == numbers)
            #expect(events.unreadable == told)
            // A new message has a number of its own, and the store goes on.
            let id = try store.insert(TemporaryStore.message(9))
            #expect(try store.messages().numbers == numbers + [9])
            store.close()
            store = try temporary.open()
            #expect(try store.messages().map(\.id).last == id)
            store.removeAll()
            #expect(try store.messages().isEmpty && store.byteCount == 0)
            #expect(try store.insert(TemporaryStore.message(10)) > id)
        }
    }

    @Test("A file whose numbers are used up refuses messages, and can be emptied")
    func lastNumber() throws {
        let temporary = try TemporaryStore.filled(3)
        temporary.execute("UPDATE store SET last = 4611686018427387904")
        let store = try temporary.open()
        #expect(try store.messages().numbers == [0, 1, 2])
        let error = #expect(throws: SQLiteStoreError.self) {
            try store.insert(TemporaryStore.message(3))
        }
        #expect(error?.reason == .full)
        #expect(error?.detail.contains("no number left") == true)
    }

    @Test("A file, its log and its journal cut short anywhere")
    func truncated() async throws {
        let source = try TemporaryStore.filled(40, inMemory: true)
        let whole = try Data(contentsOf: URL(fileURLWithPath: source.path))
        let copy = try TemporaryStore(inMemory: true)
        let junk = Data((0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        var opened = 0
        for count in Array(0...200) + Array(stride(from: 201, to: whole.count, by: 97)) {
            try whole.prefix(count).write(to: URL(fileURLWithPath: copy.path))
            if count.isMultiple(of: 3) {
                try junk.prefix(count).write(to: URL(fileURLWithPath: copy.path + "-wal"))
            }
            if count.isMultiple(of: 5) {
                try junk.prefix(count).write(to: URL(fileURLWithPath: copy.path + "-journal"))
            }
            guard await opens(copy) else { continue }
            opened += 1
            #expect(count >= 512)
        }
        print("\(opened) files of \(whole.count) bytes opened that were cut short")
        // The end of the last page may be free.
        #expect(opened < 60)
    }

    @Test("Bits flipped at random, in the file and in its log", arguments: [UInt64(1), 2, 3, 4])
    func flipped(seed: UInt64) async throws {
        let source = try TemporaryStore.filled(30, inMemory: true)
        let whole = try Data(contentsOf: URL(fileURLWithPath: source.path))
        let store = try source.open()
        for number in 30..<40 { _ = try store.insert(TemporaryStore.message(number)) }
        let log = try Data(contentsOf: URL(fileURLWithPath: source.path + "-wal"))
        store.close()
        let copy = try TemporaryStore(inMemory: true)
        var random = SeededGenerator(seed: seed)
        var opened = 0
        let count = 100
        for round in 0..<count {
            var (file, tail) = (whole, log)
            for _ in 0...Int(random.next() % 4) {
                let bit = UInt8(1) << UInt8(random.next() % 8)
                if round.isMultiple(of: 4) {
                    tail[Int(random.next() % UInt64(tail.count))] ^= bit
                } else {
                    // Often within the first kilobyte of a page: heads, lengths and types.
                    let page = Int(random.next() % UInt64(file.count / 4_096)) * 4_096
                    file[page + Int(random.next() % (round.isMultiple(of: 2) ? 1_024 : 4_096))] ^=
                        bit
                }
            }
            try file.write(to: URL(fileURLWithPath: copy.path))
            try tail.write(to: URL(fileURLWithPath: copy.path + "-wal"))
            if await opens(copy) { opened += 1 }
        }
        print("seed \(seed): \(opened) of \(count) flipped files opened")
        // Flips in unused bytes and in the log are no damage of the file.
        #expect(opened > 10 && opened < count)
    }

    /// Opens and uses a file, and removes it.
    ///
    /// - Returns: Whether it opened; else there was an error with a reason.
    private func opens(_ temporary: TemporaryStore) async -> Bool {
        defer {
            for ending in ["", "-wal", "-journal"] {
                try? FileManager.default.removeItem(atPath: temporary.path + ending)
            }
        }
        do {
            let store = try temporary.open { $0.onEvent = { _ in } }
            defer { store.close() }
            do {
                _ = try await use(store)
                _ = try store.insert(TemporaryStore.message(9))
                store.removeAll()
            } catch {
                #expect(error is SQLiteStoreError)
            }
            return true
        } catch {
            let reasons: [SQLiteStoreError.Reason?] = [
                .corrupt, .notAStore, .newerVersion, .failed,
            ]
            let reason = (error as? SQLiteStoreError)?.reason
            #expect(reasons.contains(reason), "\(error)")
            return false
        }
    }
}
