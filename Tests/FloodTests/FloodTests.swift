#if os(Linux)
    import Foundation
    import Testing

    /// Runs each flood of `WaybillFloods` in a process of its own, whose memory the kernel measures.
    @Suite("Floods by hostile servers", .timeLimit(.minutes(30))) struct FloodTests {
        static let isExtended = ProcessInfo.processInfo.environment["WAYBILL_EXTENDED"] == "1"

        /// 64 MiB, the default memory limit of a connection.
        private static let limit = 64 << 10

        @Test(
            "No flood takes more than 64 MiB above the idle client",
            .enabled(if: isExtended, "takes minutes: set WAYBILL_EXTENDED=1")
        )
        func peaks() async throws {
            let names = try await run([]).split(separator: "\n").map(String.init)
            #expect(names.count >= 20)
            print("flood                            peak above idle, KiB    sent, KiB")
            for name in names {
                let words = try await run([name]).split(whereSeparator: \.isWhitespace)
                let numbers = words.dropFirst().compactMap { Int($0) }
                guard words.count == 3, numbers.count == 2 else {
                    Issue.record("\(name) ended without a figure: \(words)")
                    continue
                }
                print(
                    name.padding(toLength: 32, withPad: " ", startingAt: 0),
                    String(numbers[0]).padding(toLength: 23, withPad: " ", startingAt: 0),
                    numbers[1]
                )
                #expect(numbers[0] <= Self.limit, "\(name)")
                // A server that sent nothing made no flood.
                #expect(numbers[1] > 100, "\(name)")
            }
        }

        private func run(_ arguments: [String]) async throws -> String {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent().appendingPathComponent("WaybillFloods")
            process.arguments = arguments
            let log = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-flood-\(UUID().uuidString)")
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
            defer { try? FileManager.default.removeItem(at: log) }
            process.standardOutput = try FileHandle(forWritingTo: log)
            try await withCheckedThrowingContinuation { continuation in
                process.terminationHandler = { _ in continuation.resume() }
                do { try process.run() } catch { continuation.resume(throwing: error) }
            }
            return String(decoding: try Data(contentsOf: log), as: UTF8.self)
        }
    }
#endif
