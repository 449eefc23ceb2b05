public import Waybill
import WireCore

/// The exchanges of a session, the filters that were left, and how far event streams have come.
extension SQLiteSessionStore {
    /// Replaces the list of filters, soon after the call returns.
    public func setPendingUnsubscribes(_ filters: [String]) {
        state.withLock { $0.backlog.change { $0.filters = filters } }
        plan()
    }

    /// Returns the filters that were stored last; blocks the thread.
    ///
    /// - Throws: ``SQLiteStoreError``, if the file cannot be read.
    public func pendingUnsubscribes() throws(SQLiteStoreError) -> [String] {
        let limit = Int64(max(0, options.maximumByteCount))
        return told(try onQueue { () throws(SQLiteStoreError) in try file.filters(within: limit) })
    }

    /// Begins to keep the exchanges of a session; blocks the thread.
    ///
    /// - Parameter name: The client identifier.
    /// - Returns: True.
    /// - Throws: ``SQLiteStoreError``, if the file cannot be read. A name that cannot be written is written later, with
    ///     the first stage of the session.
    public func beginSession(_ name: String) throws(SQLiteStoreError) -> Bool {
        try onQueue { () throws(SQLiteStoreError) in
            let known = try file.session()
            guard known.map({ Array($0.utf8) }) != Array(name.utf8) else { return }
            state.withLock { $0.backlog.beginSession(name) }
            _ = writeBatch()
        }
        return true
    }

    /// Forgets the stages and the identifiers, soon after the call returns.
    public func loseSession() {
        state.withLock { $0.backlog.loseSession() }
        plan()
    }

    /// Stores a stage, and calls `done` after the write.
    public func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    ) {
        state.withLock { state in
            state.backlog.setStage(stage, of: id)
            state.backlog.afterNextTransaction(done)
        }
        plan()
    }

    /// Stores a number of suspicious ends, soon after the call returns.
    public func setSuspiciousEnds(_ count: Int, of id: StoredMessage.ID) {
        state.withLock { $0.backlog.setSuspiciousEnds(count, of: id) }
        plan()
    }

    /// Stores the identifier of a received message, and calls `done` after the write.
    public func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.backlog.change { $0.received[identifier] = true }
            state.backlog.afterNextTransaction(done)
        }
        plan()
    }

    /// Removes an identifier, and calls `done` after the write.
    public func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.backlog.change { $0.received[identifier] = false }
            state.backlog.afterNextTransaction(done)
        }
        plan()
    }

    /// Returns the stored identifiers; blocks the thread.
    ///
    /// - Throws: ``SQLiteStoreError``, if the file cannot be read.
    public func receivedIdentifiers() throws(SQLiteStoreError) -> [UInt16] {
        told(try onQueue { () throws(SQLiteStoreError) in try file.received() })
    }

    /// Stores the ID of the last event of a stream, soon after the call returns.
    ///
    /// An ID of more than 1,024 bytes counts as none. Of more than 1,000 streams, those that were noted first are
    /// forgotten.
    public func setLastEventID(_ id: String, of topic: String) {
        let id = id.utf8.count > SQLiteSchema.maximumEventIDSize ? "" : id
        state.withLock { $0.backlog.change { $0.streams[topic] = id } }
        plan()
    }

    /// Returns the ID that was stored last for a stream; blocks the thread.
    ///
    /// - Throws: ``SQLiteStoreError``, if the file cannot be read.
    public func lastEventID(of topic: String) throws(SQLiteStoreError) -> String? {
        try onQueue { () throws(SQLiteStoreError) in try file.lastEventID(of: topic) }
    }

    /// Reports the rows that cannot be read, and returns the others.
    private func told<Value>(_ rows: SQLiteFile.Rows<Value>) -> [Value] {
        for row in rows.unreadable { options.onEvent?(.unreadable(id: row.id, row.error)) }
        return rows.values
    }
}
