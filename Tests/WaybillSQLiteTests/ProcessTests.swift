#if os(Linux)
    import Foundation
    import Testing
    import WaybillSQLite
    import WireTestSupport

    @Suite("A store and several processes", .timeLimit(.minutes(30))) struct ProcessTests {
        @Test("A second store for the file is refused, in this process and in another one")
        func twoProcesses() async throws {
            let temporary = try TemporaryStore()
            let holder = try ChildProcess("WaybillStoreProcess", ["hold", temporary.path])
            try await holder.waitForLine("open")
            var error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
            #expect(error?.reason == .inUse)
            try await holder.killNow()

            let store = try temporary.open()
            error = #expect(throws: SQLiteStoreError.self) { try temporary.open() }
            #expect(error?.reason == .inUse)
            let second = try ChildProcess("WaybillStoreProcess", ["hold", temporary.path])
            try await second.waitForEnd()
            #expect(second.lines.first == "inUse")
            _ = try store.insert(TemporaryStore.message(1))
            store.close()
        }

        @Test("Without SQLite the error says what to install")
        func missing() async throws {
            let temporary = try TemporaryStore()
            for name in ["libsqlite3.so.0", "libsqlite3.so"] {
                try Data("no library".utf8).write(to: temporary.folder.appendingPathComponent(name))
            }
            let process = try ChildProcess(
                "WaybillStoreProcess",
                ["hold", temporary.path],
                environment: ["LD_LIBRARY_PATH": temporary.folder.path]
            )
            try await process.waitForEnd()
            #expect(process.lines.first == "libraryMissing")
            #expect(process.output.contains("install libsqlite3-0"))
            #expect(!FileManager.default.fileExists(atPath: temporary.path))
        }

        @Test("A file that cannot grow refuses a message, and takes the next one when it can")
        func limited() async throws {
            let temporary = try TemporaryStore()
            let process = try ChildProcess("WaybillStoreProcess", ["limited", temporary.path])
            try await process.waitForEnd()
            let lines = process.lines
            #expect(["diskFailed", "diskFull"].contains(lines.first ?? ""))
            let counts = (lines.last ?? "").split(separator: " ")
            #expect(counts.count == 2 && counts.first == counts.last, "\(lines)")
        }

        @Test(
            "Killed at random: every message that was accepted and not removed is there",
            arguments: ["full", "process"]
        )
        func killed(level: String) async throws {
            let temporary = try TemporaryStore()
            let ledger = temporary.folder.appendingPathComponent("ledger").path
            let environment = ProcessInfo.processInfo.environment
            let kills = Int(environment["WAYBILL_STORE_KILLS"] ?? "") ?? 5
            for round in 0..<kills {
                let arguments = ["fill", temporary.path, ledger, level]
                let process = try ChildProcess("WaybillStoreProcess", arguments)
                try await Task.sleep(for: .milliseconds(.random(in: 30..<200)))
                #expect(process.isRunning)
                try await process.killNow()
                #expect(process.output == "")
                let text = (try? String(contentsOfFile: ledger, encoding: .utf8)) ?? ""
                let numbers = text.split(separator: "\n").compactMap { Int($0) }
                let store = try temporary.open()
                let stored = try store.messages().map { Int($0.id) }
                #expect(stored == stored.sorted() && Set(stored).count == stored.count)
                let expected = Set(numbers.filter { $0 > 0 })
                    .subtracting(numbers.filter { $0 < 0 }.map { -$0 })
                #expect(expected.isSubset(of: stored), "round \(round)")
                // Begins the next round empty.
                store.removeAll()
                store.close()
                try? FileManager.default.removeItem(atPath: ledger)
            }
        }
    }
#endif
