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
/// Nothing that an event loop calls waits for the disk. The functions that are passed in, such as the option `onEvent`,
/// run on other queues or on the thread of the caller, and may call the store.
public final class SQLiteSessionStore: SessionStore {
    /// How long removals wait for a transaction of their own; a message that is stored meanwhile takes them with it.
    static let removalDelay = DispatchTimeInterval.milliseconds(20)
    /// The time until the next attempt after a failed one.
    static let retryDelay = DispatchTimeInterval.seconds(1)

    let file: SQLiteFile
    let options: Options
    let clock: @Sendable () -> Date
    /// The only user of the file; no function that is passed in runs here.
    let queue = DispatchQueue(label: "waybill.session-store")
    /// Runs the `done` of stages and identifiers, in order.
    let callbacks = DispatchQueue(label: "waybill.session-store.done")
    /// Runs ``Options/onEvent`` for what happens in the background.
    let reports = DispatchQueue(label: "waybill.session-store.events")
    let state: Locked<State>

    struct State {
        var backlog: SQLiteBacklog
        /// Whether a transaction follows without a delay, or after one.
        var isDue = false
        var isPlanned = false
        /// The number of messages and changes in the transaction that is being written.
        var writingCount = 0
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

    /// Opens a store on another thread, and makes it if there is none.
    ///
    /// Opening checks the whole file and waits for the disk. The main thread of an app must not wait so long.
    ///
    /// - Parameters:
    ///   - url: The URL of the file; its folder must exist. SQLite keeps its log in the same folder.
    ///   - options: The options.
    /// - Returns: The store.
    /// - Throws: ``SQLiteStoreError``, as ``init(url:options:)``.
    public static func open(
        _ url: URL,
        options: Options = Options()
    ) async throws(SQLiteStoreError) -> SQLiteSessionStore {
        let opened = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let result = Result { () throws(SQLiteStoreError) in
                    try SQLiteSessionStore(url: url, options: options)
                }
                continuation.resume(returning: result)
            }
        }
        return try opened.get()
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
        let (database, events) = try SQLiteOpening.open(path, options)
        let file = SQLiteFile(database, path: path)
        let sizes = try file.sizes()
        let (last, damage) = try file.settings(sizes.keys)
        for event in events + (damage.map { [.unreadable(id: nil, $0)] } ?? []) {
            options.onEvent?(event)
        }
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

    deinit {
        // Closing writes the log to the file. The last reference may be that of an event loop.
        queue.async { [file] in file.close() }
    }

    /// Writes what waits, and lets go of the file.
    ///
    /// Blocks the thread for one transaction, however long the disk takes. Messages are refused from now on. What cannot be written any more is told
    /// by ``Event/lost(_:_:)``. Without a call the file is closed soon after the last reference to the store is
    /// gone, with `batched` after its time at the latest.
    public func close() {
        state.withLock { $0.backlog.close() }
        let (lost, failure) = queue.sync { () -> ([StoredMessage], SQLiteStoreError?) in
            let failure = writeBatch()
            let (lost, calls) = state.withLock { $0.backlog.discard() }
            file.close()
            callbacks.async { for call in calls { call() } }
            return (lost, failure)
        }
        guard let failure else { return }
        for message in lost { options.onEvent?(.lost(message, failure)) }
    }

    /// Writes what waits, and returns when that is on the disk, however long the disk takes.
    ///
    /// - Throws: ``SQLiteStoreError``, if it could not be written; the store tries it again. `closed` if a message was
    ///     removed after ``close()``: it is still in the file.
    public func flush() async throws(SQLiteStoreError) {
        let result: Result<Void, SQLiteStoreError> = await withCheckedContinuation { continuation in
            state.withLock { $0.backlog.flush { continuation.resume(returning: $0) } }
            plan()
        }
        try result.get()
        guard state.withLock({ $0.backlog.ignoredCount == 0 }) else {
            throw SQLiteStoreError(.closed, path: file.path)
        }
    }

    // MARK: Messages

    /// Stores a message durably before it returns, as ``Options/synchronization`` states; blocks the thread meanwhile.
    ///
    /// - Parameter message: The message; its number is ignored.
    /// - Returns: The message's number.
    /// - Throws: ``SQLiteStoreError``.
    public func insert(_ message: StoredMessage) throws(SQLiteStoreError) -> StoredMessage.ID {
        let answer = Answer()
        submit(message) { if let result = $0 { answer.set(result) } }
        while true {
            if let result = answer.result { return try result.get() }
            queue.sync { _ = writeBatch() }
        }
    }

