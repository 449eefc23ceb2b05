import CWaybillSQLite
import Waybill

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The file of a store: opens and checks it, and reads and writes its tables.
///
/// `@unchecked Sendable`, because: the store uses it on its serial queue alone, and before the queue has any work.
final class SQLiteFile: @unchecked Sendable {
    private let path: String
    private var database: SQLiteDatabase?

    // MARK: Opening

    /// Opens the file, makes it if there is none, checks it, and brings its tables up to date.
    init(
        path: String,
        _ synchronization: SQLiteSessionStore.Synchronization
    ) throws(SQLiteStoreError) {
        self.path = path
        guard waybill_sqlite_is_available() != 0 else {
            throw SQLiteStoreError(.libraryMissing, Self.missing, path: path)
        }
        waybill_sqlite_create_private(path)
        let database = try SQLiteDatabase(path: path)
        self.database = database
        try Self.lock(database, path)
        let version = try Self.check(database, path)
        // A committed transaction is in the log: written and, unless `process`, on the disk.
        try database.execute(
            "PRAGMA synchronous = \(synchronization == .process ? "NORMAL" : "FULL")"
        )
        try Self.migrate(database, from: version)
        for statement in SQLiteStatement.allCases {
            do { try database.prepare(statement) } catch {
                throw SQLiteStoreError(.corrupt, error.detail, path: path)
            }
        }
    }

    private static let missing = """
        SQLite 3 was not found: install libsqlite3-0 (Debian, Ubuntu), sqlite-libs (Fedora, Alpine) or sqlite3 (others)
        """

    /// Locks the file until it is closed, and turns the write-ahead log on.
    ///
    /// In this mode SQLite keeps the index of the log in memory, so that a file cannot be shared at all
    /// (sqlite.org/wal.html, 6).
    private static func lock(
        _ database: SQLiteDatabase,
        _ path: String
    ) throws(SQLiteStoreError) {
        try database.execute("PRAGMA locking_mode = EXCLUSIVE")
        let mode = try database.text("PRAGMA journal_mode = WAL")
        guard mode == "wal" else {
            throw SQLiteStoreError(.cannotOpen, "no write-ahead log: \(mode)", path: path)
        }
        // The lock is taken with the first transaction.
        try database.execute("BEGIN IMMEDIATE; COMMIT")
        // On Apple platforms a write is on the disk only with these; elsewhere they mean nothing.
        try database.execute("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1")
        try database.execute("PRAGMA journal_size_limit = 8388608")
    }

    /// Checks that the file is an undamaged store.
    ///
    /// - Returns: The version of its tables; 0 for a new file.
    private static func check(
        _ database: SQLiteDatabase,
        _ path: String
    ) throws(SQLiteStoreError) -> Int {
        let application = try database.integer("PRAGMA application_id")
        let version = try database.integer("PRAGMA user_version")
        let tables = try database.integer("SELECT count(*) FROM sqlite_master")
        guard application == SQLiteSchema.applicationID || application == 0 && tables == 0 else {
            throw SQLiteStoreError(.notAStore, path: path)
        }
        guard version <= SQLiteSchema.version else {
            throw SQLiteStoreError(
                .newerVersion,
                "the file has version \(version), this package knows \(SQLiteSchema.version)",
                path: path
            )
        }
        let result = try database.text("PRAGMA quick_check(1)")
        guard result == "ok", version >= 0 else {
            throw SQLiteStoreError(.corrupt, result, path: path)
        }
        return Int(version)
    }

    private static func migrate(
        _ database: SQLiteDatabase,
        from version: Int
    ) throws(SQLiteStoreError) {
        guard version < SQLiteSchema.version else { return }
        let scripts = SQLiteSchema.migrations[version...].joined(separator: "\n")
        do {
            try database.execute(
                """
                BEGIN IMMEDIATE;
                \(scripts)
                PRAGMA application_id = \(SQLiteSchema.applicationID);
                PRAGMA user_version = \(SQLiteSchema.version);
                COMMIT;
                """
            )
        } catch {
            try? database.execute("ROLLBACK")
            throw error
        }
    }

