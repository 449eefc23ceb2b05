#if os(Linux)
    import Foundation
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
    import WaybillSQLite
    import WireCore
    import WireTestSupport

    /// Clients with a store on disk that are killed with signal 9 and started again.
    ///
    /// `WAYBILL_STORE_KILLS` is the number of kills; 5 by default.
    @Suite(
        "Killed clients with a store",
        .serialized,
        .enabled(
            if: MosquittoServer.isRunning,
            "Mosquitto is not running: Tests/Servers/with --install -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct StoreKillTests {
        static let kills =
            Int(ProcessInfo.processInfo.environment["WAYBILL_STORE_KILLS"] ?? "") ?? 5

        /// Counts the arrivals of numbers.
        private final class Arrivals: Sendable {
            private let counts = Locked<[Int: Int]>([:])

            func note(_ number: Int) { counts.withLock { $0[number, default: 0] += 1 } }

            var all: [Int: Int] { counts.withLock { $0 } }
        }

        private func numbers(_ path: String) -> [Int] {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap { Int($0) }
        }

        @Test(
            "A killed sender loses no message that was stored, and sends none twice at QoS 2",
            arguments: [MQTTConfiguration.Version.v5, .v3_1_1],
            [1, 2]
        )
        func sender(version: MQTTConfiguration.Version, qos: Int) async throws {
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("waybill-kill-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let name = "kill-\(UInt32.random(in: 0 ... .max))"
            let store = folder.appendingPathComponent("store").path
            let ledger = folder.appendingPathComponent("ledger").path
            let port = try #require(TestServers.port("MOSQUITTO"))
            let common = ["\(port)", version == .v5 ? "5" : "3", name, store]

            // An application of its own takes the messages. It is not killed.
            let receiver = try MosquittoServer.transport(version)
            let arrivals = Arrivals()
            let provider = Provider<AnyEntry>(transport: receiver)
            let messages = try await provider.messages(.subscribe(topic: name, qos: .exactlyOnce))
            let taking = Task {
                for try await message in messages {
                    if let number = Int(message.body.text ?? "") { arrivals.note(number) }
                }
            }

            for round in 0..<Self.kills {
                let level = round.isMultiple(of: 2) ? "full" : "process"
                let first = round * 1_000_000
                let process = try ChildProcess(
                    "WaybillStoreProcess",
                    ["send"] + common + [ledger, "\(qos)", "\(first)", level]
                )
                try await process.waitForLine("connected")
                try await Task.sleep(for: .milliseconds(.random(in: 0..<150)))
                #expect(process.isRunning, "\(process.output)")
                try await process.killNow()
            }
            let last = try ChildProcess("WaybillStoreProcess", ["finish"] + common)
            try await last.waitForEnd()
            #expect(last.output == "connected\n" || last.output.isEmpty, "\(last.output)")
            // The receiver has everything when it has the last message.
            try await provider.request(.send(topic: name, body: .text("-1"), qos: .exactlyOnce))
            let accepted = Set(numbers(ledger))
            try await waitUntil {
                accepted.isSubset(of: arrivals.all.keys) && arrivals.all[-1] != nil
            }
            let counts = arrivals.all
            let repeated = counts.values.reduce(0) { $0 + $1 - 1 }
            print(
                "\(version), QoS \(qos), \(Self.kills) kills: \(accepted.count) accepted,",
                "\(counts.count - 1) arrived, 0 lost, \(repeated) repeated"
            )
            #expect(accepted.count >= Self.kills)
            // A message of QoS 1 may come twice.
            #expect(qos == 1 || repeated == 0)
            taking.cancel()
            await receiver.shutdown()
        }
    }
#endif
