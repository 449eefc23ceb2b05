import CWaybillSQLite

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The steps from a path to a store that is open, checked and up to date.
///
/// | step | changes the file | refuses |
/// | --- | --- | --- |
/// | claim | makes it, if there is none | a file of another store of this process, and what is not a file |
/// | look at the size | no | a file that was cut short or emptied |
/// | look at the header alone | no | the database of another program, a newer version |
/// | lock, and look again with the log | no | a file of another process, and as before |
/// | write-ahead log | the mode in the header | what cannot have one |
/// | check | no | damage |
/// | migrate | yes | tables that the version does not have |
/// | settings | if they cannot be read | |
enum SQLiteOpening {
    private static let missing = """
        SQLite 3 was not found: install libsqlite3-0 (Debian, Ubuntu), sqlite-libs (Fedora, Alpine) or sqlite3 (others)
        """

    /// The least size of a database: that of one small page (sqlite.org/fileformat2.html, 1.3.2).
    private static let leastByteCount: Int64 = 512

    /// Opens the file, makes it if there is none, checks it, and brings its tables up to date.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - options: The options; a damaged file is set aside if they say so.
    /// - Returns: The database, and what to report.
    /// - Throws: ``SQLiteStoreError``.
    static func open(
        _ path: String,
        _ options: SQLiteSessionStore.Options
    ) throws(SQLiteStoreError) -> (SQLiteDatabase, [SQLiteSessionStore.Event]) {
        guard waybill_sqlite_is_available() != 0 else {
            throw SQLiteStoreError(.libraryMissing, missing, path: path)
        }
        let claim = try SQLiteFileClaim(path)
        do {
            return (try open(claim, path, options.synchronization), [])
        } catch {
            guard error.reason == .corrupt, options.whenCorrupt == .setAside else { throw error }
            // The claim on the old file is kept until it has its new name.
            let renamed = try setAside(claim, path)
            let database = try open(SQLiteFileClaim(path), path, options.synchronization)
            return (database, [.setAside(path: renamed, error)])
        }
    }

    /// Opens a file in place of one that is gone.
    ///
    /// A file that has taken its place is set aside, because its messages may have the numbers of other ones. If the log
    /// alone was gone, the same file is opened.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - options: The options.
    ///   - identity: The file, if its log alone is gone; nil if the file itself is.
    /// - Returns: The database, whether it is in another file, and what to report.
    /// - Throws: ``SQLiteStoreError``, also if another process has the other file, or if it is another program's.
    static func replace(
        _ path: String,
        _ options: SQLiteSessionStore.Options,
        instead identity: SQLiteFileIdentity?
    ) throws(SQLiteStoreError) -> (SQLiteDatabase, isAnother: Bool, [SQLiteSessionStore.Event]) {
        let claim = try SQLiteFileClaim(path)
        // The file may have gone since its log was missed.
        let isSame = !claim.isNew && claim.identity == identity
        do {
            let database = try open(claim, path, options.synchronization)
            if claim.isNew || isSame { return (database, !isSame, []) }
        } catch {
            guard error.reason == .corrupt else { throw error }
        }
        let renamed = try setAside(claim, path)
        let database = try open(SQLiteFileClaim(path), path, options.synchronization)
        return (database, true, [.setAside(path: renamed, SQLiteStoreError(.gone, path: path))])
    }

    private static func open(
        _ claim: SQLiteFileClaim,
        _ path: String,
        _ synchronization: SQLiteSessionStore.Synchronization
    ) throws(SQLiteStoreError) -> SQLiteDatabase {
        // SQLite takes an empty file for a new database. It has made none that is shorter than a page.
        guard claim.byteCount >= leastByteCount else {
            throw SQLiteStoreError(.corrupt, "it has only \(claim.byteCount) bytes", path: path)
        }
        try lookAtHeader(claim, path)
        let database = try SQLiteDatabase(claim, path: path)
        // An empty log has nothing to keep, and is removed. The size is an `NSNumber` or a `UInt`, depending on what the
        // app links.
        let log = try? FileManager.default.attributesOfItem(atPath: claim.path + "-wal")
        database.keepLog("\(log?[.size] ?? 0)" != "0")
        // A schema has no function that acts on its own (sqlite.org/security.html).
        try database.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
        // In this mode SQLite keeps the index of the log in memory, so that a file cannot be shared at all
        // (sqlite.org/wal.html, 6).
        try database.execute("PRAGMA locking_mode = EXCLUSIVE")
        try identify(database, path)
        try beginLog(database, path)
        let version = try identify(database, path)
        try check(database, path)
        database.keepLog(false)
        database.noteLog()
        // A committed transaction is in the log: written and, unless `process`, on the disk.
        try database.execute(
            "PRAGMA synchronous = \(synchronization == .process ? "NORMAL" : "FULL")"
        )
        try migrate(database, from: version, path)
        for statement in SQLiteStatement.allCases {
            do { try database.prepare(statement) } catch { throw mismatch(error) }
        }
        return database
    }

