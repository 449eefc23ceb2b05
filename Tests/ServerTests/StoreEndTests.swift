#if os(Linux)
    import Foundation
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
    import WireTestSupport

    /// Processes that send one message each to Mosquitto, one after another, with the same store.
    @Suite(
        "Ended clients with a store",
        .enabled(
            if: MosquittoServer.isRunning,
            "Mosquitto is not running: Tests/Servers/with --install -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct StoreEndTests {
        private let name = "end-\(UInt64.random(in: 0 ... .max))"

        @Test(
            "What was acknowledged before a clean end, or a kill, is not sent again; what failed, not at all",
            arguments: [MQTTConfiguration.Version.v3_1_1, .v5],
            [
                ("disconnect", 1), ("disconnect", 2), ("shutdown", 1), ("withConnection", 1),
                ("kill", 2),
            ]
        )
        func ends(_ version: MQTTConfiguration.Version, _ end: (name: String, qos: Int))
            async throws
        {
            let store = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-\(name)").path
            defer { try? FileManager.default.removeItem(atPath: store) }
            let port = try #require(TestServers.port("MOSQUITTO"))
            let digit = version == .v5 ? "5" : "3"
            func process(_ body: String, to port: Int) throws -> ChildProcess {
                try ChildProcess(
                    "WaybillStoreProcess",
                    ["once", "\(port)", digit, name, store, body, "\(end.qos)", end.name],
                    environment: ["WAYBILL_WAITS": "no"]
                )
            }
            let receiver = try MosquittoServer.transport(version)
            let provider = Provider<AnyEntry>(transport: receiver)
            let messages = try await provider.messages(.subscribe(topic: name, qos: .exactlyOnce))
            let bodies = (1...6).map(String.init)
            for body in bodies {
                // A port without a server: the caller is told that nothing arrives.
                let failed = try process("failed", to: 1)
                try await failed.waitForLine("connectionRefused false")
                if end.name == "kill" {
                    try await failed.killNow()
                } else {
                    try await failed.waitForEnd()
                }
                let sent = try process(body, to: port)
                try await sent.waitForLine("sent")
                if end.name == "kill" {
                    try await sent.killNow()
                } else {
                    try await sent.waitForEnd()
                }
            }
            let last = try ChildProcess(
                "WaybillStoreProcess",
                ["finish", "\(port)", digit, name, store]
            )
            try await last.waitForEnd()
            try await provider.request(
                .send(topic: name, body: .text("over"), qos: .exactlyOnce)
            )
            var heard: [String] = []
            for try await message in messages {
                heard.append(message.body.text ?? "")
                if heard.last == "over" { break }
            }
            #expect(heard == bodies + ["over"])
            await receiver.shutdown()
        }
    }
#endif
