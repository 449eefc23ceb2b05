import Foundation
import Testing
import WaybillSQLite

/// A file that version 6 has written: its tables have a column for each of four options, and no list of options.
@Suite("A file of the sixth version", .timeLimit(.minutes(30))) struct EarlierVersionTests {
    /// The tables as that version has made them.
    private static let tables = """
        PRAGMA journal_mode = WAL;
        BEGIN IMMEDIATE;
        CREATE TABLE message (
            id INTEGER PRIMARY KEY,
            topic TEXT NOT NULL,
            body BLOB NOT NULL,
            content_type TEXT,
            headers BLOB NOT NULL,
            qos INTEGER NOT NULL,
            is_retained INTEGER NOT NULL,
            stored INTEGER NOT NULL,
            expiry INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0,
            size INTEGER NOT NULL
        );
        CREATE TABLE pending_unsubscribe (position INTEGER PRIMARY KEY, filter TEXT NOT NULL);
        CREATE TABLE store (key INTEGER PRIMARY KEY CHECK (key = 1), last INTEGER NOT NULL);
        INSERT INTO store VALUES (1, 0);
        ALTER TABLE message ADD COLUMN stage INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE store ADD COLUMN session TEXT;
        CREATE TABLE received (identifier INTEGER PRIMARY KEY);
        ALTER TABLE message ADD COLUMN response_topic TEXT;
        ALTER TABLE message ADD COLUMN correlation_data BLOB;
        ALTER TABLE message ADD COLUMN is_text INTEGER;
        ALTER TABLE message ADD COLUMN suspicious_ends INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE message ADD COLUMN is_adapted INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE message ADD COLUMN needs_token INTEGER NOT NULL DEFAULT 1;
        CREATE TABLE stream (position INTEGER PRIMARY KEY, topic BLOB NOT NULL UNIQUE, last_event_id TEXT NOT NULL);
        PRAGMA application_id = 1466061684;
        PRAGMA user_version = 6;
        COMMIT;
        """

    /// A message of each kind, by the statement of that version.
    private static let messages = """
        INSERT INTO message
            (id, topic, body, content_type, headers, qos, is_retained, stored, expiry, size, attempts, stage,
            response_topic, correlation_data, is_text, suspicious_ends, is_adapted, needs_token)
        VALUES
            (1, 't/1', x'61', NULL, x'', 1, 0, 1000, NULL, 132, 0, 1, NULL, NULL, NULL, 0, 0, 1),
            (2, 't/2', x'00FF', 'a/b', x'000000010000000200000001610000000162', 2, 1, 1000, 4000000000500, 153, 3, 1,
                'r/ü', x'00FF', 1, 2, 0, 0),
            (3, 't/3', x'', NULL, x'', 2, 0, 1000, NULL, 131, 0, 2, '', x'', 0, 0, 0, 1),
            (4, 't/4', x'62', NULL, x'', 1, 1, 1000, NULL, 132, 0, 1, NULL, NULL, NULL, 0, 1, 1),
            (5, 't/5', x'63', NULL, x'', 1, 0, 1000, NULL, 132, 0, 1, NULL, x'01', NULL, 0, 0, 1),
            (6, 't/6', x'64', NULL, x'', 1, 0, 1000, NULL, 132, 0, 1, NULL, NULL, 1, 0, 0, 1);
        UPDATE store SET last = 9, session = 'ada';
        INSERT INTO received VALUES (7);
        INSERT INTO pending_unsubscribe (filter) VALUES ('a/#');
        INSERT INTO stream (topic, last_event_id) VALUES (x'65', 'e-1');
        """

    /// The messages, with the attempt that reading counts.
    private static let expected: [StoredMessage] = {
        func message(
            _ id: UInt64,
            _ body: [UInt8],
            qos: Int = 1,
            _ options: [StoredOption] = [],
            _ change: (inout StoredMessage) -> Void = { _ in }
        ) -> StoredMessage {
            var message = StoredMessage(topic: "t/\(id)", body: body, qos: qos, options: options)
            (message.id, message.attempts) = (id, 1)
            change(&message)
            return message
        }
        let retained = StoredOption("retained", .flag(true))
        return [
            message(1, [0x61]),
            message(
                2,
                [0, 255],
                qos: 2,
                [
                    retained, StoredOption("responseTopic", .text("r/ü")),
                    StoredOption("correlationData", .bytes([0, 255])),
                    StoredOption("payloadFormat", .integer(1)),
                ]
            ) {
                $0.contentType = "a/b"
                $0.headers = [["a", "b"]]
                $0.expiry = Date(timeIntervalSince1970: 4_000_000_000.5)
                $0.needsToken = false
                ($0.attempts, $0.suspiciousEnds) = (4, 2)
            },
            message(
                3,
                [],
                qos: 2,
                [
                    StoredOption("responseTopic", .text("")),
                    StoredOption("correlationData", .bytes([])),
                    StoredOption("payloadFormat", .integer(0)),
                ]
            ) { $0.stage = .released },
            message(4, [0x62], [retained]) { $0.isAdapted = true },
            message(5, [0x63], [StoredOption("correlationData", .bytes([1]))]),
            message(6, [0x64], [StoredOption("payloadFormat", .integer(1))]),
        ]
    }()

    private func earlierFile() throws -> TemporaryStore {
        let temporary = try TemporaryStore()
        temporary.execute(Self.tables)
        temporary.execute(Self.messages)
        return temporary
    }

    @Test("Every kind of message is read as it was stored, and the rest of the file, too")
    func read() throws {
        let store = try earlierFile().open()
        #expect(try store.beginSession("ada"))
        #expect(try store.messages() == Self.expected)
        #expect(try store.receivedIdentifiers() == [7])
        #expect(try store.pendingUnsubscribes() == ["a/#"])
        #expect(try store.lastEventID(of: "e") == "e-1")
    }

    @Test(
        "It has a list of options then: new messages have theirs, and older ones keep their columns"
    )
    func continued() async throws {
        let temporary = try earlierFile()
        var store = try temporary.open()
        #expect(try store.beginSession("ada"))
        let byteCount = store.byteCount
        let options = [
            StoredOption("of a later version", .bytes([1, 2, 3])),
            StoredOption("retained", .flag(false)),
        ]
        var message = StoredMessage(topic: "t/10", body: [], qos: 1, options: options)
        message.id = try store.insert(message)
        #expect(message.id == 10)
        store.remove(1)
        try await store.flush()
        store.close()
        store = try temporary.open()
        #expect(try store.beginSession("ada"))
        message.attempts = 1
        #expect(try store.messages() == Self.expected.dropFirst() + [message])
        let size = 128 + 4 + StoredOptions(options).bytes.count
        #expect(store.byteCount == byteCount - 132 + size)
        #expect(try store.lastEventID(of: "e") == "e-1")
    }

    @Test("A migration that fails changes nothing")
    func failing() throws {
        let temporary = try earlierFile()
        temporary.execute("ALTER TABLE message ADD COLUMN options TEXT")
        let before = try temporary.contents()
        let error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
        #expect(error?.reason == .corrupt)
        #expect(try temporary.contents() == before)
    }

    @Test("Options that are too long are refused before anything is written")
    func tooLong() throws {
        let store = try earlierFile().open()
        let data = [UInt8](repeating: 0, count: 1 << 20)
        let message = StoredMessage(
            topic: "t/10",
            body: [],
            qos: 1,
            options: [StoredOption("correlationData", .bytes(data))]
        )
        let error = #expect(throws: SQLiteStoreError.self) { try store.insert(message) }
        #expect(error?.reason == .full)
        #expect(try store.messages().count == 6)
    }

    @Test("An option that is not known outlives other processes, and its bytes do not change")
    func unknown() async throws {
        let temporary = try TemporaryStore()
        var store = try temporary.open()
        let options = [StoredOption("of a later version", .text("x"))]
        let id = try store.insert(StoredMessage(topic: "t/1", body: [], qos: 1, options: options))
        let bytes = StoredOptions(options).bytes.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
        for ends in 0..<3 {
            let messages = try store.messages()
            #expect(messages.map(\.options) == [options])
            #expect(messages.map(\.suspiciousEnds) == [ends])
            store.setSuspiciousEnds(ends + 1, of: id)
            try await store.flush()
            store.close()
            // Fails unless the file has exactly these bytes.
            temporary.execute(
                """
                CREATE TEMP TABLE checked (count INTEGER CHECK (count = 1));
                INSERT INTO checked SELECT count(*) FROM message
                WHERE options = x'\(bytes)' AND suspicious_ends = \(ends + 1);
                """
            )
            store = try temporary.open()
        }
    }
}
