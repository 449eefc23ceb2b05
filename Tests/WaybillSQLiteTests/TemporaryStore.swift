import CWaybillSQLite
import Foundation
import Testing
import Waybill
import WaybillSQLite
import WireCore
import WireTestSupport

/// A folder for the files of one test.
final class TemporaryStore: Sendable {
    let folder: URL

    /// - Parameter inMemory: Whether the files may be in memory, where thousands are opened in seconds.
    init(inMemory: Bool = false) throws {
        let memory = "/dev/shm"
        let isThere = inMemory && FileManager.default.isWritableFile(atPath: memory)
        let parent =
            isThere ? URL(fileURLWithPath: memory) : FileManager.default.temporaryDirectory
        folder =
            parent
            .appendingPathComponent("waybill-store-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var path: String { folder.appendingPathComponent("store.sqlite").path }

    func open(
        _ change: (inout SQLiteSessionStore.Options) -> Void = { _ in }
    ) throws -> SQLiteSessionStore {
        var options = SQLiteSessionStore.Options()
        change(&options)
        return try SQLiteSessionStore(path: path, options: options)
    }

    /// Makes a store with messages in the file, and none in the log.
    static func filled(_ count: Int = 200, inMemory: Bool = false) throws -> TemporaryStore {
        let temporary = try TemporaryStore(inMemory: inMemory)
        let store = try temporary.open()
        for number in 0..<count { _ = try store.insert(message(number)) }
        store.close()
        // Apple's SQLite keeps the log, empty.
        let log = try? Data(contentsOf: URL(fileURLWithPath: temporary.path + "-wal"))
        #expect(log?.isEmpty ?? true)
        return temporary
    }

    /// Runs statements on the file without a store.
    func execute(_ sql: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var database: UnsafeMutableRawPointer?
        #expect(waybill_sqlite_open(path, 0, &database) == 0, sourceLocation: sourceLocation)
        #expect(
            waybill_sqlite_execute(database, sql) == 0,
            "\(String(cString: waybill_sqlite_message(database)))",
            sourceLocation: sourceLocation
        )
        waybill_sqlite_close(database)
    }

    /// Opens the file as another program does, and keeps it open.
    func hold(_ sql: String, _ database: inout UnsafeMutableRawPointer?) {
        #expect(waybill_sqlite_open(path, 0, &database) == 0)
        #expect(waybill_sqlite_execute(database, sql) == 0)
    }

    func letGo(_ database: UnsafeMutableRawPointer?) { waybill_sqlite_close(database) }

    /// The names and contents of all files.
    func contents() throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return try Dictionary(
            uniqueKeysWithValues: names.map {
                ($0, try Data(contentsOf: folder.appendingPathComponent($0)))
            }
        )
    }

    static func message(_ number: Int, byteCount: Int = 0) -> StoredMessage {
        let body = Array("\(number)".utf8) + [UInt8](repeating: 0x2E, count: byteCount)
        return StoredMessage(topic: "t/\(number)", body: body, qos: 1)
    }
}

extension Collection<StoredMessage> {
    /// The numbers in the topics.
    var numbers: [Int] { compactMap { Int($0.topic.dropFirst(2)) } }
}

/// A clock whose reader waits while the gate is closed: the thread of a store that writes a transaction.
final class Gate: Sendable {
    private struct State {
        var isClosed = false
        var isReached = false
    }

    private let state = Locked(State())
    private let released = DispatchSemaphore(value: 0)

    func close() { state.withLock { $0.isClosed = true } }

    func open() {
        let wasReached = state.withLock { state in
            state.isClosed = false
            return state.isReached
        }
        if wasReached { released.signal() }
    }

    func waitUntilReached() async {
        try? await waitUntil { self.state.withLock { $0.isReached } }
    }

    var now: @Sendable () -> Date {
        {
            let waits = self.state.withLock { state in
                if state.isClosed { state.isReached = true }
                return state.isClosed
            }
            if waits { self.released.wait() }
            return Date()
        }
    }
}

/// The events of a store.
final class StoreEvents: Sendable {
    private let events = Locked<[SQLiteSessionStore.Event]>([])

    var all: [SQLiteSessionStore.Event] { events.withLock { $0 } }

    func note(_ event: SQLiteSessionStore.Event) { events.withLock { $0.append(event) } }

    /// The numbers of messages that cannot be read; 0 for another part of the file.
    var unreadable: [StoredMessage.ID] {
        all.compactMap { if case .unreadable(let id, _) = $0 { id ?? 0 } else { nil } }
    }

    var lost: [Int] {
        all.compactMap { if case .lost(let message, _) = $0 { message } else { nil } }.numbers
    }
}
