/// The tables of a store.
enum SQLiteSchema {
    /// Marks a file as a store (`PRAGMA application_id`): "WbSt" in ASCII.
    static let applicationID: Int64 = 0x5762_5374

    /// The version of the tables (`PRAGMA user_version`).
    static var version: Int { migrations.count }

    /// The greatest number of a message; a greater one in a file is damage.
    static let maximumNumber: Int64 = 1 << 62
    /// The maximum number of event streams whose last event is known; those that were noted first are forgotten.
    static let maximumStreamCount = 1_000
    /// The maximum size of an event's ID, in bytes; a longer one is not stored.
    static let maximumEventIDSize = 1_024
    /// The maximum size of a message with its topic and headers, in bytes: what SQLite stores in a row is limited.
    static let maximumSize = 900_000_000

    /// Each script leads from the version of its index to the next one.
    ///
    /// - A script that was released never changes.
    /// - Times are milliseconds since 1970.
    /// - `size` is the number of bytes that count for the limit. It is not read: the lengths are counted.
    static let migrations = [
        // Messages, and filters to unsubscribe.
        """
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
        """,
        // The exchanges of a session.
        """
        ALTER TABLE message ADD COLUMN stage INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE store ADD COLUMN session TEXT;
        CREATE TABLE received (identifier INTEGER PRIMARY KEY);
        """,
        // What a reply needs, and the format of the body.
        """
        ALTER TABLE message ADD COLUMN response_topic TEXT;
        ALTER TABLE message ADD COLUMN correlation_data BLOB;
        ALTER TABLE message ADD COLUMN is_text INTEGER;
        """,
        // The connections in a row that the server has ended after a message.
        """
        ALTER TABLE message ADD COLUMN suspicious_ends INTEGER NOT NULL DEFAULT 0;
        """,
        // The entry's own request: interceptors have adapted the messages of earlier versions.
        """
        ALTER TABLE message ADD COLUMN is_adapted INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE message ADD COLUMN needs_token INTEGER NOT NULL DEFAULT 1;
        """,
        // How far event streams have come.
        """
        CREATE TABLE stream (position INTEGER PRIMARY KEY, topic BLOB NOT NULL UNIQUE, last_event_id TEXT NOT NULL);
        """,
        // The options of a message, as `StoredOptions` encodes them; NULL for none. The columns of single options
        // (is_retained, response_topic, correlation_data, is_text) count in rows without it, which earlier versions
        // have written.
        """
        ALTER TABLE message ADD COLUMN options BLOB;
        """,
    ]
}

/// The prepared statements.
enum SQLiteStatement: String, CaseIterable {
    case begin = "BEGIN IMMEDIATE"
    case commit = "COMMIT"
    case insert = """
        INSERT INTO message
            (id, topic, body, content_type, headers, qos, is_retained, stored, expiry, size, attempts, stage,
            suspicious_ends, is_adapted, needs_token, options)
        VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, 0, ?, ?, ?, ?, ?)
        """
    case remove = "DELETE FROM message WHERE id = ?"
    /// The last column is the length of the others that have one, without reading them whole.
    case messages = """
        SELECT id, topic, body, content_type, headers, qos, is_retained, stored, expiry, attempts, stage,
            response_topic, correlation_data, is_text, suspicious_ends, is_adapted, needs_token, options,
            ifnull(length(CAST(topic AS BLOB)), 0) + ifnull(length(body), 0)
            + ifnull(length(CAST(content_type AS BLOB)), 0) + ifnull(length(headers), 0)
            + ifnull(length(CAST(response_topic AS BLOB)), 0) + ifnull(length(correlation_data), 0)
            + ifnull(length(options), 0)
        FROM message ORDER BY id
        """
    case sizes = """
        SELECT id, ifnull(length(CAST(topic AS BLOB)), 0) + ifnull(length(body), 0)
            + ifnull(length(CAST(content_type AS BLOB)), 0) + ifnull(length(headers), 0)
            + ifnull(length(CAST(response_topic AS BLOB)), 0) + ifnull(length(correlation_data), 0)
            + ifnull(length(options), 0)
        FROM message
        """
    case countAttempt = """
        UPDATE message SET attempts = CASE
            WHEN typeof(attempts) = 'integer' AND attempts BETWEEN 0 AND 2147483646 THEN attempts + 1 ELSE 1 END
        """
    case removeMessages = "DELETE FROM message"
    case filters =
        "SELECT filter, length(CAST(filter AS BLOB)) FROM pending_unsubscribe ORDER BY position"
    case insertFilter = "INSERT INTO pending_unsubscribe (filter) VALUES (?)"
    case removeFilters = "DELETE FROM pending_unsubscribe"
    case settings = "SELECT last, session FROM store WHERE key = 1"
    case removeSettings = "DELETE FROM store"
    case insertSettings = "INSERT INTO store (key, last, session) VALUES (1, ?, ?)"
    case setLast = "UPDATE store SET last = ?"
    case setSession = "UPDATE store SET session = ?"
    case setStage = "UPDATE message SET stage = ? WHERE id = ?"
    case setSuspiciousEnds = "UPDATE message SET suspicious_ends = ? WHERE id = ?"
    case resetStages = "UPDATE message SET stage = 1 WHERE stage = 2"
    case received = "SELECT identifier FROM received ORDER BY identifier"
    case insertReceived = "INSERT OR IGNORE INTO received VALUES (?)"
    case removeReceived = "DELETE FROM received WHERE identifier = ?"
    case removeAllReceived = "DELETE FROM received"
    case lastEventID =
        "SELECT last_event_id, length(CAST(last_event_id AS BLOB)) FROM stream WHERE topic = ?"
    case insertStream = "INSERT OR REPLACE INTO stream (topic, last_event_id) VALUES (?, ?)"
    case removeStream = "DELETE FROM stream WHERE topic = ?"
    case removeOldStreams = """
        DELETE FROM stream WHERE position <= (SELECT position FROM stream ORDER BY position DESC LIMIT 1 OFFSET 1000)
        """
    case removeStreams = "DELETE FROM stream"
}
