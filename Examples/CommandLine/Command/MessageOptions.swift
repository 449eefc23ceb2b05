import ArgumentParser
import CommandText
import Waybill
import WaybillMQTT
import WaybillSSE

/// The form of a command line to print in place of a request.
enum PrintedForm: String, ExpressibleByArgument, CaseIterable {
    case waybill
    case mosquitto = "mosquitto_pub"
    case curl
}

/// The options of a message to send.
struct MessageOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        parsing: .unconditional,
        help: "The topic or destination; over http the path behind that of the URL."
    )
    var topic: String?

    @Option(name: .shortAndLong, help: "The quality of service: 0, 1 or 2.")
    var qos = 0

    @Flag(name: .shortAndLong, help: "The server keeps the message for later subscribers.")
    var retain = false

    @Option(
        name: [.customShort("H"), .customShort("D"), .customLong("header")],
        help: ArgumentHelp(
            "A header or user property, NAME: VALUE; may be repeated.",
            valueName: "header"
        )
    )
    var headers: [HeaderArgument] = []

    @Option(help: "The content type of the message.")
    var contentType: String?

    @Option(help: "How long the message is worth sending (MQTT 5), such as 60s.", transform: time)
    var expiry: Duration?

    @Option(
        name: [.customShort("X"), .long],
        help: "The HTTP method; POST without it."
    )
    var method: String?

    @Option(help: "Print this as a command of another tool, and send nothing.")
    var printAs: PrintedForm?

    func validate() throws {
        guard expiry ?? .zero <= .seconds(UInt32.max) else {
            throw ValidationError("--expiry is from 0s to 4294967295s (MQTT 5, 3.3.2.3.3)")
        }
    }

    /// The options of a send.
    func command(_ further: [SendOption] = []) throws -> EntryCommand {
        var options = further
        if retain { options.append(.retained) }
        if let expiry { options.append(.expiry(expiry)) }
        if let method { options.append(.method(method)) }
        return .send(qos: try qualityOfService(qos), options: options)
    }

    /// The headers of a send.
    func fields(_ settings: ServerSettings) -> Headers {
        var fields = Headers()
        // Those of the file of servers go into the upgrade of a WebSocket and into each HTTP request by themselves.
        if settings.family == .stomp, !settings.address.isWebSocket { fields = settings.headers }
        for header in headers { fields.append(name: header.name, value: header.value) }
        return fields
    }

    /// The topic, which only HTTP can do without.
    func requiredTopic(_ settings: ServerSettings) throws -> String {
        guard let topic else {
            guard settings.family == .events else {
                throw TextError("name the topic with --topic, as in '-t news'")
            }
            return ""
        }
        return topic
    }
}

/// The source of a message's body.
struct BodyOptions: ParsableArguments {
    @Option(name: .shortAndLong, parsing: .unconditional, help: "The message.")
    var message: String?

    @Option(name: .shortAndLong, help: "A file with the message.")
    var file: String?

    @Flag(
        name: [.customShort("s"), .customLong("stdin-whole")],
        help: "Standard input is the message."
    )
    var isWholeInput = false

    @Flag(name: [.customShort("n"), .customLong("null")], help: "An empty message.")
    var isNull = false

    /// The number of sources that are given.
    var count: Int {
        [message != nil, file != nil, isWholeInput, isNull].count { $0 }
    }

    /// The body.
    ///
    /// - Throws: `Failure` if the file cannot be read.
    func bytes() async throws -> [UInt8] {
        if let message { return Array(message.utf8) }
        if let file { return try await Input.contents(of: file) }
        return isWholeInput ? try await Input.contents(of: "-") : []
    }
}
