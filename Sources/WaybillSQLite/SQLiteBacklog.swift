import Waybill
import WireCore

/// What a store has accepted and not written yet, and how much it has stored.
///
/// | event | open | closed |
/// | --- | --- | --- |
/// | a message, above the size limit, or without a number left | refused: full | refused: closed |
/// | a message, and the next transaction has room | accepted: it waits for the transaction | refused: closed |
/// | a message, and the next transaction is full | its caller waits, in order | refused: closed |
/// | a change | waits for the transaction, with earlier changes of the same thing replaced | ignored |
/// | a removal of a message that waits | neither is written | counted as not written |
/// | a caller is withdrawn, and no transaction has its message | its message is forgotten | the same |
/// | a transaction begins | it takes everything that waits; waiting callers are accepted | waiting callers are refused |
/// | the end, after a last transaction | | what it has not written is discarded and told |
struct SQLiteBacklog {
    /// Called with the number of the message; with nil if its caller was withdrawn.
    typealias Completion = @Sendable (Result<StoredMessage.ID, SQLiteStoreError>?) -> Void

    /// A caller that waits for room.
    private struct Caller {
        let message: StoredMessage
        let completion: Completion
    }

    /// A message that waits for its transaction.
    struct Insertion {
        var message: StoredMessage
        let size: Int64
        /// The caller that waits for the transaction; nil if it was told already.
        var completion: Completion?
    }

    /// A transaction.
    struct Batch {
        var insertions: [Insertion] = []
        var changes = SQLiteChanges()
        var last: StoredMessage.ID = 0
        /// Called with the result of the transaction.
        var flushes: [@Sendable (Result<Void, SQLiteStoreError>) -> Void] = []

        /// The number of messages and changes.
        var count: Int { insertions.count + changes.unwrittenCount }
        var isEmpty: Bool { insertions.isEmpty && changes.isEmpty && flushes.isEmpty }
    }

    /// The number of bytes that count for a message, beside its contents.
    static let overhead: Int64 = 128
    /// The maximum size of a transaction's messages; one message may be greater.
    static let batchByteCount = 4 << 20
    /// The maximum number of a transaction's messages.
    static let batchCount = 4_096

    let path: String
    let maximumByteCount: Int64
    /// Whether a caller is told before its message is written.
    let isBatched: Bool
    /// Whether nothing is accepted any more.
    private(set) var isClosed = false
    /// The number of removals that have come after that: their messages stay in the file.
    private(set) var ignoredCount = 0
    /// The number of the last message.
    private(set) var last: StoredMessage.ID
    /// The sizes of all messages that are stored or wait for a transaction.
    private(set) var sizes: [StoredMessage.ID: Int64]
    /// The sum of the sizes; 64 bits are enough for all files.
    private(set) var byteCount: Int64

    private var insertions: [StoredMessage.ID: Insertion] = [:]
    private var insertionBytes: Int64 = 0
    private var changes = SQLiteChanges()
    /// Callers that wait for room, by number; numbers have the order of the calls.
    private var waiting: [UInt64: Caller] = [:]
    /// The messages of callers that wait for the next transaction.
    private var awaited: [UInt64: StoredMessage.ID] = [:]
    /// A lower bound of the numbers of callers that wait for room.
    private var firstCaller: UInt64 = 1
    private var lastCaller: UInt64 = 0
    private var flushes: [@Sendable (Result<Void, SQLiteStoreError>) -> Void] = []

    init(
        path: String,
        maximumByteCount: Int,
        isBatched: Bool,
        last: StoredMessage.ID,
        sizes: [StoredMessage.ID: Int64]
    ) {
        self.path = path
        self.maximumByteCount = Int64(max(0, maximumByteCount))
        self.isBatched = isBatched
        self.last = last
        self.sizes = sizes
        byteCount = sizes.values.reduce(0, +)
    }

    /// The number of bytes that count for a message.
    static func size(_ message: StoredMessage) -> Int64 {
        let count =
            message.body.count + message.topic.utf8.count + (message.contentType?.utf8.count ?? 0)
            + StoredHeaders.byteCount(message.headers) + message.storedOptions.bytes.count
        return Int64(count) + overhead
    }

    /// Whether the next transaction has room for another message.
    private var hasRoom: Bool {
        insertions.count < Self.batchCount && insertionBytes < Self.batchByteCount
    }

    /// The number of messages that wait for the next transaction.
    var waitingCount: Int { insertions.count }
    /// The number of their bytes.
    var waitingByteCount: Int64 { insertionBytes }
    /// The number of changes that wait for the next transaction.
    var changeCount: Int { changes.count }
    /// The number of messages and changes that wait for the next transaction.
    var unwrittenCount: Int { insertions.count + changes.unwrittenCount + ignoredCount }
    /// The number of callers that wait for room.
    var callerCount: Int { waiting.count }

