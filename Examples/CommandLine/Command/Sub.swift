import ArgumentParser
import CommandText
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP

/// Receives messages.
struct Sub: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receive messages.",
        discussion: """
            EXAMPLES:
              waybill sub mqtt://127.0.0.1 -t 'lamps/#' -t doors/+ -v
              waybill sub mqtt://127.0.0.1 -t '#' -F '%I %t %l bytes: %x'
              waybill sub stomp://127.0.0.1 --virtual-host / -t /queue/jobs -q 1 -C 1
              waybill sub https://news.example/events/today --pretty

            FORMAT (-F), with a line feed after each message:
              %t topic             %p payload           %x %X hexadecimal payload
              %l length in bytes   %q QoS               %r 1 if retained, else 0
              %d 1 if a duplicate  %m identifier        %C content type
              %R response topic    %D correlation data  %E seconds until it expires
              %P headers or user properties             %I time in ISO 8601
              %U seconds since 1970                     %% a percent sign
              %j JSON, with the payload as text         %J with the payload as JSON
              \\n \\t \\r \\0 \\a \\e \\\\ characters
            Control characters of topics, headers and the like are shown as \\u{1b}; those of payloads only at a terminal.
            With QoS 1 and 2 each message is acknowledged after it is written.
            """
    )

    @OptionGroup var server: ServerOptions

    @Option(name: .shortAndLong, help: "A topic, filter or destination; may be repeated.")
    var topic: [String] = []

    @Option(
        name: .shortAndLong,
        help: "The highest quality of service; 1 over STOMP acknowledges each message."
    )
    var qos = 0

    @Option(name: [.customShort("F"), .long], help: "The format of a message, see above.")
    var format: String?

    @Flag(name: .shortAndLong, help: "Show topic and payload.")
    var verbose = false

    @Flag(help: "Show JSON with a member on each line.")
    var pretty = false

    @Flag(
        name: [.customShort("N"), .customLong("no-line-feed")],
        help: "Add no line feed after a message."
    )
    var hasNoLineFeed = false

    @Option(name: [.customShort("C"), .long], help: "End after this number of messages.")
    var count: Int?

    @Option(
        name: [.customShort("W"), .customLong("timeout")],
        help: "End after this time, such as 30s.",
        transform: time
    )
    var limit: Duration?

    @Option(name: .shortAndLong, help: "Write to a file in place of standard output.")
    var output: String?

    @Flag(name: [.customShort("R"), .long], help: "Leave out retained messages.")
    var noRetained = false

    @Flag(help: "Leave out messages that this connection has sent (MQTT 5).")
    var noLocal = false

    @Option(help: "The name of a shared subscription (MQTT 5).")
    var share: String?

    @Option(help: "Only events of this type; may be repeated (http).")
    var event: [String] = []

    @Option(help: "Begin after this event (http).")
    var lastEventId: String?

    @Option(
        name: [.customShort("H"), .customShort("D"), .customLong("header")],
        help: "A header or user property of the subscription, NAME: VALUE; may be repeated."
    )
    var headers: [HeaderArgument] = []

    @Option(help: "Show each message as a command that sends it: waybill, mosquitto_pub or curl.")
    var printAs: PrintedForm?

    @Option(help: "Answer each message that asks for a reply with this text.")
    var answer: String?

    @Flag(help: "End when the connection is lost.")
    var noReconnect = false

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is 1 or more") }
        if verbose, format != nil {
            throw ValidationError("--verbose is a format: leave it or --format out")
        }
    }

    func run() async throws {
        await Interruption.run { try await self.receive() }
    }

    private func receive() async throws -> ExitStatus {
        let settings = try await ServerSettings(server)
        let entry = try self.entry(settings)
        let writer = try MessageWriter(self, settings)
        var needs = Client.Needs()
        needs.reconnects = !noReconnect
        // Kept until after the disconnect if the session is kept, since the end of a subscription takes it out of the session.
        let (received, kept) = try await Client(settings, needs).connected { client in
            let messages = try await client.provider.messages(entry)
            let observer = Task { await Self.report(client) }
            defer { observer.cancel() }
            let receiving = Task { try await take(messages, client, writer) }
            writer.output.onFailure { receiving.cancel() }
            let timer = limit.map { limit in
                Task {
                    try await Task.sleep(for: limit)
                    receiving.cancel()
                }
            }
            defer { timer?.cancel() }
            let received = try await withTaskCancellationHandler {
                try await receiving.value
            } onCancel: {
                receiving.cancel()
            }
            return (received, settings.keepsSession ? messages : nil)
        }
        withExtendedLifetime(kept) {}
        return count.map { received < $0 } == true ? .nothingCame : .done
    }

    /// Writes messages until there are enough, until the subscription has ended, or until the task is cancelled.
    ///
    /// - Returns: The number of messages.
    private func take(
        _ messages: Messages<Message>,
        _ client: Client,
        _ writer: MessageWriter
    ) async throws -> Int {
        var received = 0
        var pace = Pace()
        do {
            for try await message in messages {
                if pace.isFast() { try await Task.sleep(for: Pace.time) }
                if noRetained, message.isRetained {
                    try await acknowledge(message, client)
                    continue
                }
                try writer.write(message)
                if acknowledges(client.settings) {
                    // What is acknowledged must not be lost: the server forgets it.
                    try writer.output.flush()
                    try await acknowledge(message, client)
                }
                received += 1
                if let answer, let topic = message.replyTopic {
                    _ = try await client.provider.request(
                        AnyEntry(
                            topic: topic,
                            command: .reply(to: message),
                            body: .bytes(Array(answer.utf8))
                        )
                    )
                }
                if received == count { break }
            }
        } catch is CancellationError {}
        try writer.output.flush()
        return received
    }

    /// Whether messages are acknowledged to the server, after they were written.
    private func acknowledges(_ settings: ServerSettings) -> Bool {
        qos > 0 && settings.family != .events
    }

    /// Acknowledges a message, also if the command was interrupted meanwhile.
    private func acknowledge(_ message: Message, _ client: Client) async throws {
        guard acknowledges(client.settings), message.qos != .atMostOnce, let id = message.id
        else { return }
        let provider = client.provider
        let entry = AnyEntry(command: .ack(id))
        do {
            do {
                _ = try await provider.request(entry)
            } catch is CancellationError {
                _ = try await Task { try await provider.request(entry) }.value
            }
        } catch let error as WaybillError
            where [.invalidEntry, .notConnected, .connectionLost].contains(error.code)
        {
            // The connection that the message has come over is gone. The server sends it again.
        }
    }

    private func entry(_ settings: ServerSettings) throws -> AnyEntry {
        guard !topic.isEmpty || settings.family == .events else {
            throw TextError("name a topic with --topic, as in '-t news'")
        }
        // A reader that is slow holds the server back, and no message is dropped here.
        var options: [SubscribeOption] = [
            .buffering(BufferPolicy(.holdBack, messageLimit: 16_384, byteLimit: 4 << 20))
        ]
        if noLocal { options.append(.noLocal) }
        if let share { options.append(.shareName(share)) }
        if !event.isEmpty { options.append(.eventTypes(Set(event))) }
        if let lastEventId { options.append(.lastEventID(lastEventId)) }
        if acknowledges(settings) { options.append(.manualAcknowledgement) }
        let qos = try qualityOfService(qos)
        if settings.family == .stomp {
            options.append(.ackMode(qos == .atMostOnce ? .auto : .clientIndividual))
        }
        var fields = Headers()
        for header in headers { fields.append(name: header.name, value: header.value) }
        return AnyEntry(
            topics: (settings.family == .events && topic.isEmpty ? [""] : topic).map {
                EntryTopic($0)
            },
            command: .subscribe(
                qos: settings.family == .mqtt ? qos : .atMostOnce,
                options: options
            ),
            headers: fields
        )
    }

    /// Tells on standard error of a lost connection, and of the next one.
    private static func report(_ client: Client) async {
        var isLost = false
        for await state in client.provider.states {
            switch state {
            case .waiting(_, let cause) where !isLost:
                isLost = true
                Output.complain("\(client.settings.address.shown): \(cause.message); trying again")
            case .connected where isLost:
                isLost = false
                Output.complain("\(client.settings.address.shown): connected again")
            default: break
            }
        }
    }
}

