import Dispatch
public import Waybill
import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A session store in a file, by the system's SQLite.
///
/// ```swift
/// var configuration = MQTTConfiguration()
/// configuration.store = try SQLiteSessionStore(path: "outbox.sqlite")
/// ```
///
/// One store has the file at a time, of all processes. A file serves one transport: two transports would send each
/// other's messages again.
///
/// One serial queue writes the file. Callers that store messages at the same time wait for one transaction together.
/// Nothing that an event loop calls waits for the disk.
public final class SQLiteSessionStore: SessionStore {
    /// How long removals wait for a transaction of their own; a message that is stored meanwhile takes them with it.
    private static let removalDelay = DispatchTimeInterval.milliseconds(20)
    /// The time until the next attempt after a failed one.
    private static let retryDelay = DispatchTimeInterval.seconds(1)

    private let file: SQLiteFile
    private let options: Options
    private let clock: @Sendable () -> Date
    /// The only user of the file.
    private let queue = DispatchQueue(label: "waybill.session-store")
    private let state: Locked<State>

    private struct State {
        var backlog: SQLiteBacklog
        /// Whether a transaction follows without a delay, or after one.
        var isDue = false
        var isPlanned = false
    }

    // MARK: Opening and closing

    /// Opens a store, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - path: The path of the file; its folder must exist. SQLite keeps its log in the same folder.
    ///   - options: The options.
    /// - Throws: ``SQLiteStoreError``: SQLite is missing, the file is in use, damaged, not a store, of a newer version,
    ///     or cannot be opened.
    public convenience init(path: String, options: Options = Options()) throws(SQLiteStoreError) {
        try self.init(path: path, options: options, now: { Date() })
    }

    /// Opens a store, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - url: The URL of the file; its folder must exist. SQLite keeps its log in the same folder.
    ///   - options: The options.
    /// - Throws: ``SQLiteStoreError``, as ``init(path:options:)``; `cannotOpen` for a URL that is not a file's.
    public convenience init(url: URL, options: Options = Options()) throws(SQLiteStoreError) {
        guard url.isFileURL else {
            throw SQLiteStoreError(.cannotOpen, "not the URL of a file", path: url.path)
        }
        try self.init(path: url.path, options: options)
    }

    /// - Parameters:
    ///   - path: The path of the file.
    ///   - options: The options.
    ///   - now: The time, for the age of messages.
    /// - Throws: ``SQLiteStoreError``.
    package init(
        path: String,
        options: Options,
        now: @escaping @Sendable () -> Date
    ) throws(SQLiteStoreError) {
        let file = try Self.open(path, options)
        let (last, sizes) = try file.sizes()
        self.file = file
        self.options = options
        clock = now
        state = Locked(
            State(
                backlog: SQLiteBacklog(
                    path: path,
                    maximumByteCount: options.maximumByteCount,
                    isBatched: options.synchronization.isBatched,
                    last: last,
                    sizes: sizes
                )
            )
        )
    }

    private static func open(
        _ path: String,
        _ options: Options
    ) throws(SQLiteStoreError) -> SQLiteFile {
        do {
            return try SQLiteFile(path: path, options.synchronization)
        } catch {
            guard error.reason == .corrupt, options.whenCorrupt == .setAside else { throw error }
            let renamed = try SQLiteFile.setAside(path)
            options.onEvent?(.setAside(path: renamed, error))
            return try SQLiteFile(path: path, options.synchronization)
        }
    }

    deinit {
        // Closing writes the log to the file. The last reference may be that of an event loop.
        queue.async { [file] in file.close() }
    }

    /// Writes what waits, and lets go of the file.
    ///
    /// Blocks the thread meanwhile. Messages are refused from now on. Without a call the file is closed soon after the
    /// last reference to the store is gone.
    public func close() {
        queue.sync {
            drain()
            let calls = state.withLock { $0.backlog.close() }
            file.close()
            for call in calls { call() }
        }
    }

    /// Writes what waits, and returns when that is on the disk.
    ///
    /// - Throws: ``SQLiteStoreError``, if it could not be written; the store tries it again.
    public func flush() async throws(SQLiteStoreError) {
        let result: Result<Void, SQLiteStoreError> = await withCheckedContinuation { continuation in
            state.withLock { $0.backlog.flush { continuation.resume(returning: $0) } }
            plan()
        }
        try result.get()
    }

