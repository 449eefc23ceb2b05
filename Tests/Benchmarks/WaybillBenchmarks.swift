import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Waybill's side of the benchmarks: one job for each run, one line of JSON.
///
///     WaybillBenchmarks mqtt publish|receive|echo PORT QOS COUNT SIZE WINDOW
///     WaybillBenchmarks mqtt turn PORT QOS COUNT SIZE SUBSCRIBED
///     WaybillBenchmarks mqtt intercepted PORT INTERCEPTORS COUNT SIZE
///     WaybillBenchmarks mqtt decoded|subscriptions|connections|latency PORT NUMBER COUNT SIZE
///     WaybillBenchmarks mqtt idle PORT COUNT
///     WaybillBenchmarks mqtt aliases PORT ON COUNT
///     WaybillBenchmarks mqtt-aliases
///     WaybillBenchmarks json COUNT SIZE
///     WaybillBenchmarks codec
///     WaybillBenchmarks instructions encode|decode|frame|stomp|event COUNT
///     WaybillBenchmarks websocket PORT send|receive|echo COUNT SIZE
///     WaybillBenchmarks websocket-codec
///     WaybillBenchmarks stomp
///     WaybillBenchmarks event-stream PORT COUNT SIZE CHUNKED
///     WaybillBenchmarks event-stream-decoded PORT COUNT SIZE
///     WaybillBenchmarks event-stream-codec
///     WaybillBenchmarks store full|process|batched|memory FOLDER COUNT SIZE CALLERS
///     WaybillBenchmarks recorder memory|file FOLDER COUNT
///     WaybillBenchmarks recorded none|memory|file PORT FOLDER COUNT SIZE
///     WaybillBenchmarks tls receive|cycle PORT COUNT AUTHORITY
@main
struct WaybillBenchmarks {
    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let numbers = arguments.dropFirst().compactMap { Int($0) }
        // Jobs that need no task run without one, so that tools that count instructions see only the job.
        switch arguments.first {
        case "json" where numbers.count == 2:
            return try MQTTBenchmarks.json(numbers[0], size: numbers[1])
        case "mqtt-aliases": return try MQTTCodecBenchmarks.aliases()
        case "codec": return try MQTTCodecBenchmarks.codec()
        case "websocket-codec": return try WebSocketBenchmarks.codec()
        case "stomp": return try STOMPBenchmarks.codec()
        case "event-stream-codec": return try EventStreamBenchmarks.codec()
        case "instructions" where numbers.count == 1:
            return try repeatOnly(arguments[1], numbers[0])
        default: break
        }
        Task { @concurrent in
            do { try await run(arguments, numbers) } catch {
                print("failed: \(error)")
                exit(1)
            }
            exit(0)
        }
        dispatchMain()
    }

    /// Repeats one operation and prints nothing.
    private static func repeatOnly(_ what: String, _ count: Int) throws {
        switch what {
        case "encode": _ = try MQTTCodecBenchmarks.encode(count)
        case "decode": _ = try MQTTCodecBenchmarks.decode(count)
        case "frame": _ = try WebSocketBenchmarks.decode(count)
        case "stomp": _ = try STOMPBenchmarks.parse(100, count)
        case "event": _ = try EventStreamBenchmarks.parse(100, hasID: true, events: count)
        default: print("no such thing")
        }
    }

    private static func run(_ arguments: [String], _ numbers: [Int]) async throws {
        switch arguments.first {
        case "mqtt" where numbers.count >= 2:
            try await MQTTBenchmarks.run(
                Array(arguments)[1],
                port: numbers[0],
                Array(numbers[1...])
            )
        case "json" where numbers.count == 2:
            try MQTTBenchmarks.json(numbers[0], size: numbers[1])
        case "store" where numbers.count == 3:
            try await StoreBenchmarks.run(
                arguments[1],
                folder: arguments[2],
                numbers[0],
                size: numbers[1],
                taskCount: max(1, numbers[2])
            )
        case "recorder" where numbers.count == 1 && arguments.count == 4:
            try await RecorderBenchmarks.log(arguments[1], folder: arguments[2], numbers[0])
        case "recorded" where numbers.count == 3 && arguments.count == 6:
            try await RecorderBenchmarks.publish(
                arguments[1],
                port: numbers[0],
                folder: arguments[3],
                numbers[1],
                size: numbers[2]
            )
        case "websocket" where numbers.count == 3:
            let job = arguments[2]
            try await WebSocketBenchmarks.run(job, port: numbers[0], numbers[1], size: numbers[2])
        case "event-stream-decoded" where numbers.count == 3:
            try await EventStreamBenchmarks.decode(port: numbers[0], numbers[1], size: numbers[2])
        case "event-stream" where numbers.count == 4:
            try await EventStreamBenchmarks.run(
                port: numbers[0],
                numbers[1],
                size: numbers[2],
                isChunked: numbers[3] != 0
            )
        #if os(Linux)
            case "tls" where numbers.count == 2:
                let (job, authority) = (arguments[1], arguments[4])
                if job == "cycle" {
                    try await TLSBenchmarks.cycle(
                        port: numbers[0],
                        numbers[1],
                        authority: authority
                    )
                } else {
                    try await TLSBenchmarks.receive(
                        port: numbers[0],
                        numbers[1],
                        authority: authority
                    )
                }
        #endif
        default: print("usage: see Tests/Benchmarks/WaybillBenchmarks.swift")
        }
    }
}
