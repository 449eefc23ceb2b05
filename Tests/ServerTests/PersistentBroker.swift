#if os(Linux)
    import ChaosSupport
    import Foundation
    import Glibc
    import WireCore

    /// A Mosquitto of one's own that keeps its sessions in a file, and can be killed and started again.
    actor PersistentBroker {
        struct Failure: Error {
            let said: String
        }

        nonisolated let port: UInt16
        private let folder: URL
        private let process = Locked<pid_t?>(nil)

        private var store: String { folder.appendingPathComponent("mosquitto.db").path }

        init() async throws {
            port = try Self.freePort()
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-broker-\(UInt64.random(in: 0 ... .max))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            // It forgets nothing by itself, and saves when it is told to. As root it would become a user that
            // cannot read this folder.
            let lines = [
                "listener \(port) 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true",
                "persistence true", "persistence_location \(folder.path)/", "autosave_interval 0",
                "max_queued_messages 0", "max_inflight_messages 1000",
            ]
            let user = getuid() == 0 ? ["user root"] : []
            try (user + lines + [""]).joined(separator: "\n")
                .write(to: folder.appendingPathComponent("conf"), atomically: true, encoding: .utf8)
            try await start()
        }

        /// Starts it and waits until it takes connections.
        private func start() async throws {
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            // The threads of the runtime heed no signals, and what they start would not either.
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            defer { posix_spawnattr_destroy(&attributes) }
            var signals = sigset_t()
            sigemptyset(&signals)
            posix_spawnattr_setsigmask(&attributes, &signals)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
            let log = folder.appendingPathComponent("log").path
            // Whoever waits for the end of what this process writes must not wait for the broker: it gets neither the
            // output nor any other pipe.
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
            return Self.withAddress(port) { connect(descriptor, $0, $1) } == 0
        }

        /// Kills it in the middle of what comes through a proxy, and starts it again.
        ///
        /// What it keeps is a snapshot, so that one is taken at the last moment: of all that its clients have heard from
        /// it. What it says after that moment is not forwarded: a broker that keeps a log instead would not have said
        /// it.
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
            // The file is written beside the old one and put in its place.
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

        /// Kills it and forgets what it has kept.
        func stop() {
            kill()
            try? FileManager.default.removeItem(at: folder)
        }

        deinit { kill() }

        /// A port that nobody listens on, below those of outgoing connections, which could take it meanwhile.
        static func freePort() throws -> UInt16 {
            for _ in 0..<50 {
                let port = UInt16.random(in: 20_000..<31_000)
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(descriptor) }
                let result = withAddress(port) { bind(descriptor, $0, $1) }
                if result == 0 { return port }
            }
            throw Failure(said: "no port is free")
        }

        private static func withAddress(
            _ port: UInt16,
            _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
        ) -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }
#endif
