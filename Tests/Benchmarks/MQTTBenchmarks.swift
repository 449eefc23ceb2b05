import Waybill
import WaybillMQTT

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// MQTT against the local server `sink`, through the public interface alone.
enum MQTTBenchmarks {
    private enum Entry: EntryType {
        case send(Data, QoS, to: String)
        case listen(String, QoS)

        var topic: String? {
            switch self {
            case .send(_, _, let topic): topic
            case .listen(let filter, _): filter
            }
        }

        var command: EntryCommand {
            switch self {
            case .send(_, let qos, _): .send(qos: qos)
            case .listen(_, let qos): .subscribe(qos: qos)
            }
        }

        var body: EntryBody {
            switch self {
            case .send(let data, _, _): .data(data)
            case .listen: .none
            }
        }
    }

    /// The payload of the sink's messages.
    private struct Poured: Decodable {
        let a: String
    }

    private struct Stamp: Interceptor {
        let name: String

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            request.headers.append(name: name, value: "1")
        }
    }

    /// - Parameters:
    ///   - job: The job to measure.
    ///   - port: The port of the sink.
    ///   - numbers: The numeric arguments of the job.
    @concurrent
    static func run(_ job: String, port: Int, _ numbers: [Int]) async throws {
        func number(_ index: Int, default other: Int) -> Int {
            index < numbers.count ? numbers[index] : other
        }
        let qos = QoS(rawValue: numbers[0]) ?? .atMostOnce
        let count = number(1, default: 0)
        let size = number(2, default: 256)
        let window = number(3, default: 100)
        switch job {
        case "publish": try await publish(port, qos, count, size: size, window: window)
        case "bulk": try await bulk(port, qos, count, size: size, window: window)
        case "enqueue": try await enqueue(port, qos, count, size: size, window: window)
        case "receive": try await receive(port, qos, count, size: size, window: window)
        case "echo":
            try await turn(port, qos, count, size: size, topic: "echo", subscribed: qos)
        case "turn":
            // Over a real broker.
            let subscribed = QoS(rawValue: number(3, default: 0)) ?? .atMostOnce
            let topic = "turn/waybill"
            try await turn(port, qos, count, size: size, topic: topic, subscribed: subscribed)
        case "intercepted": try await publish(port, count, size: size, interceptors: numbers[0])
        case "decoded": try await decode(port, count, size: size)
        case "subscriptions": try await route(port, count, size: size, subscriptions: numbers[0])
        case "connections": try await spread(port, count, size: size, connections: numbers[0])
        case "latency": try await latency(port, count, size: size, isLoaded: numbers[0] != 0)
        case "idle": try await idle(port, numbers[0])
        case "aliases": try await aliases(port, count, isOn: numbers[0] != 0)
        default: print("no such job")
        }
    }

    private static func transport(
        _ port: Int,
        version: MQTTConfiguration.Version = .v3_1_1,
        window: Int = 100,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration(version: version)
        configuration.limits.inFlight = window
        // The longest message of the benchmarks has 1 MiB.
        configuration.limits.packetSize = 2 << 20
        // A dropped message of QoS 0 would make the count wrong.
        configuration.buffering = BufferPolicy(.holdBack)
        change(&configuration)
        return try MQTTTransport(url: "mqtt://127.0.0.1:\(port)", configuration: configuration)
    }

    /// A provider that has sent its first message, and the payload of all its messages.
    private static func sender(
        _ port: Int,
        window: Int = 100,
        size: Int
    ) async throws -> (MQTTTransport, Provider<Entry>, Data) {
        let transport = try transport(port, window: window)
        let provider = Provider<Entry>(transport: transport)
        let payload = Data(repeating: UInt8(ascii: "x"), count: size)
        try await provider.request(.send(payload, .atLeastOnce, to: "t"))
        return (transport, provider, payload)
    }

    // MARK: Sending

    private static func publish(
        _ port: Int,
        _ qos: QoS,
        _ count: Int,
        size: Int,
        window: Int
    ) async throws {
        let (transport, provider, payload) = try await sender(port, window: window, size: size)
        let before = Usage()
        if qos == .atMostOnce {
            for _ in 0..<count { try await provider.request(.send(payload, qos, to: "t")) }
        } else {
            // One caller for each place in the window. Each awaits its own message.
            try await withThrowingTaskGroup { group in
                for caller in 0..<window {
                    group.addTask {
                        let share = count / window + (caller < count % window ? 1 : 0)
                        for _ in 0..<share {
                            try await provider.request(.send(payload, qos, to: "t"))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        // Once this message is acknowledged, the server has everything that was sent before it.
        try await provider.request(.send(Data(), .atLeastOnce, to: "t"))
        before.report("waybill", count)
        await transport.shutdown()
    }

    /// Sends the messages of ``publish(_:_:_:size:window:)`` as one sequence.
    private static func bulk(
        _ port: Int,
        _ qos: QoS,
        _ count: Int,
        size: Int,
        window: Int
    ) async throws {
        let (transport, provider, payload) = try await sender(port, window: window, size: size)
        let before = Usage()
        let results = await provider.request(
            contentsOf: (0..<count).lazy.map { _ in .send(payload, qos, to: "t") },
            window: window
        )
        try await provider.request(.send(Data(), .atLeastOnce, to: "t"))
        before.report("waybill", count)
        if !results.isComplete { print("not complete: \(String(describing: results.firstError))") }
        await transport.shutdown()
    }

    /// Enqueues the same messages in runs of a thousand, and awaits the last one of each run.
    private static func enqueue(
        _ port: Int,
        _ qos: QoS,
        _ count: Int,
        size: Int,
        window: Int
    ) async throws {
        let (transport, provider, payload) = try await sender(port, window: window, size: size)
        let before = Usage()
        for number in 1...count {
            let handle = provider.enqueue(.send(payload, qos, to: "t"))
            if number % 1_000 == 0 { _ = try await handle.receipt }
        }
        try await provider.request(.send(Data(), .atLeastOnce, to: "t"))
        before.report("waybill", count)
        await transport.shutdown()
    }

    /// Publishes with QoS 0 over MQTT 5, which carries headers. Each interceptor adds one header.
    private static func publish(
        _ port: Int,
        _ count: Int,
        size: Int,
        interceptors: Int
    ) async throws {
        let transport = try transport(port, version: .v5)
        var provider = Provider<Entry>(transport: transport)
        for number in 0..<interceptors {
            provider = provider.intercepted(Stamp(name: "name-\(number)"))
        }
        let payload = Data(repeating: UInt8(ascii: "x"), count: size)
        try await provider.request(.send(payload, .atLeastOnce, to: "t"))
        let before = Usage()
        for _ in 0..<count { try await provider.request(.send(payload, .atMostOnce, to: "t")) }
        try await provider.request(.send(Data(), .atLeastOnce, to: "t"))
        before.report("waybill", count)
        await transport.shutdown()
    }

    /// Publishes with QoS 0 in bursts of a hundred, to one connection after the other.
    private static func spread(
        _ port: Int,
        _ count: Int,
        size: Int,
        connections: Int
    ) async throws {
        let transports = try (0..<connections).map { _ in try transport(port) }
        let providers = transports.map { Provider<Entry>(transport: $0) }
        let payload = Data(repeating: UInt8(ascii: "x"), count: size)
        for provider in providers {
            try await provider.request(.send(payload, .atLeastOnce, to: "t"))
        }
        let before = Usage()
        for burst in 0..<count / 100 {
            let provider = providers[burst % connections]
            for _ in 0..<100 { try await provider.request(.send(payload, .atMostOnce, to: "t")) }
        }
        for provider in providers.prefix(count / 100) {
            try await provider.request(.send(Data(), .atLeastOnce, to: "t"))
        }
        before.report("waybill", count)
        for transport in transports { await transport.shutdown() }
    }

    /// Sends messages of QoS 0 with 64 bytes on 50 topics of 60 bytes, in turn, to a sink that counts the bytes.
    private static func aliases(_ port: Int, _ count: Int, isOn: Bool) async throws {
        let transport = try transport(port, version: .v5) { $0.aliases.isUsed = isOn }
        let provider = Provider<Entry>(transport: transport)
        let topics = MQTTCodecBenchmarks.longTopics
        let payload = Data(repeating: UInt8(ascii: "x"), count: 64)
        // One that ends sends UNSUBSCRIBE, which would count.
        var questions: [Messages<Message>] = []
        /// The bytes that the sink had received when it was asked for the `number`th time.
        func total(_ number: Int) async throws -> Int {
            let messages = try await provider.messages(.listen("received/\(number)", .atMostOnce))
            questions.append(messages)
            for try await message in messages { return message.text.flatMap { Int($0) } ?? 0 }
            return 0
        }
        let (first, second) = (try await total(1), try await total(2))
        let before = Usage()
        for number in 0..<count {
            try await provider.request(
                .send(payload, .atMostOnce, to: topics[number % topics.count])
            )
        }
        let third = try await total(3)
        // Between two totals, the question for the first one was sent, too.
        before.report("waybill", count, byteCount: third - second - (second - first))
        await transport.shutdown()
    }

    // MARK: Receiving

    private static func receive(
        _ port: Int,
        _ qos: QoS,
        _ count: Int,
        size: Int,
        window: Int
    ) async throws {
        let transport = try transport(port)
        let provider = Provider<Entry>(transport: transport)
        let filter = "pour/\(qos.rawValue)/\(count)/\(size)/\(window)"
        // The sink sends its messages with the topic `pour`, not with the filter.
        let messages = try await provider.messages(.listen("pour", qos))
        let before = Usage()
        let request = Task { try await provider.messages(.listen(filter, qos)) }
        var received = 0
        for try await message in messages where message.body.count == size {
            received += 1
            if received == count { break }
        }
        before.report("waybill", count)
        _ = try await request.value
        await transport.shutdown()
    }

    private static func decode(_ port: Int, _ count: Int, size: Int) async throws {
        let transport = try transport(port)
        let provider = Provider<Entry>(transport: transport)
        let values = try await provider.messages(.listen("pour", .atMostOnce), as: Poured.self)
        let before = Usage()
        let filter = "pour/0/\(count)/\(size)/1"
        let request = Task { try await provider.messages(.listen(filter, .atMostOnce)) }
        var received = 0
        for try await value in values where value.a.utf8.count == size - 8 {
            received += 1
            if received == count { break }
        }
        before.report("waybill", count)
        _ = try await request.value
        await transport.shutdown()
    }

    /// Measures the JSON decoder alone.
    static func json(_ count: Int, size: Int) throws {
        let text = #"{"a":""# + String(repeating: "x", count: size - 8) + #""}"#
        let data = Data(text.utf8)
        let decoder = JSONDecoder()
        let before = Usage()
        for _ in 0..<count { _ = try decoder.decode(Poured.self, from: data) }
        before.report("JSONDecoder", count)
    }

    /// Receives messages of a hundred topics in one subscription, beside many subscriptions that do not match.
    private static func route(
        _ port: Int,
        _ count: Int,
        size: Int,
        subscriptions: Int
    ) async throws {
        let transport = try transport(port)
        let provider = Provider<Entry>(transport: transport)
        var others: [Messages<Message>] = []
        for number in 1..<max(subscriptions, 1) {
            others.append(try await provider.messages(.listen("other/\(number)/+", .atMostOnce)))
        }
        let messages = try await provider.messages(.listen("t/+", .atMostOnce))
        let before = Usage()
        let filter = "pour/0/\(count)/\(size)/1/100"
        let request = Task { try await provider.messages(.listen(filter, .atMostOnce)) }
        var received = 0
        for try await message in messages where message.body.count == size {
            received += 1
            if received == count { break }
        }
        before.report("waybill", count)
        _ = try await request.value
        await transport.shutdown()
        withExtendedLifetime(others) {}
    }

    // MARK: Round trips

    /// Sends a message and waits for its return, with any two QoS levels.
    private static func turn(
        _ port: Int,
        _ qos: QoS,
        _ count: Int,
        size: Int,
        topic: String,
        subscribed: QoS
    ) async throws {
        let transport = try transport(port)
        let provider = Provider<Entry>(transport: transport)
        let payload = Data(repeating: UInt8(ascii: "x"), count: size)
        let messages = try await provider.messages(.listen(topic, subscribed))
        var iterator = messages.makeAsyncIterator()
        var times: [Double] = []
        let before = Usage()
        for _ in 0..<count {
            let start = ContinuousClock().now
            try await provider.request(.send(payload, qos, to: topic))
            _ = try await iterator.next()
            times.append((ContinuousClock().now - start) / .microseconds(1))
        }
        before.report("waybill", count, times: times)
        await transport.shutdown()
    }

    /// Measures the time from a QoS 1 publish to its acknowledgement. With a load, another task publishes QoS 0 at
    /// full speed.
    private static func latency(
        _ port: Int,
        _ count: Int,
        size: Int,
        isLoaded: Bool
    ) async throws {
        let (transport, provider, payload) = try await sender(port, size: size)
        let flood = Task { @concurrent in
            var sent = 0
            while isLoaded, !Task.isCancelled {
                try await provider.request(.send(payload, .atMostOnce, to: "t"))
                sent += 1
            }
            return sent
        }
        var times: [Double] = []
        let before = Usage()
        for _ in 0..<count {
            let start = ContinuousClock().now
            try await provider.request(.send(payload, .atLeastOnce, to: "t"))
            times.append((ContinuousClock().now - start) / .microseconds(1))
        }
        before.report("waybill", count, times: times)
        flood.cancel()
        _ = try? await flood.value
        await transport.shutdown()
    }

    // MARK: Idling

    private static func idle(_ port: Int, _ count: Int) async throws {
        // The first transport creates what all transports share.
        let first = try transport(port)
        try await Provider<Entry>(transport: first).request(.send(Data(), .atLeastOnce, to: "t"))
        let before = Usage.residentBytes
        var transports: [MQTTTransport] = []
        for _ in 0..<count {
            let transport = try transport(port)
            try await Provider<Entry>(transport: transport).request(
                .send(Data(), .atLeastOnce, to: "t")
            )
            transports.append(transport)
        }
        let bytes = (Usage.residentBytes - before) / max(count, 1)
        print(
            #"{"job": "waybill", "count": \#(count), "bytes_per_connection": \#(bytes)}"#
        )
        for transport in transports { await transport.shutdown() }
        await first.shutdown()
    }
}
