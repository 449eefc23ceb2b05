import Testing
import Waybill
import WaybillTesting
import WireCore
import WireTestSupport

@testable import WorkerPool

/// The worker and the producer of the example, with a broker in this process.
@Suite("A worker and a producer of the example", .timeLimit(.minutes(30)))
struct WorkerTests {
    private struct Failure: Error {}

    private func broker(
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws -> LoopbackBroker {
        var configuration = LoopbackBroker.Configuration()
        change(&configuration)
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        return broker
    }

    /// More jobs fail than a worker may hold at a time.
    @Test(
        "Jobs that fail are set aside, and the worker goes on",
        arguments: [JobPool.Wire.mqtt, .stomp]
    )
    func failing(wire: JobPool.Wire) async throws {
        let broker = try broker()
        let url = broker.url(for: wire == .mqtt ? .mqtt : .stomp)
        let pool = JobPool(wire: wire, name: "jobs", prefetch: 2)
        let watcher = try pool.provider(url: url, client: "watcher", keepsSession: false)
        let setAside = try await watcher.messages(.take(pool.failed))
        let (done, attempts) = (Notes(), Notes())
        let stop = Stop()
        let (ready, isReady) = AsyncStream<Void>.makeStream()
        let worker = Worker(
            pool: pool,
            provider: try pool.provider(url: url, client: "worker", keepsSession: true),
            work: { job in
                attempts.add(job)
                if job < "4" { throw Failure() }
                done.add(job)
            },
            report: { if $0 == "ready" { isReady.yield() } },
            pause: .zero
        )
        let working = Task {
            defer { isReady.finish() }
            try await worker.run(until: stop)
        }
        for await _ in ready { break }
        let provider = try pool.provider(url: url, client: "", keepsSession: false)
        try await Producer(pool: pool, provider: provider).submit(0..<10)
        var heard: [String] = []
        for try await job in setAside {
            heard.append(job.text ?? "")
            if let id = job.id { try await watcher.request(.done(id)) }
            if heard.count == 4 { break }
        }
        try await waitUntil { done.all.count == 6 }
        stop.stop()
        try await working.value
        #expect(heard.sorted() == ["0", "1", "2", "3"])
        #expect(done.all.sorted() == ["4", "5", "6", "7", "8", "9"])
        #expect(attempts.all.count { $0 == "0" } == Worker.attempts)
        for provider in [provider, watcher] { await provider.shutdown() }
        await broker.stop()
    }

    @Test("A producer ends at an error that no repetition helps, and when it is cancelled")
    func submitting() async throws {
        let strict = try broker { $0.authenticate = { _, _ in false } }
        let pool = JobPool(wire: .mqtt, name: "jobs", prefetch: 10)
        let refused = try pool.provider(
            url: strict.url(for: .mqtt),
            client: "",
            keepsSession: false
        )
        let error = await #expect(throws: WaybillError.self) {
            try await Producer(pool: pool, provider: refused).submit(0..<10)
        }
        #expect(error?.code == .unauthorized)
        await refused.shutdown()
        await strict.stop()

        let provider = try pool.provider(
            url: "mqtt://127.0.0.1:1",
            client: "",
            keepsSession: false
        )
        let reports = Notes()
        let producer = Producer(pool: pool, provider: provider, report: { reports.add($0) })
        let submitting = Task { try await producer.submit(0..<10) }
        try await waitUntil { !reports.all.isEmpty }
        submitting.cancel()
        await #expect(throws: CancellationError.self) { try await submitting.value }
        await provider.shutdown()
    }
}

/// What several tasks have noted.
private final class Notes: Sendable {
    private let notes = Locked<[String]>([])

    var all: [String] { notes.withLock { $0 } }

    func add(_ note: String) { notes.withLock { $0.append(note) } }
}
