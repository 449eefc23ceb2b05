#if os(Linux)
    import Foundation
    import Glibc
    import Waybill
    import WaybillSQLite

    /// A process with a store, to be killed by a test.
    ///
    ///     WaybillStoreProcess hold PATH                               opens the store and waits
    ///     WaybillStoreProcess fill PATH LEDGER LEVEL                  stores messages until it is killed
    ///     WaybillStoreProcess limited PATH                            stores until no file may grow, then goes on
    ///     WaybillStoreProcess send PORT VERSION NAME PATH LEDGER QOS FIRST LEVEL
    ///                                                                 sends until it is killed
    ///     WaybillStoreProcess once PORT VERSION NAME PATH BODY QOS END
    ///                                                                 sends one message, and ends in that way
    ///     WaybillStoreProcess finish PORT VERSION NAME PATH           sends what is stored, and ends
    ///
    ///     WaybillStoreProcess listen PORT http NAME PATH COUNT        says each event, and waits after so many
    ///
    /// The version is 3 or 5, or `stomp` or `http`. The name is that of the client and of the topic.
    @main
    struct StoreProcess {
        static func main() async {
            let arguments = Array(CommandLine.arguments.dropFirst())
            do {
                switch (arguments.first, arguments.count) {
                case ("hold", 2): try hold(arguments[1])
                case ("fill", 4): try await fill(arguments[1], arguments[2], arguments[3])
                case ("limited", 2): try limited(arguments[1])
                case ("send", 9), ("finish", 5), ("once", 8), ("listen", 6):
                    try await StoreClient(arguments).run()
                default:
                    say("usage: see the source")
                    exit(2)
                }
            } catch let error as SQLiteStoreError {
                say(error.reason.name)
                say("\(error)")
                exit(3)
            } catch {
                say("\(error)")
                exit(1)
            }
            exit(0)
        }

        /// Writes a line at once: a killed process writes no buffer.
        static func say(_ text: String) {
            let line = Array("\(text)\n".utf8)
            _ = write(1, line, line.count)
        }

        static func options(_ level: String) -> SQLiteSessionStore.Options {
            SQLiteSessionStore.Options(
                synchronization: level == "process"
                    ? .process : level == "batched" ? .batched(within: .milliseconds(20)) : .full
            )
        }

        private static func hold(_ path: String) throws {
            let store = try SQLiteSessionStore(path: path)
            say("open")
            while true { pause() }
            store.close()
        }

        /// Stores numbered messages from several tasks.
        ///
        /// The ledger gets each number after its message is stored, and each third one again, negative, before its
        /// message is removed. A full store, which a late kill finds, is no error.
        private static func fill(_ path: String, _ ledger: String, _ level: String) async throws {
            let store = try SQLiteSessionStore(path: path, options: options(level))
            let ledger = try Ledger(ledger)
            await withTaskGroup { group in
                for _ in 0..<4 {
                    group.addTask {
                        while !Task.isCancelled {
                            let message = StoredMessage(
                                topic: "t",
                                body: [UInt8](
                                    repeating: 0x2E,
                                    count: Int.random(in: 0..<6_000)
                                ),
                                qos: 1
                            )
                            let id: StoredMessage.ID
                            do { id = try await store.add(message) } catch {
                                if (error as? SQLiteStoreError)?.reason != .full { say("\(error)") }
                                // Until it is killed.
                                try? await Task.sleep(for: .seconds(3_600))
                                return
                            }
                            ledger.append(Int(id))
                            guard id % 3 == 0 else { continue }
                            ledger.append(-Int(id))
                            store.remove(id)
                        }
                    }
                }
            }
        }

        /// Stores messages while the files may not grow, and after that.
        private static func limited(_ path: String) throws {
            let store = try SQLiteSessionStore(path: path)
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let before = limit.rlim_cur
            limit.rlim_cur = 256 << 10
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let message = StoredMessage(
                topic: "t",
                body: [UInt8](repeating: 0x2E, count: 10_000),
                qos: 1
            )
            var count = 0
            do {
                while true {
                    _ = try store.insert(message)
                    count += 1
                }
            } catch {
                say(error.reason.name)
            }
            limit.rlim_cur = before
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            _ = try store.insert(message)
            say("\(count + 1) \(try store.messages().count)")
            store.close()
        }
    }

    /// A file with numbers, one a line. A number is on the disk when `append` returns.
    final class Ledger: Sendable {
        private let file: Int32

        init(_ path: String) throws {
            file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw CocoaError(.fileNoSuchFile) }
        }

        func append(_ number: Int) {
            let line = Array("\(number)\n".utf8)
            // Lines of this size are appended whole.
            guard write(file, line, line.count) == line.count, fdatasync(file) == 0 else { exit(4) }
        }
    }
#else
    @main
    struct StoreProcess {
        static func main() {}
    }
#endif
