import Foundation
import Testing
import Waybill
import WaybillSQLite
import WireCore
import WireTestSupport

@Suite("The file of a store: one store for it, and no other program's", .timeLimit(.minutes(30)))
struct IdentityTests {
    @Test("Of many threads that create the same file one gets it, and keeps its lock")
    func manyThreads() async throws {
        for round in 0..<12 {
            let temporary = try TemporaryStore(inMemory: true)
            let stores = await withTaskGroup { group in
                for _ in 0..<8 { group.addTask { Result { try temporary.open() } } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let opened = stores.compactMap { try? $0.get() }
            #expect(opened.count == 1)
            for case .failure(let error) in stores {
                #expect((error as? SQLiteStoreError)?.reason == .inUse)
            }
            #if os(Linux)
                // Another process sees the lock: it is not this process's claim that keeps it out. It takes half a
                // second to give up, so not in each round.
                if round.isMultiple(of: 6) {
                    let other = try ChildProcess("WaybillStoreProcess", ["hold", temporary.path])
                    try await other.waitForEnd()
                    #expect(other.lines.first == "inUse")
                }
            #endif
            opened.first?.close()
            _ = try temporary.open()
        }
    }

    @Test("A link, and another spelling of the path, are the same file")
    func links() throws {
        let temporary = try TemporaryStore()
        let store = try temporary.open()
        let files = FileManager.default
        let (symbolic, hard) = (temporary.path + "-a", temporary.path + "-b")
        try files.createSymbolicLink(atPath: symbolic, withDestinationPath: temporary.path)
        try files.linkItem(atPath: temporary.path, toPath: hard)
        let name = temporary.folder.lastPathComponent
        let detour = temporary.folder.path + "/../\(name)/./store.sqlite"
        for path in [symbolic, hard, detour] {
            let error = #expect(throws: SQLiteStoreError.self) {
                try SQLiteSessionStore(path: path)
            }
            #expect(error?.reason == .inUse)
        }
        // The refusals have not opened the file, which would have ended the lock.
        _ = try store.insert(TemporaryStore.message(1))
        store.close()
        #expect(try SQLiteSessionStore(path: symbolic).messages().numbers == [1])
    }

    @Test(
        "What is not a file, and what is no path",
        arguments: ["", "a\u{0}b", "/dev/zero", "/tmp", "/dev/null"]
    )
    func notAFile(_ path: String) {
        let error = #expect(throws: SQLiteStoreError.self) { try SQLiteSessionStore(path: path) }
        #expect(error?.reason == .cannotOpen)
    }

    @Test("A pipe does not make the opening wait")
    func pipe() throws {
        let temporary = try TemporaryStore()
        #expect(mkfifo(temporary.path, 0o600) == 0)
        let error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
        #expect(error?.reason == .cannotOpen)
    }

    @Test(
        "Another program's database is refused, and no byte of it or of its log has changed",
        arguments: [
            "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = WAL",
            "PRAGMA application_id = 7",
            "PRAGMA user_version = 3",
        ]
    )
    func foreign(_ setting: String) throws {
        let temporary = try TemporaryStore()
        temporary.execute(
            "\(setting); CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('ada')"
        )
        let before = try temporary.contents()
        for _ in 0..<2 {
            let error = #expect(throws: SQLiteStoreError.self) {
                try temporary.open { $0.whenCorrupt = .setAside }
            }
            #expect(error?.reason == .notAStore)
            #expect(try temporary.contents() == before)
        }
    }

    @Test("A database with a log that its program has not written back is left as it is")
    func foreignLog() throws {
        let source = try TemporaryStore()
        source.execute("PRAGMA journal_mode = WAL; CREATE TABLE people (name TEXT)")
        // A copy of the files of a program that was killed, once with the table in the log alone.
        for isNew in [false, true] {
            let program = try TemporaryStore()
            if !isNew {
                try FileManager.default.copyItem(atPath: source.path, toPath: program.path)
            }
            var database: UnsafeMutableRawPointer?
            program.hold("PRAGMA journal_mode = WAL; CREATE TABLE more (name TEXT)", &database)
            let copy = try TemporaryStore()
            for ending in ["", "-wal"] {
                try FileManager.default.copyItem(
                    atPath: program.path + ending,
                    toPath: copy.path + ending
                )
            }
            program.letGo(database)
            let before = try copy.contents()
            #expect(before.count == 2)
            let error = #expect(throws: SQLiteStoreError.self) { try copy.open() }
            #expect(error?.reason == .notAStore)
            #expect(try copy.contents() == before)
        }
    }

    @Test("A store of a newer version is not changed")
    func newer() throws {
        let temporary = try TemporaryStore.filled(3)
        temporary.execute("PRAGMA user_version = 8; PRAGMA journal_mode = DELETE")
        let before = try temporary.contents()
        let error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
        #expect(error?.reason == .newerVersion)
        #expect(try temporary.contents() == before)
    }
}
