#if os(Linux)
    import Foundation
    import Glibc

    /// A process of one of the package's executables, which are beside the tests'.
    package final class ChildProcess: Sendable {
        private let process = Process()
        private let log: URL

        /// Starts the executable; its output goes into a file.
        package init(
            _ name: String,
            _ arguments: [String],
            environment: [String: String] = [:]
        ) throws {
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent().appendingPathComponent(name)
            process.arguments = arguments
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            log = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-child-\(UUID().uuidString)")
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
            process.standardOutput = try FileHandle(forWritingTo: log)
            try process.run()
        }

        deinit {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            try? FileManager.default.removeItem(at: log)
        }

        /// What it has written so far.
        package var output: String {
            (try? String(contentsOf: log, encoding: .utf8)) ?? ""
        }

        package var lines: [String] { output.split(separator: "\n").map(String.init) }

        package var isRunning: Bool { process.isRunning }

        /// Waits until the output has this line, or the process has ended.
        package func waitForLine(_ line: String) async throws {
            try await waitUntil { lines.contains(line) || !process.isRunning }
        }

        /// Kills it with signal 9, and waits for its end.
        package func killNow() async throws {
            kill(process.processIdentifier, SIGKILL)
            try await waitForEnd()
        }

        /// Asks it to end with SIGTERM, and waits for its end.
        ///
        /// - Returns: The exit code.
        package func stop() async throws -> Int32 {
            kill(process.processIdentifier, SIGTERM)
            try await waitForEnd()
            return process.terminationStatus
        }

        package func waitForEnd() async throws {
            try await waitUntil { !process.isRunning }
        }
    }
#endif