    /// Stores a message durably, as ``Options/synchronization`` states, and suspends the caller meanwhile.
    ///
    /// If the task is cancelled before a transaction has the message, the message is forgotten. Otherwise the caller waits
    /// for the transaction, for as long as the disk takes.
    ///
    /// - Parameter message: The message; its number is ignored.
    /// - Returns: The message's number.
    /// - Throws: ``SQLiteStoreError``; `CancellationError` if the message is not stored because the task was cancelled.
    public func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
        let caller = Locked<UInt64?>(nil)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let number = submit(message) { continuation.resume(returning: $0) }
                caller.withLock { $0 = number }
                // Cancelled before the number was known.
                if Task.isCancelled { withdraw(number) }
            }
        } onCancel: {
            if let number = caller.withLock({ $0 }) { withdraw(number) }
        }
        guard let result else { throw CancellationError() }
        return try result.get()
    }

    @discardableResult
    func submit(
        _ message: StoredMessage,
        _ completion: @escaping SQLiteBacklog.Completion
    ) -> UInt64 {
        let (caller, call) = state.withLock { $0.backlog.add(message, completion) }
        call?()
        plan()
        return caller
    }

    func withdraw(_ caller: UInt64) {
        let call = state.withLock { $0.backlog.withdraw(caller) }
        call?()
    }

    /// Removes a message, soon after the call returns.
    public func remove(_ id: StoredMessage.ID) {
        state.withLock { $0.backlog.remove(id) }
        plan()
    }

    /// Removes messages that are too old, and returns all others in the order of their numbers; blocks the thread.
    ///
    /// In a session (``beginSession(_:)``) a message of QoS 2 that is too old is returned with the expiry
    /// `Date.distantPast`. Its exchange has to end at the server. The transport does that, and reports `sendFailed`.
    ///
    /// Each call counts an attempt for each message. A message that cannot be read, or exceeds
    /// ``Options/maximumByteCount`` with those before it, stays in the file, and is told by ``Event/unreadable(id:_:)``.
    /// A disk without room does not hinder reading.
    ///
    /// - Throws: ``SQLiteStoreError``, if the file cannot be read at all.
    public func messages() throws(SQLiteStoreError) -> [StoredMessage] {
        let (messages, events) = try onQueue { () throws(SQLiteStoreError) in
            let rows = try file.messages(within: Int64(max(0, options.maximumByteCount)))
            var events = rows.unreadable.map { Event.unreadable(id: $0.id, $0.error) }
            let now = clock()
            let oldest =
                options.maximumAge.map { now.milliseconds.subtractingClamped($0.milliseconds) }
                ?? .min
            var messages: [StoredMessage] = []
            // A message that the backlog does not know is removed, but the disk has not taken that yet.
            let known = state.withLock { $0.backlog.sizes }
            let hasExchanges = try file.session() != nil
            for (message, stored) in rows.values where known[message.id] != nil {
                let expiry = message.expiry?.milliseconds ?? .max
                let isOver = expiry <= now.milliseconds || stored <= oldest
                guard !isOver || (hasExchanges && message.qos == 2) else {
                    state.withLock { $0.backlog.remove(message.id) }
                    events.append(.expired(message))
                    continue
                }
                var message = message
                message.attempts += 1
                // Over by any clock: that of the reader may be behind.
                if isOver { message.expiry = .distantPast }
                messages.append(message)
            }
            if messages.count < rows.values.count { _ = writeBatch() }
            do throws(SQLiteStoreError) { try file.countAttempts() } catch {
                events.append(.writeFailed(error))
            }
            return (messages, events)
        }
        // On the thread of the caller, who has the result next.
        for event in events { options.onEvent?(event) }
        return messages
    }

    /// Removes everything; blocks the thread until that is written.
    public func removeAll() {
        let calls = state.withLock { $0.backlog.removeAll() }
        queue.sync {
            for call in calls { call() }
            _ = writeBatch()
        }
        plan()
    }

    /// The number of bytes that count for ``Options/maximumByteCount``.
    public var byteCount: Int { Int(clamping: state.withLock { $0.backlog.byteCount }) }

    /// What waits to be written: messages, their bytes, changes, and callers that wait for room.
    package var waiting: (messages: Int, bytes: Int, changes: Int, callers: Int) {
        state.withLock { state in
            let backlog = state.backlog
            return (
                backlog.waitingCount, Int(clamping: backlog.waitingByteCount), backlog.changeCount,
                backlog.callerCount
            )
        }
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
