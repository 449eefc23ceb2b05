#if os(Linux)
    import Foundation
    import Testing
    import Waybill
    import WaybillMQTT
    import WaybillSSE
    import WaybillSTOMP
    import WaybillTesting
    import WaybillWebSocket

    @Suite("A system without OpenSSL", .timeLimit(.minutes(30))) struct LibraryMissingTests {
        private static let variable = "WAYBILL_WITHOUT_OPENSSL"
        /// True in the process that ``hidden()`` starts.
        static let isWithout = ProcessInfo.processInfo.environment[variable] != nil

        @Test(
            "TLS says what is missing, and all else works",
            .disabled(if: isWithout, "this is the system without")
        )
        func hidden() async throws {
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent(
                    "waybill-without-\(ProcessInfo.processInfo.processIdentifier)"
                )
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            // The loader finds these files first, and cannot load them.
            for name in ["libssl.so.3", "libssl.so.1.1", "libssl.so"] {
                try Data("hidden".utf8).write(to: folder.appendingPathComponent(name))
            }
            let (status, output) = try await run(folder)
            #expect(status == 0, "\(output)")
            #expect(output.contains(Self.sign), "\(output)")
        }

        /// The output of the other process at its end.
        private static let sign = "all else works without OpenSSL"

        /// Runs these tests again in a process for which the library is hidden.
        private func run(_ folder: URL) async throws -> (Int32, String) {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = [
                "--testing-library", "swift-testing", "--filter", "LibraryMissingTests",
            ]
            let arguments = CommandLine.arguments
            if let index = arguments.firstIndex(of: "--test-bundle-path") {
                process.arguments?.insert(contentsOf: arguments[index...(index + 1)], at: 0)
            }
            var environment = ProcessInfo.processInfo.environment
            let paths = [folder.path, environment["LD_LIBRARY_PATH"]].compactMap { $0 }
            environment["LD_LIBRARY_PATH"] = paths.joined(separator: ":")
            environment[Self.variable] = "1"
            process.environment = environment
            let log = folder.appendingPathComponent("log")
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
            let output = try FileHandle(forWritingTo: log)
            process.standardOutput = output
            process.standardError = output
            let status = try await withCheckedThrowingContinuation { continuation in
                process.terminationHandler = {
                    continuation.resume(returning: $0.terminationStatus)
                }
                do { try process.run() } catch { continuation.resume(throwing: error) }
            }
            return (status, String(decoding: try Data(contentsOf: log), as: UTF8.self))
        }

        @Test("Without it", .enabled(if: isWithout, "run by the other test"))
        func without() async throws {
            // The error comes before a connection attempt: no server listens on the port.
            let transports: [any Transport] = [
                try MQTTTransport(url: "mqtts://127.0.0.1:1"),
                try MQTTTransport(url: "wss://127.0.0.1:1"),
                try STOMPTransport(url: "stomps://127.0.0.1:1"),
                try SSETransport(url: "https://127.0.0.1:1"),
            ]
            for transport in transports {
                let command: EntryCommand = .send(qos: .atLeastOnce)
                let error = await #expect(throws: WaybillError.self) {
                    try await transport.perform(Request(topic: "t", command: command))
                }
                check(error)
                await transport.shutdown()
            }
            check(
                await #expect(throws: WaybillError.self) {
                    try await WebSocketClient.connect(to: "wss://127.0.0.1:1")
                }
            )
            let broker = LoopbackBroker()
            try broker.start()
            let transport = try MQTTTransport(url: broker.url(for: .mqttOverWebSocket))
            _ = try await transport.perform(
                Request(topic: "t", command: .send(qos: .exactlyOnce), body: "hello")
            )
            await transport.shutdown()
            await broker.stop()
            print(Self.sign)
        }

        private func check(_ error: WaybillError?) {
            #expect(error?.code == .tls, "\(String(describing: error))")
            let failure = error?.underlying as? TLSFailure
            #expect(failure?.reason == .libraryMissing)
            #expect(failure?.detail.contains("libssl3") == true)
        }
    }
#endif
