#if os(Linux)
    import ChaosSupport
    import Foundation
    import Glibc
    import WireCore
    import WireTestSupport

    /// A Mosquitto process that belongs to one test. It keeps its sessions in a file, and can be killed and
    /// restarted.
    actor PersistentBroker {
        struct Failure: Error {
            let said: String
        }

        nonisolated let port: UInt16
        private let folder: URL
        private let process = Locked<pid_t?>(nil)

        private var store: String { folder.appendingPathComponent("mosquitto.db").path }

        /// - Parameter settings: Further lines of its configuration.
        init(_ settings: [String] = []) async throws {
            port = try Self.freePort()
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-broker-\(UInt64.random(in: 0 ... .max))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            // The broker saves only when a signal asks for it, and discards no message. As root it would change to a
            // user that cannot read this folder.
            let lines = [
                "listener \(port) 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true",
                "persistence true", "persistence_location \(folder.path)/", "autosave_interval 0",
                "max_queued_messages 0", "max_inflight_messages 1000",
            ]
            let user = getuid() == 0 ? ["user root"] : []
            try (user + lines + settings + [""]).joined(separator: "\n")
                .write(to: folder.appendingPathComponent("conf"), atomically: true, encoding: .utf8)
            try await start()
        }

        /// Starts the process and waits until it accepts connections.
        private func start() async throws {
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            // The threads of the Swift runtime block signals, and a child process would inherit that.
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            defer { posix_spawnattr_destroy(&attributes) }
            var signals = sigset_t()
            sigemptyset(&signals)
            posix_spawnattr_setsigmask(&attributes, &signals)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
            let log = folder.appendingPathComponent("log").path
            // The broker inherits neither the output nor any other pipe. Otherwise a reader of this process's output
            // would wait for the end of the broker.
            for descriptor in 3..<Int32(256) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            for descriptor: Int32 in [1, 2] {
                posix_spawn_file_actions_addopen(
                    &actions,
                    descriptor,
                    log,
                    O_WRONLY | O_CREAT | O_APPEND,
                    0o600
                )
            }
            let configuration = folder.appendingPathComponent("conf").path
            let arguments: [String] = ["mosquitto", "-c", configuration]
            let words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
            defer { for word in words { free(word) } }
            var process = pid_t()
            let result = posix_spawnp(&process, "mosquitto", &actions, &attributes, words, environ)
            guard result == 0 else { throw Failure(said: String(cString: strerror(result))) }
            self.process.withLock { $0 = process }
            while !isListening() {
                guard waitpid(process, nil, WNOHANG) == 0 else {
                    self.process.withLock { $0 = nil }
                    throw Failure(said: (try? String(contentsOfFile: log, encoding: .utf8)) ?? "")
                }
                try await Task.sleep(for: .milliseconds(2))
            }
        }

        private func isListening() -> Bool {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            return LoopbackAddress.with(port) { connect(descriptor, $0, $1) } == 0
        }

        /// Kills the broker while it serves clients behind a proxy, and starts it again.
        ///
        /// The broker stores its state as a snapshot. The snapshot is taken last, and includes everything that
        /// clients have received so far. Bytes that the broker sends after the snapshot are not forwarded, since a
        /// broker with a log would have stored their cause before it sent them.
        func killAndRestart(behind proxy: ChaosProxy) async throws {
            proxy.freeze()
            try await save()
            kill()
            proxy.dropConnections()
            proxy.thaw()
            try await start()
        }

        private func save() async throws {
            guard let process = process.withLock({ $0 }) else { return }
            let before = inode()
            Glibc.kill(process, SIGUSR1)
            // The broker writes a new file and then renames it.
            while inode() == before {
                guard Glibc.kill(process, 0) == 0 else { throw Failure(said: "it is gone") }
                try await Task.sleep(for: .milliseconds(2))
            }
        }

        private func inode() -> UInt64 {
            var status = stat()
            return stat(store, &status) == 0 ? UInt64(status.st_ino) : 0
        }

        nonisolated func kill() {
            guard let process = process.withLock({ $0.take() }) else { return }
            Glibc.kill(process, SIGKILL)
            waitpid(process, nil, 0)
        }

        /// Kills the broker and deletes its stored state.
        func stop() {
            kill()
            try? FileManager.default.removeItem(at: folder)
        }

        deinit { kill() }

        /// A free port below the ephemeral range: outgoing connections could take one inside it.
        static func freePort() throws -> UInt16 {
            for _ in 0..<50 {
                let port = UInt16.random(in: 20_000..<31_000)
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(descriptor) }
                let result = LoopbackAddress.with(port) { bind(descriptor, $0, $1) }
                if result == 0 { return port }
            }
            throw Failure(said: "no port is free")
        }
    }
#endif
