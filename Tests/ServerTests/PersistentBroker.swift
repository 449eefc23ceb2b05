#if os(Linux)
    import ChaosSupport
    import Foundation
    import Glibc

    /// A Mosquitto of one's own that keeps its sessions in a file, and can be killed and started again.
    actor PersistentBroker {
        struct Failure: Error {
            let said: String
        }

        nonisolated let port: UInt16
        private let folder: URL
        private var process: Process?
        private var exits: AsyncStream<Void>?

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

        /// Starts it and waits until it says that it runs.
        private func start() async throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            let configuration = folder.appendingPathComponent("conf").path
            process.arguments = ["mosquitto", "-v", "-c", configuration]
            let output = Pipe()
            process.standardError = output
            process.standardOutput = FileHandle.nullDevice
            let (exits, exit) = AsyncStream<Void>.makeStream()
            process.terminationHandler = { _ in exit.finish() }
            // Whoever says much must be heard to the end, or waits.
            let (words, mouth) = AsyncStream<String>.makeStream()
            output.fileHandleForReading.readabilityHandler = { handle in
                let data = handle.availableData
                mouth.yield(String(decoding: data, as: UTF8.self))
                guard data.isEmpty else { return }
                handle.readabilityHandler = nil
                mouth.finish()
            }
            try process.run()
            (self.process, self.exits) = (process, exits)
            var said = ""
            for await word in words {
                said += word
                if said.contains(" running\n") { return }
            }
            throw Failure(said: said)
        }

        /// Kills it in the middle of what comes through a proxy, and starts it again.
        ///
        /// What it keeps is a snapshot, so that one is taken at the last moment: of all that its clients have heard from
        /// it. What it says after that moment is not forwarded: a broker that keeps a log instead would not have said
        /// it.
        func killAndRestart(behind proxy: ChaosProxy) async throws {
            proxy.freeze()
            try await save()
            await kill()
            proxy.dropConnections()
            proxy.thaw()
            try await start()
        }

        private func save() async throws {
            guard let process else { return }
            let before = inode()
            Glibc.kill(process.processIdentifier, SIGUSR1)
            // The file is written beside the old one and put in its place.
            while inode() == before {
                guard process.isRunning else { throw Failure(said: "it has ended by itself") }
                try await Task.sleep(for: .milliseconds(2))
            }
        }

        private func inode() -> UInt64 {
            var status = stat()
            return stat(store, &status) == 0 ? UInt64(status.st_ino) : 0
        }

        private func kill() async {
            guard let process, let exits else { return }
            Glibc.kill(process.processIdentifier, SIGKILL)
            for await _ in exits {}
            self.process = nil
        }

        /// Kills it and forgets what it has kept.
        func stop() async {
            await kill()
            try? FileManager.default.removeItem(at: folder)
        }

        deinit {
            if let process, process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
        }

        /// A port that nobody listens on, below those of outgoing connections.
        private static func freePort() throws -> UInt16 {
            for _ in 0..<50 {
                let port = UInt16.random(in: 20_000..<31_000)
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(descriptor) }
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_port = port.bigEndian
                address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                let result = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
                if result == 0 { return port }
            }
            throw Failure(said: "no port is free")
        }
    }
#endif
