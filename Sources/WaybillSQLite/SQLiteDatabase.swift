import CWaybillSQLite

/// A value that SQLite stores.
enum SQLiteValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
}

/// One connection to a database file, with its prepared statements; one thread at a time may use it.
final class SQLiteDatabase {
    /// How long opening waits for another connection to let go of the file, in milliseconds.
    private static let busyTimeout: Int32 = 500

    private let path: String
    private let handle: UnsafeMutableRawPointer
    private var statements: [SQLiteStatement: UnsafeMutableRawPointer] = [:]
    /// Released after the file is closed.
    let claim: SQLiteFileClaim
    /// The log, which SQLite keeps open; nil before it does.
    private var log: SQLiteFileIdentity?

    /// Opens the file.
    ///
    /// - Parameters:
    ///   - claim: The file.
    ///   - path: The path for errors.
    ///   - isReading: Whether the file alone is read, as it is, without a lock and without its log.
    /// - Throws: ``SQLiteStoreError``.
    init(
        _ claim: SQLiteFileClaim,
        path: String,
        isReading: Bool = false
    ) throws(SQLiteStoreError) {
        var opened: UnsafeMutableRawPointer?
        let code =
            isReading
            ? waybill_sqlite_open_reading(claim.readingURI, &opened)
            : waybill_sqlite_open(claim.path, Self.busyTimeout, &opened)
        guard let opened, code == WAYBILL_SQLITE_OK else {
            let error = Self.error(code, opened, path)
            waybill_sqlite_close(opened)
            throw error
        }
        self.path = path
        self.claim = claim
        handle = opened
    }

    /// Has closing leave the log as it is, for a file that is not a store or is damaged.
    func keepLog(_ keepsLog: Bool) {
        waybill_sqlite_keep_log(handle, keepsLog ? 1 : 0)
    }

    /// Notes the log that SQLite has opened.
    func noteLog() {
        log = SQLiteFileIdentity.of(claim.path + "-wal")
    }

    /// Whether the paths still lead to the open file and to its open log.
    var isCurrent: Bool {
        claim.isCurrent && SQLiteFileIdentity.of(claim.path + "-wal") == log
    }

    deinit {
        for statement in statements.values { waybill_sqlite_finalize(statement) }
        waybill_sqlite_close(handle)
    }

    /// Runs statements without parameters and results.
    func execute(_ sql: String) throws(SQLiteStoreError) {
        try check(waybill_sqlite_execute(handle, sql))
    }

    /// Runs a prepared statement to its end.
    func run(_ statement: SQLiteStatement, _ values: SQLiteValue...) throws(SQLiteStoreError) {
        try query(statement, values) { _ in }
    }

    /// Runs a prepared statement, and calls `body` with each row of its result.
    func rows(
        _ statement: SQLiteStatement,
        _ values: [SQLiteValue] = [],
        body: (SQLiteRow) -> Void
    ) throws(SQLiteStoreError) {
        try query(statement, values, body)
    }

    /// Prepares a statement, so that a file without its tables is noticed.
    func prepare(_ statement: SQLiteStatement) throws(SQLiteStoreError) {
        _ = try prepared(statement)
    }

    /// Returns the integer in the first column of the last row; 0 if there is none.
    func integer(_ sql: String) throws(SQLiteStoreError) -> Int64 {
        var value: Int64?
        try once(sql) { value = $0.integer(0) }
        return value ?? 0
    }

    /// Returns the text in the first column of the last row; empty if there is none.
    func text(_ sql: String) throws(SQLiteStoreError) -> String {
        var value: String?
        try once(sql) { value = $0.text(0) }
        return value ?? ""
    }

    // MARK: Statements

    private func query(
        _ statement: SQLiteStatement,
        _ values: [SQLiteValue],
        _ body: (SQLiteRow) -> Void
    ) throws(SQLiteStoreError) {
        let prepared = try prepared(statement)
        defer { waybill_sqlite_reset(prepared) }
        for (index, value) in values.enumerated() {
            try bind(value, at: Int32(index + 1), of: prepared)
        }
        try step(prepared, body)
    }

    private func once(_ sql: String, _ body: (SQLiteRow) -> Void) throws(SQLiteStoreError) {
        var prepared: UnsafeMutableRawPointer?
        try check(waybill_sqlite_prepare(handle, sql, &prepared))
        defer { waybill_sqlite_finalize(prepared) }
        guard let prepared else { return }
        try step(prepared, body)
    }

