import ArgumentParser
import CommandText
import Dispatch
import Synchronization
import Waybill
import WaybillMQTT
import WaybillSTOMP

/// Measures a server with messages to itself.
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure rate, latency, loss and duplicates through a server.",
        discussion: """
            One connection sends, another one receives. The latency is the time from the call that sends a message
            to its arrival in this process. Without --rate it is mostly the time in queues.

            EXAMPLES:
              waybill bench mqtt://127.0.0.1 --count 100000
              waybill bench mqtt://127.0.0.1 -q 1 --count 5000 --rate 1000
              waybill bench http://127.0.0.1:8080 -t events/a --send-topic publish/a --count 1000
            """
    )

    @OptionGroup var server: ServerOptions

    @Option(name: .shortAndLong, help: "The topic; a random one without it.")
    var topic: String?

    @Option(help: "The topic to send to, if it is another one; over http the path of the POST.")
    var sendTopic: String?

    @Option(name: .shortAndLong, help: "The quality of service: 0, 1 or 2.")
    var qos = 0

    @Option(help: "The number of messages.")
    var count = 10_000

    @Option(help: "The length of a message, in bytes from 40 on.")
    var size = 64

    @Option(help: "Messages per second; as fast as possible without it.")
    var rate: Int?

    @Option(help: "How many messages may wait for their confirmation.")
    var window = 200

    @Option(help: "How long to wait for messages that are missing; 2s without it.", transform: time)
    var patience: Duration?

    func validate() throws {
        guard 1...100_000_000 ~= count else {
            throw ValidationError("--count is from 1 to 100,000,000")
        }
        guard 40...(64 << 20) ~= size else {
            throw ValidationError("--size is from 40 to 67,108,864")
        }
        guard 1...10_000_000 ~= rate ?? 1, 1...1_000_000 ~= window else {
            throw ValidationError(
                "--rate is from 1 to 10,000,000, and --window from 1 to 1,000,000"
            )
        }
    }

    func run() async throws {
        await Interruption.run { try await self.measure() }
    }

    private func measure() async throws -> ExitStatus {
        let settings = try await ServerSettings(server)
        guard settings.family != .events || topic != nil && sendTopic != nil else {
            throw TextError("over http name --topic, the events' path, and --send-topic")
        }
        let name = "waybill-bench-" + String(UInt64.random(in: 0 ..< .max), radix: 36)
        let topic = topic ?? (settings.family == .stomp ? "/topic/\(name)" : name)
        let tally = BenchTally(count: count)
        var needs = Client.Needs()
        needs.memory = 64 << 20
        needs.inFlight = window
        // A client identifier is that of one connection (MQTT 5, 3.1.3.1).
        var receiving = settings
        receiving.clientIdentifier = settings.clientIdentifier.map { $0 + "-receiver" }
        let sent = try await Client(receiving, needs).connected { receiver in
            let messages = try await receiver.provider.messages(
                try subscription(topic, settings.family)
            )
            let taking = Task.detached {
                for try await message in messages { tally.take(message.body) }
            }
            defer { taking.cancel() }
            let sent = try await Client(settings, needs).connected { sender in
                try await send(sender, to: sendTopic ?? topic, tally)
            }
            try await tally.waitForRest(patience ?? .seconds(2))
            return sent
        }
        return try report(sent, tally, settings)
    }

    private func subscription(
        _ topic: String,
        _ family: ServerAddress.Family
    ) throws -> AnyEntry {
        var options: [SubscribeOption] = [.buffering(BufferPolicy(.holdBack))]
        let qos = try qualityOfService(qos)
        if family == .stomp {
            options.append(.ackMode(qos == .atMostOnce ? .auto : .clientIndividual))
        }
        return AnyEntry(
            topic: topic,
            command: .subscribe(qos: family == .mqtt ? qos : .atMostOnce, options: options)
        )
    }

    private func send(
        _ sender: Client,
        to topic: String,
        _ tally: BenchTally
    ) async throws -> Duration {
        let progress = Progress()
        defer { progress.end() }
        let command = EntryCommand.send(qos: try qualityOfService(qos))
        let size = size
        let begin = ContinuousClock.now
        tally.begin()
        var next = 0
        while next < count {
            try Task.checkCancellation()
            var end = min(next + 2_048, count)
            if let rate {
                let due = Int((ContinuousClock.now - begin).inSeconds * Double(rate)) + 1
                end = min(due, end)
                guard end > next else {
                    try await Task.sleep(for: .milliseconds(1))
                    continue
                }
            }
            let entries = (next..<end).lazy.map { number in
                AnyEntry(
                    topic: topic,
                    command: command,
                    body: .bytes(
                        NumberedBody.bytes(number, time: BenchTally.now, size: size)
                    )
                )
            }
            let results = await sender.provider.request(contentsOf: entries, window: window)
            if !results.isComplete, let error = results.firstError { throw error }
            next = end
            progress.show(next, of: count)
        }
        return ContinuousClock.now - begin
    }

    private func report(
        _ sent: Duration,
        _ tally: BenchTally,
        _ settings: ServerSettings
    ) throws -> ExitStatus {
        let result = tally.result
        let output = Output()
        func rate(_ count: Int, _ time: Duration) -> String {
            "\(shown(count)) in \(shown(nanoseconds: time.nanoseconds)), "
                + "\(shown(Int(Double(count) / max(time.inSeconds, 1e-6))))/s"
        }
        try output.writeLine("sent        \(rate(count, sent)), QoS \(qos), \(size) bytes each")
        try output.writeLine("received    \(rate(result.received, result.time))")
        try output.writeLine("lost        \(shown(count - result.received))")
        try output.writeLine("duplicates  \(shown(result.duplicates))")
        let times = result.latency
        if times.count > 0 {
            let shares = [("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999)]
            let parts =
                ["min \(shown(nanoseconds: times.minimum))"]
                + shares.map { "\($0.0) \(shown(nanoseconds: times.percentile($0.1)))" }
                + ["max \(shown(nanoseconds: times.maximum))"]
            try output.writeLine("latency     \(parts.joined(separator: ", "))")
            let most = times.groups.map(\.count).max() ?? 1
            for group in times.groups {
                let name = "< \(shown(nanoseconds: group.limit))"
                let bar = String(repeating: "#", count: (group.count * 40 + most - 1) / most)
                let gap = String(repeating: " ", count: max(12 - name.count, 1))
                try output.writeLine("  \(name)\(gap)\(bar) \(shown(group.count))")
            }
        }
        try output.flush()
        return result.received == count && result.duplicates == 0 ? .done : .loss
    }
}

/// What has arrived of the numbered messages.
private final class BenchTally: Sendable {
    struct Result {
        var received = 0
        var duplicates = 0
        var latency = LatencyHistogram()
        /// From the first send to the last arrival.
        var time = Duration.zero
    }

    private struct State {
        var seen: [Bool]
        var result = Result()
        var begin = ContinuousClock.now
    }

    private let state: Mutex<State>
    private let count: Int

    init(count: Int) {
        self.count = count
        state = Mutex(State(seen: Array(repeating: false, count: count)))
    }

    var result: Result { state.withLock { $0.result } }

    /// Starts the time.
    func begin() { state.withLock { $0.begin = .now } }

    /// Counts a message; one that this command has not sent is left out.
    func take(_ body: Payload) {
        let now = Self.now
        let arrival = body.withUnsafeBytes { NumberedBody.read($0, count: count, now: now) }
        guard let arrival else { return }
        state.withLock { state in
            if state.seen[arrival.number] {
                state.result.duplicates += 1
            } else {
                state.seen[arrival.number] = true
                state.result.received += 1
                state.result.latency.record(arrival.age)
                state.result.time = ContinuousClock.now - state.begin
            }
        }
    }

    /// The present time in nanoseconds, since the start of the computer.
    static var now: Int { Int(DispatchTime.now().uptimeNanoseconds) }

    /// Waits until all have arrived, or none has for a time.
    func waitForRest(_ patience: Duration) async throws {
        var last = -1
        var since = ContinuousClock.now
        while true {
            let received = result.received
            if received == count { return }
            if received != last {
                last = received
                since = .now
            }
            if ContinuousClock.now - since > patience { return }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
