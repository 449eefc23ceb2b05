#if os(Linux)
    import Foundation
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
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
            stamp: String? = nil,
            waits: Bool = true,
            _ end: String
        ) throws -> ChildProcess {
            let port = port ?? Int(broker.port)
            var environment = stamp.map { ["WAYBILL_STAMP": $0] } ?? [:]
            if !waits { environment["WAYBILL_WAITS"] = "no" }
            return try ChildProcess(
                "WaybillStoreProcess",
                ["once", "\(port)", "5", "app", temporary.path, body, "\(qos)", end],
                environment: environment
            )
        }

        /// Sends what is left in the store.
        private func finish(stamp: String? = nil) async throws {
            let last = try ChildProcess(
                "WaybillStoreProcess",
                ["finish", "\(broker.port)", "5", "app", temporary.path],
                environment: stamp.map { ["WAYBILL_STAMP": $0] } ?? [:]
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
            "A send waits without a network, and the next process sends it, however the first one ends",
            arguments: ["leave", "drop", "vanish"],
            [1, 2]
        )
        func offline(_ end: String, qos: Int) async throws {
            // A port without a server.
            let process = try process("late", qos: qos, port: 1, end)
            if end == "vanish" {
                try await process.waitForLine("stored")
                try await process.killNow()
            } else {
                try await process.waitForEnd()
            }
            #expect(process.output == (end == "leave" ? "shutDown true\n" : "stored\n"))
            try await finish()
            #expect(arrivals.all == ["late"])
            await broker.stop()
        }

        @Test(
            "A send that has failed is not sent by the next process",
            arguments: ["disconnect", "kill"]
        )
        func failed(_ end: String) async throws {
            // A port without a server.
            let process = try process("failed", port: 1, waits: false, end)
            try await process.waitForLine("connectionRefused false")
            #expect(process.output == "connectionRefused false\n")
            if end == "kill" { try await process.killNow() } else { try await process.waitForEnd() }
            let next = try self.process("next", "disconnect")
            try await next.waitForEnd()
            try await finish()
            #expect(arrivals.all == ["next"])
            await broker.stop()
        }

        @Test(
            "No secret of an interceptor is in the file, and the next process adds its own",
            arguments: ["leave", "kill"]
        )
        func secrets(_ end: String) async throws {
            let receiver = try MQTTTransport(url: broker.url)
            let messages = try await Provider<AnyEntry>(transport: receiver).messages(
                .subscribe(topic: "app", qos: .atMostOnce)
            )
            var iterator = messages.makeAsyncIterator()
            broker.faults.withholdsAcknowledgements = true
            let process = try process("body", stamp: "Bearer first", end)
            if end == "kill" {
                // It has arrived, so it is in the file, and it waits for its acknowledgement.
                #expect(try await iterator.next()?.headers["authorization"] == "Bearer first")
                try await process.killNow()
            } else {
                try await process.waitForEnd()
                #expect(process.output == "shutDown true\n")
            }
            let files = try temporary.contents().values
            #expect(files.contains { $0.range(of: Data("body".utf8)) != nil })
            #expect(!files.contains { $0.range(of: Data("Bearer".utf8)) != nil })
            broker.faults.withholdsAcknowledgements = false
            try await finish(stamp: "Bearer second")
            var stamps: [String] = []
            while stamps.last != "Bearer second", let message = try await iterator.next() {
                stamps.append(message.headers["authorization"] ?? "")
            }
            #expect(stamps.last == "Bearer second")
            await receiver.shutdown()
            await broker.stop()
        }
    }
#endif
