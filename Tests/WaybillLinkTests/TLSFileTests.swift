#if os(Linux)
    import Foundation
    import Testing
    import WaybillLink
    import WireTestSupport

    @Suite(
        "TLS: files that change",
        .enabled(if: Certificates.areThere, Certificates.absence),
        .timeLimit(.minutes(30))
    )
    struct TLSFileTests {
        @Test("A key that does not fit for a moment fails that connection, and not the next one")
        func rotation() async throws {
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-rotation-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: folder,
                withIntermediateDirectories: true
            )
            defer { try? FileManager.default.removeItem(at: folder) }
            func put(_ name: String, as file: String) throws {
                let bytes = Data(try Certificates.bytes(name))
                try bytes.write(to: folder.appendingPathComponent(file), options: .atomic)
            }
            var client = TLSSettings()
            client.authorities = [.file(Certificates.path("ca.pem"))]
            client.identity = .certificate(
                .file(folder.appendingPathComponent("own.pem").path),
                key: .file(folder.appendingPathComponent("own.key").path),
                password: nil
            )
            let dialer = try TLSEchoDialer { $0.authorities = client.authorities }
                .secured(by: client)
            func dial() async throws {
                let stream = try await dialer.dial(
                    Endpoint(host: "localhost", port: 1),
                    timeout: .seconds(10),
                    timers: ManualTimers()
                )
                let heard = Recorder()
                let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
                driver.start(heard.handler)
                driver.withCore { core, _ in core.send("x") }
                #expect(heard.events == [.line("x")])
                driver.withCore { core, _ in core.isFinished = true }
            }
            try put("client.pem", as: "own.pem")
            try put("client.key", as: "own.key")
            try await dial()
            try put("server.key", as: "own.key")
            do {
                try await dial()
                Issue.record("taken")
            } catch LinkError.tls(.invalidSettings) {}
            try put("client.key", as: "own.key")
            try await dial()
        }
    }
#endif