    /// Renames a damaged file, with its log.
    ///
    /// - Returns: The new path.
    static func setAside(_ path: String) throws(SQLiteStoreError) -> String {
        let files = FileManager.default
        var renamed = "\(path).corrupt-\(Date().milliseconds)"
        while files.fileExists(atPath: renamed) { renamed += "-1" }
        do {
            for ending in ["-wal", "-journal", ""] where files.fileExists(atPath: path + ending) {
                try files.moveItem(atPath: path + ending, toPath: renamed + ending)
            }
        } catch {
            throw SQLiteStoreError(.cannotOpen, "it is damaged, and cannot be renamed", path: path)
        }
        return renamed
    }

    /// Writes the log to the file, and lets go of it.
    func close() {
        database = nil
    }

    private func open() throws(SQLiteStoreError) -> SQLiteDatabase {
        guard let database else { throw SQLiteStoreError(.closed, path: path) }
        return database
    }

    // MARK: Reading

    /// Returns the last number, and the size of each message.
    func sizes() throws(SQLiteStoreError) -> (last: UInt64, sizes: [StoredMessage.ID: Int]) {
        let database = try open()
        var last: UInt64 = 0
        var sizes: [StoredMessage.ID: Int] = [:]
        try database.rows(.last) { last = UInt64(bitPattern: $0.integer(0)) }
        try database.rows(.sizes) { row in
            sizes[UInt64(bitPattern: row.integer(0))] = Int(clamping: max(0, row.integer(1)))
        }
        return (last, sizes)
    }

    /// Returns all messages, and counts an attempt for each of them.
    func takeMessages() throws(SQLiteStoreError) -> [StoredMessage] {
        try transaction { database throws(SQLiteStoreError) in
            try database.run(.countAttempt)
            return try messages(.messages, of: database)
        }
    }

    /// Removes the messages that are too old.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - maximumAge: The maximum age; nil for no limit.
    /// - Returns: The removed messages.
    /// - Throws: ``SQLiteStoreError``.
    func removeExpired(
        at now: Date,
        _ maximumAge: Duration?
    ) throws(SQLiteStoreError) -> [StoredMessage] {
        let time = now.milliseconds
        let oldest = maximumAge.map { time.subtractingClamped($0.milliseconds) } ?? .min
        let expired = try messages(.expired, [.integer(time), .integer(oldest)], of: open())
        guard !expired.isEmpty else { return [] }
        try transaction { database throws(SQLiteStoreError) in
            try database.run(.removeExpired, .integer(time), .integer(oldest))
        }
        return expired
    }

    private func messages(
        _ statement: SQLiteStatement,
        _ values: [SQLiteValue] = [],
        of database: SQLiteDatabase
    ) throws(SQLiteStoreError) -> [StoredMessage] {
        var messages: [StoredMessage] = []
        var isReadable = true
        try database.rows(statement, values) { row in
            guard let message = StoredMessage(row) else { return isReadable = false }
            messages.append(message)
        }
        guard isReadable else {
            throw SQLiteStoreError(.corrupt, "a message cannot be read", path: path)
        }
        return messages
    }

    func filters() throws(SQLiteStoreError) -> [String] {
        var filters: [String] = []
        try open().rows(.filters) { filters.append($0.text(0)) }
        return filters
    }

    /// The name of the session whose exchanges are stored.
    func session() throws(SQLiteStoreError) -> String? {
        var name: String?
        try open().rows(.session) { name = $0.isNull(0) ? nil : $0.text(0) }
        return name
    }

    func received() throws(SQLiteStoreError) -> [UInt16] {
        var identifiers: [UInt16] = []
        try open().rows(.received) { identifiers.append(UInt16(truncatingIfNeeded: $0.integer(0))) }
        return identifiers
    }

    // MARK: Writing

    /// Writes messages and changes in one transaction: all or nothing.
    func write(
        _ insertions: [SQLiteBacklog.Insertion],
        _ changes: SQLiteChanges,
        last: StoredMessage.ID,
        at now: Date
    ) throws(SQLiteStoreError) {
        guard !insertions.isEmpty || !changes.isEmpty else { return }
        try transaction { database throws(SQLiteStoreError) in
            try write(changes, to: database)
            for insertion in insertions {
                try write(insertion.message, insertion.size, at: now, to: database)
            }
            if !insertions.isEmpty { try database.run(.setLast, .integer(Int64(bitPattern: last))) }
        }
    }

