import Waybill
import WaybillTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A pool of workers: any number of processes that share the jobs of one topic or queue.
///
///     WorkerPool                                                        a demonstration inside this process
///     WorkerPool work    --url URL --name NAME [OPTION ...]             a worker
///     WorkerPool produce --url URL --count COUNT [--first NUMBER] [OPTION ...]
///
/// The URL is `mqtt://...` for a shared subscription of MQTT 5, or `stomp://...` for a quorum queue, unless
/// `--transport mqtt|stomp` says otherwise. Options: `--jobs NAME` (the topic or queue, `jobs` by default),
/// `--prefetch COUNT`, `--job-time MILLISECONDS`, `--log FILE` (a line for each job that was done).
///
/// Each worker has a name. A worker that was killed is replaced by one with the same name: an MQTT broker keeps the
/// jobs that it had, and those that came since, in the session of that name. SIGTERM stops a worker gracefully. See
/// `Worker`, and the guide `WorkerPool` in `Documentation/Waybill.docc`.
@main
struct WorkerPool {
    static func main() async {
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            say("usage: WorkerPool [work|produce --url URL ...]; see the source")
            exit(2)
        }
        do {
            switch options.mode {
            case .demo: try await Demo().run()
            case .work: try await work(options)
            case .produce: try await produce(options)
            }
        } catch {
            say("WorkerPool: \(error)")
            exit(1)
        }
    }

    /// Writes a line at once, so that another process that waits for it reads it.
    static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = line.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    private static func work(_ options: Options) async throws {
        let stop = Stop()
        let signals = stop.followSignals()
        defer { withExtendedLifetime(signals) {} }
        let log = options.log.flatMap { DoneLog($0) }
        let worker = Worker(
            pool: options.pool,
            provider: try options.pool.provider(
                url: options.url,
                client: options.name,
                keepsSession: true
            ),
            work: { job in
                try await Task.sleep(for: options.jobTime)
                log?.append(job)
            },
            report: { say($0) }
        )
        try await worker.run(until: stop)
    }

    private static func produce(_ options: Options) async throws {
        let provider = try options.pool.provider(
            url: options.url,
            client: "",
            keepsSession: false
        )
        let numbers = options.first..<options.first + options.count
        try await Producer(pool: options.pool, provider: provider, report: { say($0) })
            .submit(numbers)
        try await provider.disconnect()
        await provider.shutdown()
        say("submitted \(numbers.count)")
    }
}

/// The options of the command line.
private struct Options {
    enum Mode: String {
        case demo
        case work
        case produce
    }

    var mode = Mode.demo
    var pool = JobPool(wire: .mqtt, name: "jobs", prefetch: 10)
    var url = ""
    var name = ""
    var first = 0
    var count = 0
    var jobTime = Duration.milliseconds(10)
    var log: String?

    /// Reads the arguments; nil if they are not valid.
    init?(_ arguments: ArraySlice<String>) {
        var rest = arguments
        guard let word = rest.popFirst() else { return }
        guard let mode = Mode(rawValue: word) else { return nil }
        self.mode = mode
        var values: [String: String] = [:]
        while let option = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            values[option] = value
        }
        func number(_ option: String) -> Int? {
            values.removeValue(forKey: option).flatMap { Int($0) }
                .flatMap { (0...1_000_000_000).contains($0) ? $0 : nil }
        }
        url = values.removeValue(forKey: "--url") ?? ""
        name = values.removeValue(forKey: "--name") ?? ""
        first = number("--first") ?? 0
        count = number("--count") ?? 0
        jobTime = .milliseconds(number("--job-time") ?? 10)
        log = values.removeValue(forKey: "--log")
        let wire =
            values.removeValue(forKey: "--transport") ?? (url.hasPrefix("stomp") ? "stomp" : "mqtt")
        guard let wire = JobPool.Wire(rawValue: wire) else { return nil }
        pool = JobPool(
            wire: wire,
            name: values.removeValue(forKey: "--jobs") ?? "jobs",
            prefetch: UInt16(clamping: max(number("--prefetch") ?? 10, 1))
        )
        guard values.isEmpty, mode == .demo || !url.isEmpty, mode != .work || !name.isEmpty
        else { return nil }
    }
}