    // MARK: Messages

    /// Accepts or refuses a message.
    ///
    /// - Returns: The number of the caller, for ``withdraw(_:)``, and a call to make with no lock held; nil if the caller
    ///   waits.
    mutating func add(
        _ message: StoredMessage,
        _ completion: @escaping Completion
    ) -> (caller: UInt64, call: (@Sendable () -> Void)?) {
        lastCaller += 1
        let caller = Caller(message: message, completion: completion)
        guard waiting.isEmpty, hasRoom else {
            guard !isClosed else { return (lastCaller, refusal(.closed, "", completion)) }
            if waiting.isEmpty { firstCaller = lastCaller }
            waiting[lastCaller] = caller
            return (lastCaller, nil)
        }
        return (lastCaller, accept(caller, lastCaller))
    }

    private mutating func accept(_ caller: Caller, _ number: UInt64) -> (@Sendable () -> Void)? {
        let completion = caller.completion
        guard !isClosed else { return refusal(.closed, "", completion) }
        let size = Self.size(caller.message)
        guard size <= maximumByteCount - byteCount else {
            let detail = "\(byteCount) of \(maximumByteCount) bytes are stored and not acknowledged"
            return refusal(.full, detail, completion)
        }
        guard size <= Int64(SQLiteSchema.maximumSize) else {
            return refusal(.full, "\(size) bytes are more than a row can hold", completion)
        }
        guard !caller.message.storedOptions.isTooLong else {
            let detail = "the options have more than \(StoredOptions.maximumByteCount) bytes"
            return refusal(.full, detail, completion)
        }
        guard last < UInt64(SQLiteSchema.maximumNumber) else {
            return refusal(.full, "the file has no number left for a message", completion)
        }
        last += 1
        var message = caller.message
        message.id = last
        sizes[last] = size
        byteCount += size
        insertionBytes += size
        insertions[last] = Insertion(
            message: message,
            size: size,
            completion: isBatched ? nil : completion
        )
        guard isBatched else {
            awaited[number] = last
            return nil
        }
        return { [last] in completion(.success(last)) }
    }

    /// Forgets the message of a caller that no longer waits, unless a transaction has it.
    ///
    /// - Returns: A call to make with no lock held; nil if the caller goes on waiting, or does not wait.
    mutating func withdraw(_ number: UInt64) -> (@Sendable () -> Void)? {
        if let completion = waiting.removeValue(forKey: number)?.completion {
            return { completion(nil) }
        }
        guard let id = awaited.removeValue(forKey: number),
            let insertion = insertions.removeValue(forKey: id)
        else { return nil }
        insertionBytes -= insertion.size
        byteCount -= sizes.removeValue(forKey: id) ?? 0
        guard let completion = insertion.completion else { return nil }
        return { completion(nil) }
    }

    private func refusal(
        _ reason: SQLiteStoreError.Reason,
        _ detail: String,
        _ completion: @escaping Completion
    ) -> @Sendable () -> Void {
        let error = SQLiteStoreError(reason, detail, path: path)
        return { completion(.failure(error)) }
    }

    mutating func remove(_ id: StoredMessage.ID) {
        guard let size = sizes.removeValue(forKey: id) else { return }
        guard !isClosed else {
            ignoredCount += 1
            return
        }
        byteCount -= size
        if let insertion = insertions.removeValue(forKey: id) {
            insertionBytes -= insertion.size
        } else {
            changes.remove(id)
        }
    }

    /// Forgets everything.
    ///
    /// - Returns: Calls to make with no lock held.
    mutating func removeAll() -> [@Sendable () -> Void] {
        guard !isClosed else { return [] }
        let completions = insertions.values.compactMap { insertion in
            insertion.completion.map { completion -> @Sendable () -> Void in
                { [id = insertion.message.id] in completion(.success(id)) }
            }
        }
        insertions = [:]
        awaited = [:]
        insertionBytes = 0
        sizes = [:]
        byteCount = 0
        changes.clear()
        return completions
    }

    // MARK: Changes

    mutating func setStage(_ stage: StoredMessage.Stage, of id: StoredMessage.ID) {
        guard !isClosed, sizes[id] != nil else { return }
        if insertions[id] != nil {
            insertions[id]?.message.stage = stage
        } else {
            changes.stages[id] = stage
        }
    }

    mutating func setSuspiciousEnds(_ count: Int, of id: StoredMessage.ID) {
        guard !isClosed, sizes[id] != nil else { return }
        if insertions[id] != nil {
            insertions[id]?.message.suspiciousEnds = count
        } else {
            changes.ends[id] = count
        }
    }

    mutating func beginSession(_ name: String) {
        loseSession()
        change { $0.session = name }
    }

    mutating func loseSession() {
        change { $0.loseSession() }
        for id in insertions.keys { insertions[id]?.message.stage = .published }
    }