    // MARK: Messages

    /// Stores a message durably before it returns, as ``Options/synchronization`` states; blocks the thread meanwhile.
    ///
    /// - Parameter message: The message; its number is ignored.
    /// - Returns: The message's number.
    /// - Throws: ``SQLiteStoreError``.
    public func insert(_ message: StoredMessage) throws(SQLiteStoreError) -> StoredMessage.ID {
        let answer = Answer()
        submit(message) { answer.set($0) }
        while true {
            if let result = answer.result { return try result.get() }
            queue.sync { _ = writeBatch() }
        }
    }

    /// Stores a message durably, as ``Options/synchronization`` states, and suspends the caller meanwhile.
    ///
    /// - Parameter message: The message; its number is ignored.
    /// - Returns: The message's number.
    /// - Throws: ``SQLiteStoreError``.
    public func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
        try await withCheckedThrowingContinuation { continuation in
            submit(message) { continuation.resume(with: $0) }
        }
    }

    private func submit(_ message: StoredMessage, _ completion: @escaping SQLiteBacklog.Completion)
    {
        let call = state.withLock { $0.backlog.add(message, completion) }
        call?()
        plan()
    }

    /// Removes a message, soon after the call returns.
    public func remove(_ id: StoredMessage.ID) {
        state.withLock { $0.backlog.remove(id) }
        plan()
    }

    /// Removes messages that are too old, and returns all others in the order of their numbers; blocks the thread.
    ///
    /// Each call counts an attempt for each message.
    ///
    /// - Throws: ``SQLiteStoreError``.
    public func messages() throws(SQLiteStoreError) -> [StoredMessage] {
        try onQueue { () throws(SQLiteStoreError) in
            let expired = try file.removeExpired(at: clock(), options.maximumAge)
            state.withLock { $0.backlog.noteRemoved(expired.map(\.id)) }
            for message in expired { options.onEvent?(.expired(message)) }
            return try file.takeMessages()
        }
    }

    /// Removes everything; blocks the thread until that is written.
    public func removeAll() {
        let calls = state.withLock { $0.backlog.removeAll() }
        for call in calls { call() }
        queue.sync { drain() }
        plan()
    }

    /// The number of bytes that count for ``Options/maximumByteCount``.
    public var byteCount: Int { state.withLock { $0.backlog.byteCount } }

    /// What waits to be written: messages, their bytes, changes, and callers that wait for room.
    package var waiting: (messages: Int, bytes: Int, changes: Int, callers: Int) {
        state.withLock { state in
            let backlog = state.backlog
            return (
                backlog.waitingCount, backlog.waitingByteCount, backlog.changeCount,
                backlog.callerCount
            )
        }
    }

    // MARK: The session

    /// Replaces the list of filters, soon after the call returns.
    public func setPendingUnsubscribes(_ filters: [String]) {
        state.withLock { $0.backlog.change { $0.filters = filters } }
        plan()
    }

    /// Returns the filters that were stored last; blocks the thread.
    public func pendingUnsubscribes() -> [String] {
        (try? onQueue { () throws(SQLiteStoreError) in try file.filters() }) ?? []
    }

    /// Begins to keep the exchanges of a session; blocks the thread.
    ///
    /// - Parameter name: The client identifier.
    /// - Returns: True.
    public func beginSession(_ name: String) -> Bool {
        let isKnown: Bool? = try? onQueue { () throws(SQLiteStoreError) in
            let known = try file.session()
            return known.map { Array($0.utf8) } == Array(name.utf8)
        }
        guard let isKnown else { return false }
        guard !isKnown else { return true }
        state.withLock { $0.backlog.beginSession(name) }
        queue.sync { drain() }
        return true
    }

    /// Forgets the stages and the identifiers, soon after the call returns.
    public func loseSession() {
        state.withLock { $0.backlog.loseSession() }
        plan()
    }

    /// Stores a stage, and calls `done` on the thread that writes.
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

    /// Stores the identifier of a received message, and calls `done` on the thread that writes.
    public func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.backlog.change { $0.received[identifier] = true }
            state.backlog.afterNextTransaction(done)
        }
        plan()
    }

    /// Removes an identifier, and calls `done` on the thread that writes.
    public func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.backlog.change { $0.received[identifier] = false }
            state.backlog.afterNextTransaction(done)
        }
        plan()
    }

    /// Returns the stored identifiers; blocks the thread.
    public func receivedIdentifiers() -> [UInt16] {
        (try? onQueue { () throws(SQLiteStoreError) in try file.received() }) ?? []
    }

    // MARK: The queue

    /// Writes what waits, then runs `body` with the file.
    private func onQueue<Result>(
        _ body: () throws(SQLiteStoreError) -> Result
    ) throws(SQLiteStoreError) -> Result {
        let result = queue.sync { () -> Swift.Result<Result, SQLiteStoreError> in
            drain()
            do throws(SQLiteStoreError) { return .success(try body()) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Has the queue write what waits: at once if a caller waits for it, else after a delay.
    private func plan() {
        enum Plan { case now, later, none }
        let plan = state.withLock { state -> Plan in
            guard !state.backlog.isEmpty || state.backlog.isAwaited else { return .none }
            if state.backlog.isAwaited {
                guard !state.isDue else { return .none }
                state.isDue = true
                return .now
            }
            guard !state.isDue, !state.isPlanned else { return .none }
            state.isPlanned = true
            return .later
        }
        // The work keeps the store until it is written.
        switch plan {
        case .none: break
        case .now: queue.async { self.writeNext() }
        case .later: queue.asyncAfter(deadline: .now() + delay) { self.writeNext() }
        }
    }

    private var delay: DispatchTimeInterval {
        guard case .batched(let interval) = options.synchronization else {
            return Self.removalDelay
        }
        return .nanoseconds(Int(clamping: Int64(max(0, min(interval / .nanoseconds(1), 1e18)))))
    }

    private func writeNext() {
        if writeBatch() {
            plan()
        } else {
            state.withLock { $0.isPlanned = true }
            queue.asyncAfter(deadline: .now() + Self.retryDelay) { self.writeNext() }
        }
    }

    /// Writes everything that waits, unless it fails.
    private func drain() {
        while writeBatch(), state.withLock({ !$0.backlog.isEmpty }) {}
    }

    /// Writes one transaction.
    ///
    /// - Returns: False if something has to be tried again.
    private func writeBatch() -> Bool {
        let batch = state.withLock { state in
            (state.isDue, state.isPlanned) = (false, false)
            return state.backlog.takeBatch()
        }
        var calls: [@Sendable () -> Void] = batch.changes.completions
        var failure: SQLiteStoreError?
        do throws(SQLiteStoreError) {
            try write(batch.insertions, batch)
            for insertion in batch.insertions {
                guard let completion = insertion.completion else { continue }
                calls.append { completion(.success(insertion.message.id)) }
            }
        } catch {
            failure = error
            // Removals free the room that the messages lack.
            let areChangesWritten = (try? write([], batch)) != nil
            calls += state.withLock { state in
                if !areChangesWritten { state.backlog.putBack(batch.changes) }
                return state.backlog.fail(batch.insertions, error)
            }
            options.onEvent?(.writeFailed(error))
        }
        calls += state.withLock { $0.backlog.acceptWaiting() }
        let result: Result<Void, SQLiteStoreError> = failure.map { .failure($0) } ?? .success(())
        for call in calls { call() }
        for flush in batch.flushes { flush(result) }
        return failure == nil
    }

    private func write(
        _ insertions: [SQLiteBacklog.Insertion],
        _ batch: SQLiteBacklog.Batch
    ) throws(SQLiteStoreError) {
        try file.write(insertions, batch.changes, last: batch.last, at: clock())
    }
}

extension SQLiteSessionStore.Synchronization {
    var isBatched: Bool {
        if case .batched = self { true } else { false }
    }
}

/// The result of a message, for a thread that waits for it.
private final class Answer: Sendable {
    private let state = Locked<Result<StoredMessage.ID, SQLiteStoreError>?>(nil)

    var result: Result<StoredMessage.ID, SQLiteStoreError>? { state.withLock { $0 } }

    func set(_ result: Result<StoredMessage.ID, SQLiteStoreError>) {
        state.withLock { $0 = result }
    }
}

extension SQLiteSessionStore: CustomReflectable {
    /// Empty: stored messages are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
