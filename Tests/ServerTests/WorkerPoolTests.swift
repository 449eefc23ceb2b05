#if os(Linux)
    import Foundation
    import Testing
    import WireTestSupport

    /// The example with several worker processes: two are killed with signal 9 and two are stopped, while they work.
    ///
    /// `WAYBILL_POOL_JOBS` is the number of jobs; 10,000 by default.
    @Suite("A pool of worker processes", .serialized, .timeLimit(.minutes(30)))
    struct WorkerPoolTests {
        static let jobs =
            Int(ProcessInfo.processInfo.environment["WAYBILL_POOL_JOBS"] ?? "") ?? 10_000
        private static let prefetch = 10

        /// One process and its log.
        private final class Worker {
            let name: String
            let log: URL
            let process: ChildProcess
            var wasKilled = false

            init(_ name: String, _ log: URL, _ arguments: [String]) throws {
                self.name = name
                self.log = log
                process = try ChildProcess(
                    "WorkerPool",
                    ["work", "--name", name, "--log", log.path, "--job-time", "1"] + arguments
                )
            }

            /// The jobs that it has done, with their times.
            var done: [(job: Int, time: Int)] {
                let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
                return text.split(separator: "\n").compactMap { line in
                    let parts = line.split(separator: " ").compactMap { Int($0) }
                    return parts.count == 2 ? (parts[0], parts[1]) : nil
                }
            }
        }

        /// The pool of one test.
        private final class Pool {
            private let folder: URL
            private let arguments: [String]
            private(set) var workers: [Worker] = []

            init(url: String, jobs name: String) throws {
                folder = FileManager.default.temporaryDirectory
                    .appendingPathComponent("waybill-pool-\(UUID().uuidString)")
                try FileManager.default.createDirectory(
                    at: folder,
                    withIntermediateDirectories: true
                )
                arguments = ["--url", url, "--jobs", name, "--prefetch", "\(prefetch)"]
            }

            deinit { try? FileManager.default.removeItem(at: folder) }

            func start(_ name: String) async throws {
                let log = folder.appendingPathComponent("\(workers.count)")
                let worker = try Worker(name, log, arguments)
                workers.append(worker)
                try await worker.process.waitForLine("ready")
                #expect(worker.process.isRunning, "\(worker.process.output)")
            }

            func produce() throws -> ChildProcess {
                try ChildProcess("WorkerPool", ["produce", "--count", "\(jobs)"] + arguments)
            }

            /// Kills a worker, and starts one with the same name.
            func kill(_ index: Int) async throws {
                let worker = workers[index]
                worker.wasKilled = true
                try await worker.process.killNow()
                try await start(worker.name)
            }

            /// Stops a worker, and starts one with the same name.
            func replace(_ index: Int) async throws {
                try await stop(workers[index])
                try await start(workers[index].name)
            }

            func stop(_ worker: Worker) async throws {
                let code = try await worker.process.stop()
                #expect(code == 0)
                #expect(worker.process.lines == ["ready", "stopped"], "\(worker.process.output)")
            }

            /// Waits until so many different jobs are done.
            func wait(for count: Int) async throws {
                let limit = ContinuousClock.now + .seconds(240)
                while Set(workers.flatMap { $0.done.map(\.job) }).count < count,
                    ContinuousClock.now < limit
                {
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
        }

        private func run(_ title: String, url: String) async throws {
            let name = "pool-\(UInt32.random(in: 0 ... .max))"
            let pool = try Pool(url: url, jobs: name)
            for number in 1...4 { try await pool.start("\(name)-\(number)") }
            let producer = try pool.produce()
            try await pool.wait(for: Self.jobs / 5)
            try await pool.kill(0)
            try await pool.wait(for: Self.jobs * 2 / 5)
            try await pool.replace(1)
            try await pool.wait(for: Self.jobs * 3 / 5)
            try await pool.kill(2)
            try await pool.wait(for: Self.jobs * 4 / 5)
            try await pool.replace(3)
            try await pool.wait(for: Self.jobs)
            try await producer.waitForEnd()
            #expect(producer.lines == ["submitted \(Self.jobs)"])
            for worker in pool.workers where worker.process.isRunning {
                try await pool.stop(worker)
            }

            var completions: [Int: [(worker: Worker, time: Int)]] = [:]
            for worker in pool.workers {
                for (job, time) in worker.done {
                    completions[job, default: []].append((worker, time))
                }
            }
            let repeated = completions.values.reduce(0) { $0 + $1.count - 1 }
            print("worker pool, \(title): \(completions.count) jobs done, \(repeated) repeated")
            #expect(Set(completions.keys) == Set(0..<Self.jobs))
            // A job that a stopped worker has done is not done again. So all that was done before belongs to those
            // that were killed.
            for (job, all) in completions where all.count > 1 {
                let earlier = all.sorted { $0.time < $1.time }.dropLast()
                #expect(earlier.allSatisfy { $0.worker.wasKilled }, "job \(job)")
            }
            #expect(repeated <= 2 * Self.prefetch)
            // Each worker has had its share, so each end met one that was at work.
            for worker in pool.workers.prefix(4) { #expect(!worker.done.isEmpty) }
        }

        @Test(
            "MQTT 5: a shared subscription at Mosquitto",
            .enabled(
                if: MosquittoServer.isRunning,
                "Mosquitto is not running: Tests/Servers/with --install -- swift test"
            )
        )
        func mqtt() async throws {
            try await run("MQTT", url: MosquittoServer.Listener.open.url)
        }

        @Test(
            "STOMP: a quorum queue at RabbitMQ",
            .enabled(
                if: TestServers.port("RABBITMQ_STOMP") != nil,
                "RabbitMQ is not running: Tests/Servers/with --install rabbitmq -- swift test"
            )
        )
        func stomp() async throws {
            let port = try #require(TestServers.port("RABBITMQ_STOMP"))
            try await run("STOMP", url: "stomp://guest:guest@127.0.0.1:\(port)")
        }
    }
#endif