    private func write(
        _ changes: SQLiteChanges,
        to database: SQLiteDatabase
    ) throws(SQLiteStoreError) {
        if changes.isClearing {
            for statement in [SQLiteStatement.removeMessages, .removeFilters, .removeAllReceived] {
                try database.run(statement)
            }
        }
        if changes.isSessionLost {
            try database.run(.resetStages)
            try database.run(.removeAllReceived)
        }
        if let session = changes.session { try database.run(.setSession, .text(session)) }
        for id in changes.removals {
            try database.run(.remove, .integer(Int64(bitPattern: id)))
        }
        for (id, stage) in changes.stages {
            let values = (Int64(stage.rawValue), Int64(bitPattern: id))
            try database.run(.setStage, .integer(values.0), .integer(values.1))
        }
        for (identifier, isKnown) in changes.received {
            try database.run(
                isKnown ? .insertReceived : .removeReceived,
                .integer(Int64(identifier))
            )
        }
        if let filters = changes.filters {
            try database.run(.removeFilters)
            for filter in filters { try database.run(.insertFilter, .text(filter)) }
        }
    }

    private func write(
        _ message: StoredMessage,
        _ size: Int,
        at now: Date,
        to database: SQLiteDatabase
    ) throws(SQLiteStoreError) {
        try database.run(
            .insert,
            .integer(Int64(bitPattern: message.id)),
            .text(message.topic),
            .blob(message.body),
            message.contentType.map { .text($0) } ?? .null,
            .blob(StoredHeaders.bytes(message.headers)),
            .integer(Int64(message.qos)),
            .integer(message.isRetained ? 1 : 0),
            .integer(now.milliseconds),
            message.expiry.map { .integer($0.milliseconds) } ?? .null,
            .integer(Int64(size))
        )
        guard message.stage != .published else { return }
        try database.run(
            .setStage,
            .integer(Int64(message.stage.rawValue)),
            .integer(Int64(bitPattern: message.id))
        )
    }

    private func transaction<Result>(
        _ body: (SQLiteDatabase) throws(SQLiteStoreError) -> Result
    ) throws(SQLiteStoreError) -> Result {
        let database = try open()
        try database.run(.begin)
        do {
            let result = try body(database)
            try database.run(.commit)
            return result
        } catch {
            // Fails if SQLite has done it already.
            try? database.execute("ROLLBACK")
            throw error
        }
    }
}

extension StoredMessage {
    /// Reads a row of `SQLiteStatement.messages`; nil for headers or a stage that no store writes.
    fileprivate init?(_ row: SQLiteRow) {
        guard let headers = StoredHeaders.headers(row.blob(4)),
            let stage = Stage(rawValue: Int(clamping: row.integer(9)))
        else { return nil }
        self.init(
            topic: row.text(1),
            body: row.blob(2),
            contentType: row.isNull(3) ? nil : row.text(3),
            headers: headers,
            qos: Int(clamping: row.integer(5)),
            isRetained: row.integer(6) != 0,
            expiry: row.isNull(7)
                ? nil : Date(timeIntervalSince1970: Double(row.integer(7)) / 1_000)
        )
        id = UInt64(bitPattern: row.integer(0))
        attempts = Int(clamping: row.integer(8))
        self.stage = stage
    }
}

extension Date {
    /// The milliseconds since 1970, within what SQLite stores.
    var milliseconds: Int64 { Int64(exactly: (timeIntervalSince1970 * 1_000).rounded()) ?? .max }
}

extension Duration {
    fileprivate var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000)
        return isTooLong ? .max : product.addingClamped(attoseconds / 1_000_000_000_000_000)
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, isTooFar) = addingReportingOverflow(other)
        return isTooFar ? (other < 0 ? .min : .max) : sum
    }

    fileprivate func subtractingClamped(_ other: Int64) -> Int64 {
        let (difference, isTooFar) = subtractingReportingOverflow(other)
        return isTooFar ? (other < 0 ? .max : .min) : difference
    }
}