    /// Refuses the file of another program before it is locked, or its log is written to it.
    ///
    /// The header may be older than the log, or the file damaged: then the look after the lock decides.
    private static func lookAtHeader(
        _ claim: SQLiteFileClaim,
        _ path: String
    ) throws(SQLiteStoreError) {
        let header: SQLiteDatabase
        do { header = try SQLiteDatabase(claim, path: path, isReading: true) } catch { return }
        let isReadable = (try? header.integer("PRAGMA application_id")) != nil
        if isReadable { try identify(header, path) }
    }

    /// Checks from the header that the file is a store, or new.
    ///
    /// - Returns: The version of its tables; 0 for a new file.
    @discardableResult
    private static func identify(
        _ database: SQLiteDatabase,
        _ path: String
    ) throws(SQLiteStoreError) -> Int {
        let application = try database.integer("PRAGMA application_id")
        // Counts the changes of the tables: 0 if there never was one.
        let changes = try database.integer("PRAGMA schema_version")
        let version = try database.integer("PRAGMA user_version")
        let isOurs = application == SQLiteSchema.applicationID
        let isNew = (isOurs || application == 0) && changes == 0 && version == 0
        guard isOurs || isNew else {
            throw SQLiteStoreError(.notAStore, path: path)
        }
        guard version <= SQLiteSchema.version else {
            throw SQLiteStoreError(
                .newerVersion,
                "the file has version \(version), this package knows \(SQLiteSchema.version)",
                path: path
            )
        }
        guard version > 0 || isNew else {
            throw SQLiteStoreError(.corrupt, "the version is \(version)", path: path)
        }
        return Int(version)
    }

    /// Turns the write-ahead log on, and locks the file until it is closed.
    private static func beginLog(
        _ database: SQLiteDatabase,
        _ path: String
    ) throws(SQLiteStoreError) {
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

    /// Checks the pages, and that nothing in the file acts on its own.
    private static func check(
        _ database: SQLiteDatabase,
        _ path: String
    ) throws(SQLiteStoreError) {
        let result = try database.text("PRAGMA quick_check(1)")
        guard result == "ok" else { throw SQLiteStoreError(.corrupt, result, path: path) }
        let foreign = try database.integer(
            """
            SELECT count(*) FROM sqlite_master WHERE sql IS NOT NULL AND sql NOT LIKE 'CREATE TABLE%'
                AND sql NOT LIKE 'CREATE INDEX%' AND sql NOT LIKE 'CREATE UNIQUE INDEX%'
            """
        )
        guard foreign == 0 else {
            throw SQLiteStoreError(.corrupt, "it has views, triggers or modules", path: path)
        }
    }

    private static func migrate(
        _ database: SQLiteDatabase,
        from version: Int,
        _ path: String
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
            throw mismatch(error)
        }
    }

    /// The error for a statement that does not fit the tables; a failure of the disk or of memory stays what it is.
    private static func mismatch(_ error: SQLiteStoreError) -> SQLiteStoreError {
        guard error.reason == .failed, error.isOfStatement else { return error }
        return SQLiteStoreError(.corrupt, error.detail, path: error.path)
    }

    /// Renames a damaged file, with its log.
    ///
    /// - Returns: The new path.
    private static func setAside(
        _ claim: SQLiteFileClaim,
        _ path: String
    ) throws(SQLiteStoreError) -> String {
        // Another process may have set it aside meanwhile.
        guard claim.isCurrent else { throw SQLiteStoreError(.inUse, path: path) }
        let files = FileManager.default
        let old = claim.path
        let ending = ".corrupt-\(Date().milliseconds)"
        var renamed = old + ending
        while files.fileExists(atPath: renamed) { renamed += "-1" }
        do {
            for ending in ["-wal", "-journal", ""] where files.fileExists(atPath: old + ending) {
                try files.moveItem(atPath: old + ending, toPath: renamed + ending)
            }
        } catch {
            throw SQLiteStoreError(.cannotOpen, "it is damaged, and cannot be renamed", path: path)
        }
        return renamed
    }
}
