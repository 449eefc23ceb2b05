import Waybill
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The file of a store: reads and writes its tables.
///
/// Every value that is read may be damaged: of another type, out of range, or missing. What can be read is returned,
/// and the rest is listed.
///
/// `@unchecked Sendable`, because: the store uses it on its serial queue alone, and before the queue has any work.
final class SQLiteFile: @unchecked Sendable {
    /// What was read from a table.
    struct Rows<Value> {
        var values: [Value] = []
        /// What could not be read: the number of a message, or nil, and the reason.
        var unreadable: [(id: StoredMessage.ID?, error: SQLiteStoreError)] = []
    }

    let path: String
    private var database: SQLiteDatabase?
    /// What is known of a file that is gone, and was closed for that.
    private struct Gone {
        /// Whether another file has to be begun, or the log alone is gone.
        var isAnother: Bool
        let identity: SQLiteFileIdentity
        /// The name of its session.
        let session: String?
    }

    /// Set while the file is closed because it is gone.
    private var gone: Gone?

    init(_ database: SQLiteDatabase, path: String) {
        self.database = database
        self.path = path
    }

    /// Writes the log to the file, and lets go of it.
    func close() {
        database = nil
    }

    private func open() throws(SQLiteStoreError) -> SQLiteDatabase {
        guard let database else {
            throw SQLiteStoreError(gone == nil ? .closed : .gone, path: path)
        }
        return database
    }

    /// Opens a file in place of one that is gone.
    ///
    /// - Returns: What has to be stored anew in another file, nil for the same file; and what to report.
    /// - Throws: ``SQLiteStoreError``. The next call tries it again.
    func replace(
        _ options: SQLiteSessionStore.Options
    ) throws(SQLiteStoreError) -> (loss: Loss?, events: [SQLiteSessionStore.Event]) {
        // Asked while the file is open: another one may get its inode after that.
        let known =
            gone
            ?? database.map { open in
                Gone(
                    isAnother: !open.claim.isCurrent,
                    identity: open.claim.identity,
                    session: (try? session()) ?? nil
                )
            }
        guard let known else { return (nil, []) }
        gone = known
        // Closing writes the log to the file if the log alone was deleted.
        database = nil
        let (opened, isAnother, events) = try SQLiteOpening.replace(
            path,
            options,
            instead: known.isAnother ? nil : known.identity
        )
        (database, gone) = (opened, nil)
        return (isAnother ? Loss(session: known.session) : nil, events)
    }

    /// What the file that is gone had, beside messages.
    struct Loss {
        let session: String?
    }

    private func unreadable(_ what: String) -> SQLiteStoreError {
        SQLiteStoreError(.corrupt, "\(what) cannot be read", path: path)
    }

    // MARK: Reading

    /// Returns the size of each message, without reading them.
    func sizes() throws(SQLiteStoreError) -> [StoredMessage.ID: Int64] {
        var sizes: [StoredMessage.ID: Int64] = [:]
        try open().rows(.sizes) { row in
            guard let id = row.integer(0) else { return }
            sizes[UInt64(bitPattern: id)] = (row.integer(1) ?? 0) + SQLiteBacklog.overhead
        }
        return sizes
    }

    /// Returns the last number; makes the settings anew if they cannot be read.
    ///
    /// - Parameter ids: The numbers of the stored messages.
    /// - Returns: The number, and the damage, if the settings were made anew.
    /// - Throws: ``SQLiteStoreError``.
    func settings(
        _ ids: some Sequence<StoredMessage.ID>
    ) throws(SQLiteStoreError) -> (last: StoredMessage.ID, damage: SQLiteStoreError?) {
        let database = try open()
        let limit = UInt64(SQLiteSchema.maximumNumber)
        let greatest = ids.lazy.filter { $0 <= limit }.max() ?? 0
        var last: Int64?
        var session: String?
        var isReadable = false
        try database.rows(.settings) { row in
            last = row.integer(0).flatMap {
                (0...SQLiteSchema.maximumNumber).contains($0) ? $0 : nil
            }
            session = row.text(1)
            isReadable = last != nil && (session != nil || row.isNull(1))
        }
        let number = max(greatest, last.map(UInt64.init) ?? 0)
        guard !isReadable else { return (number, nil) }
        try transaction { database throws(SQLiteStoreError) in
            try database.run(.removeSettings)
            try database.run(
                .insertSettings,
                .integer(Int64(number)),
                session.map { .text($0) } ?? .null
            )
        }
        return (number, unreadable("a setting (the last number, or the name of the session)"))
    }

    /// Returns messages, in the order of their numbers, each with the time when it was stored.
    ///
    /// - Parameter limit: The greatest sum of their sizes. A message that exceeds it is not read.
    /// - Returns: The messages.
    /// - Throws: ``SQLiteStoreError``.
    func messages(
        within limit: Int64
    ) throws(SQLiteStoreError) -> Rows<(message: StoredMessage, stored: Int64)> {
        var rows = Rows<(message: StoredMessage, stored: Int64)>()
        var rest = limit
        try open().rows(.messages) { row in
            let id = row.integer(0).map { UInt64(bitPattern: $0) }
            let size = (row.integer(SQLiteRow.size) ?? 0) + SQLiteBacklog.overhead
            guard size <= rest else {
                let detail = "the file has more than \(limit) bytes of messages"
                rows.unreadable.append((id, SQLiteStoreError(.full, detail, path: path)))
                return
            }
            do throws(UnreadableColumn) {
                rows.values.append((try StoredMessage(row), row.integer(7) ?? .max))
                rest -= size
            } catch {
                rows.unreadable.append((id, unreadable("the column \(error.name) of a message")))
            }
        }
        return rows
    }

