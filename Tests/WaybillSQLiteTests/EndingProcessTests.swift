#if os(Linux)
    import Foundation
    import Testing
    import TransportTestSupport
    import WaybillSQLite
    import WaybillTesting
    import WireTestSupport

    /// Processes that send one message each, one after another, with the same store.
    @Suite("A store and processes that end", .timeLimit(.minutes(30)))
    struct EndingProcessTests {
        private let arrivals = LineLog()
        private let broker: LoopbackBroker
        private let temporary: TemporaryStore

        init() throws {
            broker = try .started { [arrivals] configuration in
                configuration.observe = { occurrence in
                    guard case .published(_, _, let payload, _) = occurrence else { return }
                    arrivals.append(String(decoding: payload, as: UTF8.self))
                }
            }
            temporary = try TemporaryStore()
        }

        /// Starts a process that sends a body.
        private func process(
            _ body: String,
            qos: Int = 1,
            port: Int? = nil,
            _ end: String
        ) throws -> ChildProcess {
            let port = port ?? Int(broker.port)
            return try ChildProcess(
                "WaybillStoreProcess",
                ["once", "\(port)", "5", "app", temporary.path, body, "\(qos)", end]
            )
        }

        /// Sends what is left in the store.
        private func finish() async throws {
            let last = try ChildProcess(
                "WaybillStoreProcess",
                ["finish", "\(broker.port)", "5", "app", temporary.path]
            )
            try await last.waitForEnd()
            #expect(last.output == "")
        }

        @Test(
            "An acknowledged message is not sent again by the next process after a clean end",
            arguments: ["disconnect", "shutdown", "withConnection", "run", "pause", "clean"],
            [1, 2]
        )
        func clean(_ end: String, qos: Int) async throws {
            let bodies = (1...6).map(String.init)
            for body in bodies {
                let process = try process(body, qos: qos, end)
                try await process.waitForEnd()
                #expect(process.output == "sent\n")
            }
            try await finish()
            #expect(arrivals.all == bodies)
            await broker.stop()
        }

        @Test(
            "Killed after the acknowledgement: nothing is lost, and QoS 2 sends nothing twice",
            arguments: [1, 2]
        )
        func killed(qos: Int) async throws {
            let bodies = (1...6).map(String.init)
            for body in bodies {
                let process = try process(body, qos: qos, "kill")
                try await process.waitForLine("sent")
                try await process.killNow()
            }
            try await finish()
            let all = arrivals.all
            #expect(Set(all) == Set(bodies))
            if qos == 2 { #expect(all == bodies) }
            await broker.stop()
        }

        @Test(
            "A send that has failed is not sent by the next process",
            arguments: ["disconnect", "kill"]
        )
        func failed(_ end: String) async throws {
            // A port without a server.
            let process = try process("failed", port: 1, end)
            try await process.waitForLine("connectionRefused false")
            #expect(process.output == "connectionRefused false\n")
            if end == "kill" { try await process.killNow() } else { try await process.waitForEnd() }
            let next = try self.process("next", "disconnect")
            try await next.waitForEnd()
            try await finish()
            #expect(arrivals.all == ["next"])
            await broker.stop()
        }
    }
#endif