    /// Applies a change to the next transaction.
    mutating func change(_ body: (inout SQLiteChanges) -> Void) {
        guard !isClosed else { return }
        body(&changes)
    }

    /// Calls `done` after the next transaction, or at once if nothing waits.
    mutating func afterNextTransaction(_ done: @escaping @Sendable () -> Void) {
        changes.completions.append(done)
    }

    mutating func flush(_ done: @escaping @Sendable (Result<Void, SQLiteStoreError>) -> Void) {
        flushes.append(done)
    }

    // MARK: Transactions

    /// Begins a transaction with everything that was accepted.
    mutating func takeBatch() -> Batch {
        var batch = Batch()
        batch.insertions = insertions.values.sorted { $0.message.id < $1.message.id }
        (batch.changes, changes) = (changes, SQLiteChanges())
        (batch.flushes, flushes) = (flushes, [])
        batch.last = last
        insertions = [:]
        awaited = [:]
        insertionBytes = 0
        return batch
    }

    /// Accepts the callers that waited for room, after a transaction.
    ///
    /// - Returns: Calls to make with no lock held.
    mutating func acceptWaiting() -> [@Sendable () -> Void] {
        var calls: [@Sendable () -> Void] = []
        while !waiting.isEmpty, hasRoom {
            let number = firstCaller
            firstCaller += 1
            guard let caller = waiting.removeValue(forKey: number) else { continue }
            if let call = accept(caller, number) { calls.append(call) }
        }
        return calls
    }

    /// Notes that the messages of a transaction could not be written.
    ///
    /// A message whose caller waits is discarded, and callers that wait for room are refused. Another message waits for
    /// the next transaction.
    ///
    /// - Returns: Calls to make with no lock held.
    mutating func fail(
        _ insertions: [Insertion],
        _ error: SQLiteStoreError
    ) -> [@Sendable () -> Void] {
        var calls: [@Sendable () -> Void] = []
        for insertion in insertions {
            let id = insertion.message.id
            if let completion = insertion.completion {
                byteCount -= sizes.removeValue(forKey: id) ?? 0
                calls.append { completion(.failure(error)) }
            } else if sizes[id] != nil {
                // Removed meanwhile otherwise.
                self.insertions[id] = insertion
                insertionBytes += insertion.size
                changes.removals.remove(id)
                if let stage = changes.stages.removeValue(forKey: id) {
                    self.insertions[id]?.message.stage = stage
                }
                if let ends = changes.ends.removeValue(forKey: id) {
                    self.insertions[id]?.message.suspiciousEnds = ends
                }
            }
        }
        calls += takeWaiting(error)
        return calls
    }

    private mutating func takeWaiting(_ error: SQLiteStoreError) -> [@Sendable () -> Void] {
        defer { waiting = [:] }
        return waiting.valuesInKeyOrder.map { caller in
            { @Sendable in caller.completion(.failure(error)) }
        }
    }

    /// Notes that another file has taken the place of the one with the stored messages.
    ///
    /// Numbers go on, because users may still name the messages of that one.
    mutating func beginAnew(_ session: String?) {
        sizes = sizes.filter { insertions[$0.key] != nil }
        byteCount = insertionBytes
        changes.beginAnew(session)
    }

    // MARK: The end

    /// Accepts nothing any more; what was accepted waits for a last transaction.
    mutating func close() {
        isClosed = true
    }

    /// Takes what the last transaction could not write.
    ///
    /// - Returns: The messages whose callers were told that they are stored, and calls to make with no lock held.
    mutating func discard() -> (lost: [StoredMessage], calls: [@Sendable () -> Void]) {
        let error = SQLiteStoreError(.closed, path: path)
        let batch = takeBatch()
        var lost: [StoredMessage] = []
        var calls: [@Sendable () -> Void] = []
        for insertion in batch.insertions {
            if let completion = insertion.completion {
                calls.append { completion(.failure(error)) }
            } else {
                lost.append(insertion.message)
            }
        }
        calls += takeWaiting(error)
        calls += batch.flushes.map { flush in { flush(.failure(error)) } }
        calls += batch.changes.completions
        return (lost, calls)
    }

    // MARK: Failures

    /// Notes that the changes of a transaction could not be written: they wait for the next one.
    mutating func putBack(_ failed: SQLiteChanges) {
        changes.putBack(failed)
    }

    /// Whether anything waits.
    var isEmpty: Bool {
        insertions.isEmpty && changes.isEmpty && flushes.isEmpty && waiting.isEmpty
    }
    /// Whether a caller waits for the next transaction.
    var isAwaited: Bool {
        !flushes.isEmpty || !waiting.isEmpty || !changes.completions.isEmpty
            || (!isBatched && !insertions.isEmpty)
    }
}
