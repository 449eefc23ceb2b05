import ArgumentParser
import CommandText
import Waybill
import WaybillMQTT

/// Sends a message and shows its reply.
struct RequestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "request",
        abstract: "Send a message and show its reply.",
        discussion: """
            The reply is the body of the HTTP response; over MQTT 5 and STOMP it is the message that a service
            sends to the reply topic of the request.

            EXAMPLES:
              waybill request mqtt://127.0.0.1 -t sums -m '{"a":1,"b":2}' --pretty
              waybill request https://api.example -t orders -X GET -n -v
            """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup(title: "Message") var message: MessageOptions
    @OptionGroup(title: "Body") var body: BodyOptions

    @Option(
        name: [.customShort("W"), .customLong("timeout")],
        help: "How long to wait for the reply; 30s without it.",
        transform: time
    )
    var limit: Duration?

    @Option(name: [.customShort("F"), .long], help: "The format of the reply, as in 'help sub'.")
    var format: String?

    @Flag(help: "Show JSON with a member on each line.")
    var pretty = false

    @Flag(name: .shortAndLong, help: "Show the headers of the reply, too.")
    var verbose = false

    @Option(name: .shortAndLong, help: "Write to a file in place of standard output.")
    var output: String?

    func validate() throws {
        guard body.count == 1 else {
            throw ValidationError("give one of --message, --file, -s and -n")
        }
    }

    func run() async throws {
        await Interruption.run { try await self.request() }
    }

    private func request() async throws -> ExitStatus {
        let settings = try await ServerSettings(server)
        let topic = try message.requiredTopic(settings)
        let bytes = try await body.bytes()
        var format =
            try format.map { format throws(TextError) in try OutputFormat(format) } ?? .payload
        if let form = message.printAs {
            let command = PrintedCommand(
                settings: settings,
                topic: topic,
                body: body.isNull && settings.family == .events ? nil : bytes,
                qos: try qualityOfService(message.qos),
                isRetained: message.retain,
                headers: message.fields(settings),
                contentType: message.contentType,
                method: message.method,
                isRequest: true
            )
            try show(form: form, command)
            return .done
        }
        let entry = AnyEntry(
            topic: topic,
            command: try message.command([.timeout(limit ?? .seconds(30))]),
            body: body.isNull ? .none : .bytes(bytes, contentType: message.contentType),
            headers: message.fields(settings)
        )
        let output = try Output.opening(output)
        format.isForTerminal = output.isTerminal
        let reply = try await Client(settings).connected { client in
            try await client.provider.request(entry, as: Message.self)
        }
        var shown = ShownMessage(reply)
        if pretty, let json = JSONText.pretty(shown.body) { shown.body = json }
        if verbose {
            for header in shown.headers {
                try output.writeLine(TerminalText.escaped("\(header.name): \(header.value)"))
            }
            try output.writeLine("")
        }
        try output.add { buffer in
            format.append(shown, to: &buffer)
            if buffer.last != 0x0A { buffer.append(0x0A) }
        }
        try output.flush()
        return .done
    }

    private func show(form: PrintedForm, _ command: PrintedCommand) throws {
        let output = try Output.opening(output)
        try output.writeLine(command.line(as: form))
        try output.flush()
    }
}
