/// The tables of a store.
enum SQLiteSchema {
    /// Marks a file as a store (`PRAGMA application_id`): "WbSt" in ASCII.
    static let applicationID: Int64 = 0x5762_5374

    /// The version of the tables (`PRAGMA user_version`).
    static var version: Int { migrations.count }

    /// Each script leads from the version of its index to the next one.
    ///
    /// - A script that was released never changes.
    /// - Times are milliseconds since 1970.
    /// - `size` is the number of bytes that count for the limit.
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
    ]
}

/// The prepared statements.
enum SQLiteStatement: String, CaseIterable {
    case begin = "BEGIN IMMEDIATE"
    case commit = "COMMIT"
    case insert = """
        INSERT INTO message (id, topic, body, content_type, headers, qos, is_retained, stored, expiry, size)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    case remove = "DELETE FROM message WHERE id = ?"
    case messages = """
        SELECT id, topic, body, content_type, headers, qos, is_retained, expiry, attempts, stage
        FROM message ORDER BY id
        """
    case sizes = "SELECT id, size FROM message"
    case expired = """
        SELECT id, topic, body, content_type, headers, qos, is_retained, expiry, attempts, stage
        FROM message WHERE expiry <= ? OR stored <= ? ORDER BY id
        """
    case removeExpired = "DELETE FROM message WHERE expiry <= ? OR stored <= ?"
    case countAttempt = "UPDATE message SET attempts = attempts + 1"
    case removeMessages = "DELETE FROM message"
    case filters = "SELECT filter FROM pending_unsubscribe ORDER BY position"
    case insertFilter = "INSERT INTO pending_unsubscribe (filter) VALUES (?)"
    case removeFilters = "DELETE FROM pending_unsubscribe"
    case last = "SELECT max(last, (SELECT ifnull(max(id), 0) FROM message)) FROM store"
    case setLast = "UPDATE store SET last = ?"
    case session = "SELECT session FROM store"
    case setSession = "UPDATE store SET session = ?"
    case setStage = "UPDATE message SET stage = ? WHERE id = ?"
    case resetStages = "UPDATE message SET stage = 1 WHERE stage <> 1"
    case received = "SELECT identifier FROM received ORDER BY identifier"
    case insertReceived = "INSERT OR IGNORE INTO received VALUES (?)"
    case removeReceived = "DELETE FROM received WHERE identifier = ?"
    case removeAllReceived = "DELETE FROM received"
}
