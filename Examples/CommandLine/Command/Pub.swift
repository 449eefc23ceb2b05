import ArgumentParser
import CommandText
import Waybill

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Sends one message, or each line of standard input.
struct Pub: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send a message, or each line of standard input.",
        discussion: """
            EXAMPLES:
              waybill pub mqtt://127.0.0.1 -t lamps/hall -m on -q 1
              waybill pub stomp://127.0.0.1 --virtual-host / -t /queue/jobs -f job.json
              tail -f log | waybill pub mqtt://127.0.0.1 -t log -l
              waybill pub http://127.0.0.1:8080/publish -t news -m hello --print-as curl
            """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup(title: "Message") var message: MessageOptions
    @OptionGroup(title: "Body") var body: BodyOptions

    @Flag(
        name: [.customShort("l"), .customLong("stdin-lines")],
        help: "Each line of standard input is a message."
    )
    var isLineByLine = false

    @Option(help: "How many messages may wait for their confirmation.")
    var window = 1_000

    func validate() throws {
        guard body.count + (isLineByLine ? 1 : 0) == 1 else {
            throw ValidationError("give one of --message, --file, -s, -l and -n")
        }
        guard 1...1_000_000 ~= window else {
            throw ValidationError("--window is from 1 to 1,000,000")
        }
    }

    func run() async throws {
        await Interruption.run { try await self.publish() }
    }

    private func publish() async throws -> ExitStatus {
        let settings = try await ServerSettings(server)
        let topic = try message.requiredTopic(settings)
        let command = try message.command()
        let fields = message.fields(settings)
        let bytes = isLineByLine ? [] : try await body.bytes()
        if let form = message.printAs {
            let line = try printed(settings, topic, bytes).line(as: form)
            let output = Output()
            try output.writeLine(line)
            try output.flush()
            return .done
        }
        var needs = Client.Needs()
        needs.inFlight = window
        let contentType = message.contentType
        try await Client(settings, needs).connected { client in
            func entry(_ bytes: [UInt8]) -> AnyEntry {
                AnyEntry(
                    topic: topic,
                    command: command,
                    body: .bytes(bytes, contentType: contentType),
                    headers: fields
                )
            }
            if isLineByLine {
                try await sendLines(client, entry)
            } else {
                _ = try await client.provider.request(entry(bytes))
            }
        }
        return .done
    }

    private func printed(
        _ settings: ServerSettings,
        _ topic: String,
        _ bytes: [UInt8]
    ) -> PrintedCommand {
        PrintedCommand(
            settings: settings,
            topic: topic,
            body: isLineByLine ? nil : bytes,
            qos: QoS(rawValue: message.qos) ?? .atMostOnce,
            isRetained: message.retain,
            headers: message.fields(settings),
            contentType: message.contentType,
            method: message.method
        )
    }

    /// Sends the lines of standard input.
    ///
    /// The lines of one block are confirmed before the next block is read.
    private func sendLines(_ client: Client, _ entry: @escaping ([UInt8]) -> AnyEntry) async throws
    {
        let reader = BlockReader(STDIN_FILENO, size: 65_536)
        let progress = Progress()
        defer { progress.end() }
        var splitter = LineSplitter(limit: Input.bodyLimit)
        var count = 0
        while let block = try await reader.next() {
            let lines: [[UInt8]]
            do throws(TextError) {
                lines = try splitter.add(block)
            } catch {
                throw Failure(.file, error.description)
            }
            try await send(lines, client, entry)
            count += lines.count
            progress.show(count)
        }
        if let last = splitter.finish() { try await send([last], client, entry) }
    }

    private func send(
        _ lines: [[UInt8]],
        _ client: Client,
        _ entry: @escaping ([UInt8]) -> AnyEntry
    ) async throws {
        guard !lines.isEmpty else { return }
        // The entry of a line is made when it is sent, so that only the window is in memory.
        let results = await client.provider.request(
            contentsOf: lines.lazy.map(entry),
            window: window
        )
        guard !results.isComplete, let error = results.firstError else { return }
        throw error
    }
}