    /// Counts an attempt for each message.
    func countAttempts() throws(SQLiteStoreError) {
        try transaction { database throws(SQLiteStoreError) in try database.run(.countAttempt) }
    }

    /// Returns filters.
    ///
    /// - Parameter limit: The greatest sum of their sizes; a filter that exceeds it is not read.
    /// - Returns: The filters.
    /// - Throws: ``SQLiteStoreError``.
    func filters(within limit: Int64) throws(SQLiteStoreError) -> Rows<String> {
        var rows = Rows<String>()
        var rest = limit
        try open().rows(.filters) { row in
            let size = (row.integer(1) ?? 0) + SQLiteBacklog.overhead
            if size <= rest, let filter = row.text(0) {
                rows.values.append(filter)
                rest -= size
            } else {
                rows.unreadable.append((nil, unreadable("a filter")))
            }
        }
        return rows
    }

    /// What SQLite waits for when a transaction ends (`PRAGMA synchronous`): 1 for nothing, 2 for the disk.
    func synchronousLevel() throws(SQLiteStoreError) -> Int64 {
        try open().integer("PRAGMA synchronous")
    }

    /// The name of the session whose exchanges are stored.
    func session() throws(SQLiteStoreError) -> String? {
        var name: String?
        try open().rows(.settings) { name = $0.text(1) }
        return name
    }

    func received() throws(SQLiteStoreError) -> Rows<UInt16> {
        var rows = Rows<UInt16>()
        try open().rows(.received) { row in
            // 0 is no identifier (MQTT 5, 2.2.1).
            if let identifier = row.integer(0).flatMap({ UInt16(exactly: $0) }), identifier > 0 {
                rows.values.append(identifier)
            } else {
                rows.unreadable.append((nil, unreadable("a packet identifier")))
            }
        }
        return rows
    }

    /// The ID of the last event of a stream; nil for none.
    func lastEventID(of topic: String) throws(SQLiteStoreError) -> String? {
        var (id, isReadable): (String?, Bool) = (nil, true)
        try open().rows(.lastEventID, [.blob(Array(topic.utf8))]) { row in
            // Asked for before the text, which may be long.
            let isShort = (row.integer(1) ?? .max) <= SQLiteSchema.maximumEventIDSize
            id = isShort ? row.text(0) : nil
            isReadable = id != nil
        }
        guard isReadable else { throw unreadable("the last event ID of a stream") }
        return id
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
            let statements = [
                SQLiteStatement.removeMessages, .removeFilters, .removeAllReceived, .removeStreams,
            ]
            for statement in statements { try database.run(statement) }
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
        for (id, count) in changes.ends {
            let values = (Int64(count), Int64(bitPattern: id))
            try database.run(.setSuspiciousEnds, .integer(values.0), .integer(values.1))
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
        for (topic, id) in changes.streams {
            let key = SQLiteValue.blob(Array(topic.text.utf8))
            if id.isEmpty {
                try database.run(.removeStream, key)
            } else {
                try database.run(.insertStream, key, .text(id))
            }
        }
        if !changes.streams.isEmpty { try database.run(.removeOldStreams) }
    }

    private func write(
        _ message: StoredMessage,
        _ size: Int64,
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
            .integer(now.milliseconds),
            message.expiry.map { .integer($0.milliseconds) } ?? .null,
            .integer(size),
            .integer(Int64(message.stage.rawValue)),
            .integer(Int64(message.suspiciousEnds)),
            .integer(message.isAdapted ? 1 : 0),
            .integer(message.needsToken ? 1 : 0),
            message.storedOptions.isEmpty ? .null : .blob(message.storedOptions.bytes)
        )
    }

    private func transaction<Result>(
        _ body: (SQLiteDatabase) throws(SQLiteStoreError) -> Result
    ) throws(SQLiteStoreError) -> Result {
        let database = try open()
        try database.run(.begin)
        do throws(SQLiteStoreError) {
            let result = try body(database)
            // As late as it can be, and before anyone is told that something is stored.
            guard database.isCurrent else { throw SQLiteStoreError(.gone, path: path) }
            try database.run(.commit)
            return result
        } catch {
            // Fails if SQLite has done it already.
            try? database.execute("ROLLBACK")
            throw error
        }
    }
}

extension Date {
    /// The milliseconds since 1970, within what SQLite stores.
    var milliseconds: Int64 { Int64(exactly: (timeIntervalSince1970 * 1_000).rounded()) ?? .max }
}

extension Duration {
    var milliseconds: Int64 {
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

    func subtractingClamped(_ other: Int64) -> Int64 {
        let (difference, isTooFar) = subtractingReportingOverflow(other)
        return isTooFar ? (other < 0 ? .max : .min) : difference
    }
}