/// Finds out when messages arrive so fast that it is cheaper to take several of them after a pause.
///
/// A broker that writes each message by itself would otherwise wake this task for each one.
private struct Pace {
    static let time = Duration.milliseconds(1)
    private var begin = ContinuousClock.now
    private var last = ContinuousClock.now
    private var count = 0

    /// Whether a pause is due: when all that has arrived is taken, at more than 8,000 messages a second.
    mutating func isFast() -> Bool {
        count += 1
        let now = ContinuousClock.now
        defer { last = now }
        // A shorter time means that the message was there already.
        guard now - last > .microseconds(5), count > 8 else { return false }
        defer {
            begin = now
            count = 0
        }
        return now - begin < Self.time * count / 8
    }
}

/// Writes messages as the options of ``Sub`` ask for.
private struct MessageWriter: Sendable {
    let output: Output
    private let settings: ServerSettings
    private var format: OutputFormat
    private let isPretty: Bool
    private let end: [UInt8]
    private let form: PrintedForm?

    init(_ sub: Sub, _ settings: ServerSettings) throws {
        self.settings = settings
        format =
            try sub.format.map { format throws(TextError) in try OutputFormat(format) }
            ?? (sub.verbose ? .verbose : .payload)
        isPretty = sub.pretty
        end = sub.hasNoLineFeed ? [] : [0x0A]
        form = sub.printAs
        output = try Output.opening(sub.output)
        format.isForTerminal = output.isTerminal
    }

    func write(_ message: Message) throws {
        if let form { return try output.writeLine(printed(message).line(as: form)) }
        if format.isPayloadAlone, !isPretty {
            return try output.add { buffer in
                message.body.withUnsafeBytes { buffer.append(contentsOf: $0) }
                buffer.append(contentsOf: end)
            }
        }
        var shown = ShownMessage(message)
        if isPretty, let json = JSONText.pretty(shown.body) { shown.body = json }
        try output.add { buffer in
            format.append(shown, to: &buffer)
            buffer.append(contentsOf: end)
        }
    }

    private func printed(_ message: Message) -> PrintedCommand {
        PrintedCommand(
            settings: settings,
            topic: message.topic,
            body: message.body.bytes,
            qos: message.qos,
            isRetained: message.isRetained,
            headers: message.headers,
            contentType: message.contentType
        )
    }
}
