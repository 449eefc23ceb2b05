import CWaybillSQLite
import Foundation
import Testing
import Waybill
import WaybillSQLite
import WireTestSupport

@Suite(
    "A file that is deleted or replaced while it is open, or cut short",
    .timeLimit(.minutes(30))
)
struct GoneFileTests {
    /// What becomes of the files while a store has them open.
    enum Change: String, Sendable, CaseIterable {
        case deleted, moved, replaced, logDeleted, logReplaced, folderMoved

        func make(_ temporary: TemporaryStore) throws {
            let files = FileManager.default
            let (path, log) = (temporary.path, temporary.path + "-wal")
            switch self {
            case .deleted: for path in [path, log] { try files.removeItem(atPath: path) }
            case .moved: try files.moveItem(atPath: path, toPath: path + "-old")
            case .replaced:
                let other = try TemporaryStore.filled(5)
                for path in [path, log] { try files.removeItem(atPath: path) }
                try files.copyItem(atPath: other.path, toPath: path)
            case .logDeleted: try files.removeItem(atPath: log)
            case .logReplaced:
                try files.removeItem(atPath: log)
                try Data().write(to: URL(fileURLWithPath: log))
            case .folderMoved:
                let moved = temporary.folder.path + "-moved"
                try files.moveItem(atPath: temporary.folder.path, toPath: moved)
                try files.removeItem(atPath: moved)
            }
        }

        var keepsFile: Bool { self == .logDeleted || self == .logReplaced }
    }

    private func reason(_ body: () throws -> some Any) -> SQLiteStoreError.Reason? {
        #expect(throws: SQLiteStoreError.self) { _ = try body() }?.reason
    }

