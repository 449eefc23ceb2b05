import ArgumentParser
import CommandText
import Synchronization
import Waybill
import WaybillMQTT
import WaybillSTOMP

/// Shows each frame of a connection.
struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show each frame of a connection, both ways.",
        discussion: """
            A line has the time, the direction (→ to the server), the packet or frame with its values, its length,
            and the section of the specification that describes it. Values of headers and credentials are not shown.

            EXAMPLES:
              waybill watch mqtt://127.0.0.1 -t '#'
              waybill watch stomp://127.0.0.1 --virtual-host / -t /queue/jobs --bodies -C 10
            """
    )

    @OptionGroup var server: ServerOptions

    @Option(name: .shortAndLong, help: "A topic to subscribe to; may be repeated.")
    var topic: [String] = []

    @Option(name: .shortAndLong, help: "The highest quality of service.")
    var qos = 0

    @Flag(help: "Show the bodies, which may hold secrets.")
    var bodies = false

    @Option(name: [.customShort("C"), .long], help: "End after this number of frames.")
    var count: Int?

    @Option(
        name: [.customShort("W"), .customLong("timeout")],
        help: "End after this time, such as 30s.",
        transform: time
    )
    var limit: Duration?

    @Option(name: .shortAndLong, help: "Write to a file in place of standard output.")
    var output: String?

    func run() async throws {
        await Interruption.run { try await self.watch() }
    }

    private func watch() async throws -> ExitStatus {
        let settings = try await ServerSettings(server)
        let (ends, end) = AsyncStream<(any Error)?>.makeStream()
        let log = FrameLog(try Output.opening(output), settings.family, count) { end.yield($0) }
        var needs = Client.Needs()
        let logger = ClosureWireLogger { log.show($0) }
        if bodies {
            needs.logger = logger.showing(bodies: .shownAlthoughTheyMayHoldSecrets)
        } else {
            needs.logger = logger
        }
        var options: [SubscribeOption] = [.buffering(BufferPolicy(.dropOldest))]
        if settings.family == .stomp { options.append(.ackMode(.auto)) }
        let topics = topic.isEmpty && settings.family == .events ? [""] : topic
        let entry = AnyEntry(
            topics: topics.map { EntryTopic($0) },
            command: .subscribe(
                qos: settings.family == .mqtt ? try qualityOfService(qos) : .atMostOnce,
                options: options
            )
        )
        // When the frames end by themselves.
        let missing = limit == nil && count == nil ? ExitStatus.done : .nothingCame
        let status: ExitStatus
        do {
            status = try await Client(settings, needs).connected { client in
                let messages =
                    topics.isEmpty ? nil : try await client.provider.messages(entry)
                return try await withThrowingTaskGroup(of: ExitStatus.self) { group in
                    if let messages {
                        group.addTask {
                            for try await _ in messages {}
                            return missing
                        }
                    } else {
                        group.addTask {
                            for await state in client.provider.states {
                                guard case .disconnected(let cause?) = state else { continue }
                                throw cause
                            }
                            return missing
                        }
                    }
                    group.addTask {
                        for await failure in ends {
                            if let failure { throw failure }
                            return .done
                        }
                        return missing
                    }
                    if let limit {
                        group.addTask {
                            try await Task.sleep(for: limit)
                            return count == nil ? .done : .nothingCame
                        }
                    }
                    defer { group.cancelAll() }
                    return try await group.next() ?? missing
                }
            }
        } catch {
            // The frames before the error tell most of it.
            try log.output.flush()
            throw error
        }
        try log.output.flush()
        return status
    }
}

/// Writes frames, each in a line.
private final class FrameLog: Sendable {
    let output: Output
    private let family: ServerAddress.Family
    private let limit: Int?
    private let count = Mutex(0)
    private let end: @Sendable ((any Error)?) -> Void

    init(
        _ output: Output,
        _ family: ServerAddress.Family,
        _ limit: Int?,
        end: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.output = output
        self.family = family
        self.limit = limit
        self.end = end
    }

    func show(_ record: WireRecord) {
        let number = count.withLock { count in
            count += 1
            return count
        }
        if let limit, number > limit { return }
        let arrow = record.direction == .outbound ? "→" : "←"
        var line = "\(WallTime.now.clock) \(arrow) \(record.text)  [\(record.byteCount) bytes]"
        if let section = PacketSections.section(of: record.text, in: family) {
            line += "  (\(section))"
        }
        if let body = record.body {
            // The record's own line escapes text and shows other bodies in hexadecimal digits.
            let whole = record.line.dropFirst(record.description.count)
            line +=
                "\n" + String(repeating: " ", count: 15)
                + (body.isEmpty ? "" : String(whole.drop { $0 == " " }))
        }
        do {
            try output.writeLine(line)
            if number == limit { end(nil) }
        } catch {
            end(error)
        }
    }
}
