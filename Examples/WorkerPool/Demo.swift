import Waybill
import WaybillTesting

/// Four workers inside this process, over a broker inside this process. One of them is stopped in between.
struct Demo: Sendable {
    private static let jobs = 200

    /// The jobs that were done, with the workers that did them.
    private actor Ledger {
        private var workers: [String: [String]] = [:]
        private var arrivals: [AsyncStream<Int>.Continuation] = []

        func note(_ job: String, _ worker: String) {
            workers[job, default: []].append(worker)
            for arrival in arrivals { arrival.yield(workers.count) }
        }

        /// The number of different jobs, after each change.
        func counts() -> AsyncStream<Int> {
            let (counts, arrival) = AsyncStream<Int>.makeStream()
            arrival.yield(workers.count)
            arrivals.append(arrival)
            return counts
        }

        /// How many jobs each worker has done, and how many were done twice.
        var summary: String {
            let all = workers.values.joined()
            let names = Set(all).sorted().map { name in
                "\(name) did \(all.count { $0 == name })"
            }
            return names.joined(separator: ", ")
                + "; \(workers.count) jobs, done twice: \(workers.values.count { $0.count > 1 })"
        }
    }

    /// Runs the demonstration over both protocols.
    func run() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        try await run(.mqtt, broker.url(for: .mqtt))
        try await run(.stomp, broker.url(for: .stomp))
        await broker.stop()
    }

    private func run(_ wire: JobPool.Wire, _ url: String) async throws {
        let pool = JobPool(wire: wire, name: "jobs", prefetch: 10)
        let ledger = Ledger()
        let stops = (1...4).map { _ in Stop() }
        try await withThrowingTaskGroup { group in
            let (ready, isReady) = AsyncStream<Void>.makeStream()
            for (index, stop) in stops.enumerated() {
                group.addTask {
                    try await work("worker-\(index + 1)", pool, url, stop, ledger) {
                        isReady.yield()
                    }
                }
            }
            var iterator = ready.makeAsyncIterator()
            for _ in stops { _ = await iterator.next() }
            let provider = try pool.provider(url: url, client: "", keepsSession: false)
            async let submitted: Void = Producer(pool: pool, provider: provider)
                .submit(0..<Self.jobs)
            for await count in await ledger.counts() where count >= Self.jobs / 4 {
                break
            }
            // This worker finishes its job. The jobs that it has not begun go to the next one with its name.
            stops[3].stop()
            try await group.next()
            let next = Stop()
            group.addTask { try await work("worker-4", pool, url, next, ledger) {} }
            try await submitted
            for await count in await ledger.counts() where count >= Self.jobs {
                break
            }
            for stop in stops + [next] { stop.stop() }
            try await group.waitForAll()
            await provider.shutdown()
        }
        WorkerPool.say("\(wire.rawValue) over \(url): \(await ledger.summary)")
    }

    private func work(
        _ name: String,
        _ pool: JobPool,
        _ url: String,
        _ stop: Stop,
        _ ledger: Ledger,
        onReady: @escaping @Sendable () -> Void
    ) async throws {
        let worker = Worker(
            pool: pool,
            provider: try pool.provider(url: url, client: name, keepsSession: true),
            work: { job in
                try await Task.sleep(for: .milliseconds(2))
                await ledger.note(job, name)
            },
            report: {
                if $0 == "ready" { onReady() } else if $0 != "stopped" { WorkerPool.say($0) }
            }
        )
        try await worker.run(until: stop)
    }
}