    @Test("No message is confirmed that no file has", arguments: Change.allCases)
    func refused(_ change: Change) async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        _ = try store.insert(TemporaryStore.message(1))
        try change.make(temporary)
        for number in 2...4 {
            #expect(reason { try store.insert(TemporaryStore.message(number)) } == .gone)
        }
        await #expect(throws: SQLiteStoreError.self) { try await store.add(bad) }
        store.remove(1)
        await #expect(throws: SQLiteStoreError.self) { try await store.flush() }
        store.close()
        // Nothing was written to the other file, and no bytes of the log are lost.
        guard change.keepsFile || change == .replaced else { return }
        #expect(
            try temporary.open().messages().numbers == (change.keepsFile ? [1] : [0, 1, 2, 3, 4])
        )
    }

    private let bad = StoredMessage(topic: "bad", body: [], qos: 1)

    @Test(
        "The write fails, and the next ones go to another file if that is wanted",
        arguments: [Change.deleted, .moved, .replaced, .logDeleted, .logReplaced]
    )
    func another(_ change: Change) async throws {
        let temporary = try TemporaryStore()
        let events = StoreEvents()
        var store = try temporary.open {
            $0.whenCorrupt = .setAside
            $0.onEvent = events.note
        }
        #expect(try store.beginSession("ada"))
        _ = try store.insert(TemporaryStore.message(1))
        try change.make(temporary)
        #expect(reason { try store.insert(TemporaryStore.message(2)) } == .gone)
        // No number is used again.
        #expect(try store.insert(TemporaryStore.message(3)) == 3)
        let kept = change.keepsFile ? [1, 3] : [3]
        #expect(try store.messages().numbers == kept)
        #expect(store.byteCount == kept.count * 132)
        store.remove(1)
        store.close()
        try await waitUntil { events.all.count == (change == .replaced ? 2 : 1) }
        let renamed = events.all.compactMap { event -> String? in
            guard case .setAside(let path, let error) = event else { return nil }
            #expect(error.reason == .gone)
            return path
        }
        #expect(renamed.count == (change == .replaced ? 1 : 0))
        for path in renamed {
            #expect(try SQLiteSessionStore(path: path).messages().numbers == [0, 1, 2, 3, 4])
        }
        store = try temporary.open()
        #expect(try store.messages().numbers == [3])
    }

    @Test("The log of a database that was deleted is not read into a new one")
    func staleLog() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        _ = try store.insert(TemporaryStore.message(1))
        let log = try Data(contentsOf: URL(fileURLWithPath: temporary.path + "-wal"))
        store.close()
        try FileManager.default.removeItem(atPath: temporary.path)
        try log.write(to: URL(fileURLWithPath: temporary.path + "-wal"))
        #expect(try temporary.open().messages().isEmpty)
    }

    @Test("A store that has not made its file leaves the log that lies there")
    func foreignLog() throws {
        let temporary = try TemporaryStore()
        let log = temporary.path + "-wal"
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: log))
        // There is a name, and no file that it leads to.
        try FileManager.default.createSymbolicLink(
            atPath: temporary.path,
            withDestinationPath: temporary.path + "-nowhere"
        )
        #expect(reason { try temporary.open() } == .cannotOpen)
        #expect(try Data(contentsOf: URL(fileURLWithPath: log)).count == 3)
    }

    @Test("The name of the session is kept, although the first attempts to begin a file fail")
    func session() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.whenCorrupt = .setAside }
        #expect(try store.beginSession("ada"))
        _ = try store.insert(TemporaryStore.message(1))
        try Change.deleted.make(temporary)
        temporary.execute("CREATE TABLE people (name TEXT)")
        for _ in 0..<2 {
            #expect(reason { try store.insert(TemporaryStore.message(2)) } == .gone)
        }
        try FileManager.default.removeItem(atPath: temporary.path)
        #expect(reason { try store.insert(TemporaryStore.message(3)) } == .gone)
        _ = try store.insert(TemporaryStore.message(4))
        store.close()
        // The sum overflows without the name.
        temporary.execute(
            "SELECT CASE WHEN session = 'ada' THEN 0 ELSE abs(-9223372036854775808) END FROM store"
        )
    }

    @Test("A file whose log is gone, and that is damaged, counts as another one")
    func damaged() throws {
        let temporary = try TemporaryStore.filled(200)
        let store = try temporary.open { $0.whenCorrupt = .setAside }
        try FileManager.default.removeItem(atPath: temporary.path + "-wal")
        let file = try #require(FileHandle(forUpdatingAtPath: temporary.path))
        let size = try file.seekToEnd()
        try file.seek(toOffset: 4_096)
        try file.write(contentsOf: Data(repeating: 0xA5, count: Int(size) - 4_096))
        try file.close()
        #expect(reason { try store.insert(TemporaryStore.message(500)) } == .gone)
        _ = try store.insert(TemporaryStore.message(501))
        #expect(try store.messages().numbers == [501])
        #expect(store.byteCount == 136)
    }

    @Test("A message that was accepted before its write goes to the other file")
    func batched() async throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open {
            $0.synchronization = .batched(within: .seconds(3_600))
            $0.whenCorrupt = .setAside
        }
        _ = try store.insert(TemporaryStore.message(1))
        try Change.deleted.make(temporary)
        await #expect(throws: SQLiteStoreError.self) { try await store.flush() }
        store.close()
        #expect(try temporary.open().messages().numbers == [1])
    }

    @Test("A file of another program or store in its place is left alone, and writes go on failing")
    func foreign() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open { $0.whenCorrupt = .setAside }
        try Change.deleted.make(temporary)
        temporary.execute("CREATE TABLE people (name TEXT)")
        for _ in 0..<2 {
            #expect(reason { try store.insert(TemporaryStore.message(1)) } == .gone)
        }
        #expect(try temporary.contents().count == 1)
        try FileManager.default.removeItem(atPath: temporary.path)
        let other = try temporary.open()
        #expect(reason { try store.insert(TemporaryStore.message(1)) } == .gone)
        _ = try other.insert(TemporaryStore.message(7))
        #expect(try other.messages().numbers == [7])
    }

    @Test("An empty file, and one that is shorter than a page, is corrupt")
    func short() throws {
        let source = try TemporaryStore.filled(1)
        let whole = try Data(contentsOf: URL(fileURLWithPath: source.path))
        for count in Array(0...110) + [511] {
            let temporary = try TemporaryStore(inMemory: true)
            try whole.prefix(count).write(to: URL(fileURLWithPath: temporary.path))
            let before = try temporary.contents()
            #expect(reason { try temporary.open() } == .corrupt, "\(count) bytes")
            #expect(try temporary.contents() == before)
            let store = try temporary.open { $0.whenCorrupt = .setAside }
            #expect(try store.messages().isEmpty)
        }
    }

    @Test("A first launch that is killed before its first write leaves a new store")
    func killedEarly() throws {
        let temporary = try TemporaryStore()
        var isNew: Int32 = 0
        #expect(waybill_sqlite_make(temporary.path, temporary.path + "-1", &isNew) == 0)
        #expect(isNew == 1)
        let contents = try temporary.contents()
        #expect(contents.count == 1 && contents.values.first?.count == 4_096)
        let attributes = try FileManager.default.attributesOfItem(atPath: temporary.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        // Another process has made it meanwhile.
        #expect(waybill_sqlite_make(temporary.path, temporary.path + "-2", &isNew) == 0)
        #expect(isNew == 0)
        let store = try temporary.open()
        _ = try store.insert(TemporaryStore.message(1))
        #expect(try store.messages().numbers == [1])
    }

    #if os(Linux)
        @Test("The error of the system is that of making the file")
        func code() throws {
            // No process may make a file there.
            let error = #expect(throws: SQLiteStoreError.self) {
                try SQLiteSessionStore(path: "/sys/store")
            }
            #expect(error?.reason == .cannotOpen)
            #expect(error?.detail == "the system's error \(EACCES)")
        }
    #endif

    @Test("No more is read than the limit of the store")
    func bounded() throws {
        let temporary = try TemporaryStore()
        var store = try temporary.open()
        for (number, count) in [100, 5_000, 100].enumerated() {
            _ = try store.insert(TemporaryStore.message(number, byteCount: count))
        }
        store.setPendingUnsubscribes(["a", String(repeating: "b", count: 5_000)])
        store.close()
        let events = StoreEvents()
        store = try temporary.open {
            $0.maximumByteCount = 1_000
            $0.onEvent = events.note
        }
        #expect(try store.messages().numbers == [0, 2])
        #expect(events.unreadable == [2])
        guard case .unreadable(_, let error)? = events.all.first else { return }
        #expect(error.reason == .full)
        #expect(try store.pendingUnsubscribes() == ["a"])
        store.close()
        // It has stayed in the file.
        #expect(try temporary.open().messages().numbers == [0, 1, 2])
    }
}
