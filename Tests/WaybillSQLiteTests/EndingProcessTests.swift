#if os(Linux)
    import Foundation
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
    import WaybillSQLite
    import WaybillSSE
    import WaybillTesting
    import WireTestSupport

    /// Processes that send one message each, one after another, with the same store.
    @Suite("A store and processes that end", .timeLimit(.minutes(30)))
    struct EndingProcessTests {
        enum Client: String, CaseIterable {
            case atLeastOnce, exactlyOnce, stomp, http

            var version: String { self == .stomp || self == .http ? rawValue : "5" }
            var qos: Int { self == .exactlyOnce ? 2 : self == .http ? 0 : 1 }
            var service: LoopbackBroker.Service {
                self == .stomp ? .stomp : self == .http ? .eventStream : .mqtt
            }
        }

        private let arrivals = LineLog()
        private let subscribers = LineLog()
        private let broker: LoopbackBroker
        private let temporary: TemporaryStore

        init() throws {
            broker = try .started { [arrivals, subscribers] configuration in
                configuration.observe = { occurrence in
                    switch occurrence {
                    case .published(_, _, let payload, _):
                        arrivals.append(String(decoding: payload, as: UTF8.self))
                    case .subscribed(_, let topic): subscribers.append(topic)
                    default: break
                    }
                }
            }
            temporary = try TemporaryStore()
        }

        private func port(of client: Client) -> Int {
            Int(broker.port(for: client.service))
        }

        /// Starts a process that sends a body.
        private func process(
            _ body: String,
            from client: Client = .atLeastOnce,
            port: Int? = nil,
            stamp: String? = nil,
            waits: Bool = true,
            _ end: String
        ) throws -> ChildProcess {
            let port = port ?? self.port(of: client)
            var environment = stamp.map { ["WAYBILL_STAMP": $0] } ?? [:]
            if !waits { environment["WAYBILL_WAITS"] = "no" }
            return try ChildProcess(
                "WaybillStoreProcess",
                [
                    "once", "\(port)", client.version, "app", temporary.path, body,
                    "\(client.qos)", end,
                ],
                environment: environment
            )
        }

        /// Sends what is left in the store.
        private func finish(
            _ client: Client = .atLeastOnce,
            stamp: String? = nil
        ) async throws {
            let last = try ChildProcess(
                "WaybillStoreProcess",
                ["finish", "\(port(of: client))", client.version, "app", temporary.path],
                environment: stamp.map { ["WAYBILL_STAMP": $0] } ?? [:]
            )
            try await last.waitForEnd()
            #expect(last.output == "")
        }

        @Test(
            "An acknowledged message is not sent again by the next process after a clean end",
            arguments: ["disconnect", "shutdown", "withConnection", "run", "pause", "clean"],
            Client.allCases
        )
        func clean(_ end: String, _ client: Client) async throws {
            let bodies = (1...6).map(String.init)
            for body in bodies {
                let process = try process(body, from: client, end)
                try await process.waitForEnd()
                #expect(process.output == "sent\n")
            }
            try await finish(client)
            #expect(arrivals.all == bodies)
            await broker.stop()
        }

        @Test(
            "Killed after the acknowledgement: nothing is lost, and QoS 2 sends nothing twice",
            arguments: Client.allCases
        )
        func killed(_ client: Client) async throws {
            let bodies = (1...6).map(String.init)
            for body in bodies {
                let process = try process(body, from: client, "kill")
                try await process.waitForLine("sent")
                try await process.killNow()
            }
            try await finish(client)
            let all = arrivals.all
            #expect(Set(all) == Set(bodies))
            if client == .exactlyOnce { #expect(all == bodies) }
            await broker.stop()
        }

        @Test(
            "A send waits without a network, and the next process sends it, however the first one ends",
            arguments: ["leave", "drop", "vanish"],
            [Client.atLeastOnce, .exactlyOnce, .stomp]
        )
        func offline(_ end: String, _ client: Client) async throws {
            // A port without a server.
            let process = try process("late", from: client, port: 1, end)
            if end == "vanish" {
                try await process.waitForLine("stored")
                try await process.killNow()
            } else {
                try await process.waitForEnd()
            }
            #expect(process.output == (end == "leave" ? "shutDown true\n" : "stored\n"))
            try await finish(client)
            #expect(arrivals.all == ["late"])
            await broker.stop()
        }

        @Test(
            "Killed before STOMP's receipt or the response: the next process sends it again",
            arguments: [Client.stomp, .http]
        )
        func unanswered(_ client: Client) async throws {
            broker.faults.withholdsReceipts = true
            let process = try process("x", from: client, "kill")
            try await waitUntil { arrivals.all == ["x"] }
            try await process.killNow()
            broker.faults.withholdsReceipts = false
            try await finish(client)
            #expect(arrivals.all == ["x", "x"])
            await broker.stop()
        }

        @Test("Killed between two events of a stream: the next process misses and repeats none")
        func stream() async throws {
            let sender = try SSETransport(url: broker.url(for: .eventStream))
            let provider = Provider<AnyEntry>(transport: sender)
            var said: [String] = []
            var number = 0
            for round in 0..<3 {
                let process = try ChildProcess(
                    "WaybillStoreProcess",
                    ["listen", "\(port(of: .http))", "http", "app", temporary.path, "4"]
                )
                // Without an ID a stream begins with the events from then on.
                if round == 0 { try await waitUntil { subscribers.all.count == 1 } }
                for _ in 0..<6 {
                    number += 1
                    try await provider.request(.send(topic: "app", body: .text("\(number)")))
                }
                try await process.waitForLine("taken")
                try await process.killNow()
                said += process.output.split(separator: "\n").map(String.init)
            }
            said.removeAll { $0 == "taken" }
            #expect(said == (1...12).map(String.init))
            await sender.shutdown()
            await broker.stop()
        }

        @Test(
            "A send that has failed is not sent by the next process",
            arguments: ["disconnect", "kill"],
            [Client.atLeastOnce, .stomp, .http]
        )
        func failed(_ end: String, _ client: Client) async throws {
            // A port without a server.
            let process = try process("failed", from: client, port: 1, waits: false, end)
            try await process.waitForLine("connectionRefused false")
            #expect(process.output == "connectionRefused false\n")
            if end == "kill" { try await process.killNow() } else { try await process.waitForEnd() }
            let next = try self.process("next", from: client, "disconnect")
            try await next.waitForEnd()
            try await finish(client)
            #expect(arrivals.all == ["next"])
            await broker.stop()
        }

        @Test(
            "No secret of an interceptor is in the file, and the next process adds its own",
            arguments: ["leave", "kill"]
        )
        func secrets(_ end: String) async throws {
            // However busy the machine is.
            let receiver = try MQTTTransport(url: broker.url) {
                $0.timeouts.connect = .seconds(600)
            }
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
