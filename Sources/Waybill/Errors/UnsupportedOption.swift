/// An option of a request that a transport or a server cannot carry out.
///
/// ``WaybillError/unsupportedOption`` names it, and ``UnsupportedPolicy`` says which may be left out.
/// More may come: a `switch` needs a `default`.
public struct UnsupportedOption: Hashable, Sendable, CustomStringConvertible {
    /// The name of the option.
    public let name: String

    /// Names an option, as a transport of one's own does.
    public init(name: String) {
        self.name = name
    }

    /// Headers of the request.
    public static let headers = UnsupportedOption(name: "headers")
    /// The kind of body.
    public static let contentType = UnsupportedOption(name: "contentType")
    /// A quality of service: a lower one is supported.
    public static let qos = UnsupportedOption(name: "qos")
    /// That the server keeps the message.
    public static let retain = UnsupportedOption(name: "retain")
    /// When the server discards the message.
    public static let expiry = UnsupportedOption(name: "expiry")
    /// Whether a receipt is asked for.
    public static let receipt = UnsupportedOption(name: "receipt")
    /// The HTTP method.
    public static let method = UnsupportedOption(name: "method")
    /// Where an answer is to be sent.
    public static let responseTopic = UnsupportedOption(name: "responseTopic")
    /// What tells an answer apart.
    public static let correlationData = UnsupportedOption(name: "correlationData")
    /// That the own messages are left out.
    public static let noLocal = UnsupportedOption(name: "noLocal")
    /// That messages keep their retain flag.
    public static let retainAsPublished = UnsupportedOption(name: "retainAsPublished")
    /// When retained messages are sent.
    public static let retainHandling = UnsupportedOption(name: "retainHandling")
    /// STOMP's ack mode.
    public static let ackMode = UnsupportedOption(name: "ackMode")
    /// Acknowledgement by the app.
    ///
    /// It cannot be left out: an app that acknowledges needs it.
    public static let manualAcknowledgement = UnsupportedOption(name: "manualAcknowledgement")
    /// The types of events wanted.
    ///
    /// Without it, events of all types come.
    public static let eventTypes = UnsupportedOption(name: "eventTypes")
    /// Where an earlier stream stopped.
    public static let lastEventID = UnsupportedOption(name: "lastEventID")
    /// Several topics in one subscription.
    ///
    /// They cannot be left out.
    public static let severalTopics = UnsupportedOption(name: "severalTopics")
    /// The name of the client.
    public static let clientIdentifier = UnsupportedOption(name: "clientIdentifier")
    /// The user name and password of a connect.
    public static let credentials = UnsupportedOption(name: "credentials")
    /// What the server publishes when the connection is lost.
    public static let will = UnsupportedOption(name: "will")
    /// How long the server waits before it publishes the will.
    public static let willDelay = UnsupportedOption(name: "willDelay")
    /// Whether an earlier session is discarded.
    public static let cleanStart = UnsupportedOption(name: "cleanStart")
    /// How long the connection may be silent.
    public static let keepAlive = UnsupportedOption(name: "keepAlive")
    /// Fields of the request that opens a WebSocket.
    public static let upgradeHeaders = UnsupportedOption(name: "upgradeHeaders")
    /// How long sends may take before the connection is closed.
    public static let drainTimeout = UnsupportedOption(name: "drainTimeout")
    /// How long closing may take.
    public static let closeTimeout = UnsupportedOption(name: "closeTimeout")
    /// What a disconnect tells the server: that the will is published, and why the connection is closed.
    public static let disconnectReason = UnsupportedOption(name: "disconnectReason")
    /// For how long the server keeps the session.
    public static let sessionExpiry = UnsupportedOption(name: "sessionExpiry")

    /// The name.
    public var description: String { name }
}

extension WaybillError {
    /// An option that a transport cannot carry out, for the `unsupported` error of a transport of one's own.
    ///
    /// - Parameters:
    ///   - option: The option.
    ///   - message: What happened, in a sentence for developers.
    ///   - request: The request, which the error names.
    /// - Returns: An error with the code `unsupported`.
    public static func unsupported(
        _ option: UnsupportedOption,
        _ message: String,
        in request: Request
    ) -> WaybillError {
        var error = WaybillError(
            .unsupported,
            message,
            topic: request.topic,
            command: request.command.name
        )
        error.unsupportedOption = option
        return error
    }
}