    private func step(
        _ prepared: UnsafeMutableRawPointer,
        _ body: (SQLiteRow) -> Void
    ) throws(SQLiteStoreError) {
        while true {
            let code = waybill_sqlite_step(prepared)
            switch code {
            case Int32(WAYBILL_SQLITE_ROW): body(SQLiteRow(statement: prepared))
            case Int32(WAYBILL_SQLITE_DONE): return
            default: throw Self.error(code, handle, path)
            }
        }
    }

    private func prepared(
        _ statement: SQLiteStatement
    ) throws(SQLiteStoreError) -> UnsafeMutableRawPointer {
        if let prepared = statements[statement] { return prepared }
        var prepared: UnsafeMutableRawPointer?
        try check(waybill_sqlite_prepare(handle, statement.rawValue, &prepared))
        guard let prepared else { throw SQLiteStoreError(.failed, "no statement", path: path) }
        statements[statement] = prepared
        return prepared
    }

    private func bind(
        _ value: SQLiteValue,
        at index: Int32,
        of statement: UnsafeMutableRawPointer
    ) throws(SQLiteStoreError) {
        switch value {
        case .null: break
        case .integer(let integer):
            try check(waybill_sqlite_bind_integer(statement, index, integer))
        case .text(var text):
            let code = try text.withUTF8Bytes(path) { bytes, count in
                waybill_sqlite_bind_text(statement, index, bytes, count)
            }
            try check(code)
        case .blob(let bytes):
            let count = try Self.count(bytes.count, path)
            let code = bytes.withUnsafeBytes {
                waybill_sqlite_bind_blob(statement, index, $0.baseAddress, count)
            }
            try check(code)
        }
    }

    /// Converts a number of bytes; SQLite counts in 32 bits.
    fileprivate static func count(
        _ count: Int,
        _ path: String
    ) throws(SQLiteStoreError) -> Int32 {
        guard let count = Int32(exactly: count) else {
            throw SQLiteStoreError(.full, "a value is longer than 2 GiB", path: path)
        }
        return count
    }

    // MARK: Errors

    private func check(_ code: Int32) throws(SQLiteStoreError) {
        guard code != WAYBILL_SQLITE_OK else { return }
        throw Self.error(code, handle, path)
    }

    private static func error(
        _ code: Int32,
        _ handle: UnsafeMutableRawPointer?,
        _ path: String
    ) -> SQLiteStoreError {
        SQLiteStoreError(code: code, String(cString: waybill_sqlite_message(handle)), path: path)
    }
}

extension SQLiteStoreError {
    /// Makes the error for a code of SQLite, with SQLite's text.
    package init(code: Int32, _ text: String, path: String) {
        let primary = code & 0xFF
        // What Apple's SQLite says of a protected file.
        let isDenied = primary == WAYBILL_SQLITE_PERM || primary == WAYBILL_SQLITE_AUTH
        let reason: Reason =
            switch Int(primary) {
            case Int(WAYBILL_SQLITE_BUSY), Int(WAYBILL_SQLITE_LOCKED): .inUse
            case Int(WAYBILL_SQLITE_CORRUPT), Int(WAYBILL_SQLITE_NOTADB): .corrupt
            case Int(WAYBILL_SQLITE_FULL): .diskFull
            case Int(WAYBILL_SQLITE_CANTOPEN), Int(WAYBILL_SQLITE_READONLY): .cannotOpen
            case _ where isDenied: .cannotOpen
            case Int(WAYBILL_SQLITE_IOERR): .diskFailed
            default: .failed
            }
        let why = isDenied ? Self.whyDenied : ""
        self.init(reason, "\(text), SQLite's code \(code)\(why)", path: path)
        isOfStatement = primary == WAYBILL_SQLITE_ERROR
    }
}

extension String {
    /// Calls `body` with the bytes and their number; no byte 0 follows.
    fileprivate mutating func withUTF8Bytes(
        _ path: String,
        _ body: (UnsafePointer<CChar>?, Int32) -> Int32
    ) throws(SQLiteStoreError) -> Int32 {
        let count = try SQLiteDatabase.count(utf8.count, path)
        return withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress, count) }
        }
    }
}
