/// An option of a request that a transport or a server cannot carry out.
///
/// ``WaybillError/unsupportedOption`` names it, and ``UnsupportedPolicy`` says which options may be left out. More
/// options may be added: a `switch` needs a `default`.
public struct UnsupportedOption: Hashable, Sendable, CustomStringConvertible {
    /// The name of the option.
    public let name: String

    /// Names an option, for a custom transport.
    public init(name: String) {
        self.name = name
    }

    /// Headers of the request.
    public static let headers = UnsupportedOption(name: "headers")
    /// The content type of the body.
    public static let contentType = UnsupportedOption(name: "contentType")
    /// The quality of service; a lower one is supported.
    public static let qos = UnsupportedOption(name: "qos")
    /// The retain flag.
    public static let retain = UnsupportedOption(name: "retain")
    /// The expiry of the message.
    public static let expiry = UnsupportedOption(name: "expiry")
    /// The receipt.
    public static let receipt = UnsupportedOption(name: "receipt")
    /// The HTTP method.
    public static let method = UnsupportedOption(name: "method")
    /// The topic for a reply.
    public static let responseTopic = UnsupportedOption(name: "responseTopic")
    /// The correlation data of a reply.
    public static let correlationData = UnsupportedOption(name: "correlationData")
    /// The declaration of the body as text.
    public static let isText = UnsupportedOption(name: "isText")
    /// The limit to a single transmission.
    ///
    /// Without this option, a message of QoS 2 is sent again after a lost connection.
    public static let sentOnce = UnsupportedOption(name: "sentOnce")
    /// The wait for a connection.
    public static let waitsForConnection = UnsupportedOption(name: "waitsForConnection")
    /// The exclusion of the client's own messages.
    public static let noLocal = UnsupportedOption(name: "noLocal")
    /// The unchanged retain flag of received messages.
    public static let retainAsPublished = UnsupportedOption(name: "retainAsPublished")
    /// The choice of when retained messages are sent.
    public static let retainHandling = UnsupportedOption(name: "retainHandling")
    /// The group of clients that share a subscription.
    ///
    /// Without this option, each client of the group gets every message.
    public static let shareName = UnsupportedOption(name: "shareName")
    /// The identifier of a subscription.
    public static let subscriptionIdentifier = UnsupportedOption(name: "subscriptionIdentifier")
    /// STOMP's ack mode.
    public static let ackMode = UnsupportedOption(name: "ackMode")
    /// Manual acknowledgement.
    ///
    /// It cannot be left out, because the app acknowledges itself.
    public static let manualAcknowledgement = UnsupportedOption(name: "manualAcknowledgement")
    /// The event types wanted.
    ///
    /// Without this option, events of all types arrive.
    public static let eventTypes = UnsupportedOption(name: "eventTypes")
    /// The id of the last event of an earlier stream.
    public static let lastEventID = UnsupportedOption(name: "lastEventID")
    /// Several topics in one subscription.
    ///
    /// They cannot be left out.
    public static let severalTopics = UnsupportedOption(name: "severalTopics")
    /// The client identifier.
    public static let clientIdentifier = UnsupportedOption(name: "clientIdentifier")
    /// The user name and password of a connect.
    public static let credentials = UnsupportedOption(name: "credentials")
    /// Enhanced authentication (MQTT 5).
    ///
    /// It cannot be left out.
    public static let authenticator = UnsupportedOption(name: "authenticator")
    /// The will.
    public static let will = UnsupportedOption(name: "will")
    /// The delay of the will.
    public static let willDelay = UnsupportedOption(name: "willDelay")
    /// The properties of the will's message: the declaration as text, expiry, content type, topic and data for a reply, and
    /// headers.
    public static let willProperties = UnsupportedOption(name: "willProperties")
    /// The request to discard an earlier session.
    public static let cleanStart = UnsupportedOption(name: "cleanStart")
    /// The keep alive.
    public static let keepAlive = UnsupportedOption(name: "keepAlive")
    /// Fields of the request that opens a WebSocket.
    public static let upgradeHeaders = UnsupportedOption(name: "upgradeHeaders")
    /// The time limit for pending sends before the close.
    public static let drainTimeout = UnsupportedOption(name: "drainTimeout")
    /// The time limit for closing.
    public static let closeTimeout = UnsupportedOption(name: "closeTimeout")
    /// The instruction about the will and the reason of a disconnect.
    public static let disconnectReason = UnsupportedOption(name: "disconnectReason")
    /// The time that the server keeps the session.
    public static let sessionExpiry = UnsupportedOption(name: "sessionExpiry")

    /// The reason code and the reason string of an `ack` or a `nack`.
    public static let acknowledgementReason = UnsupportedOption(name: "acknowledgementReason")
    /// The wait for the end of the exchange of an acknowledged message.
    public static let awaitsCompletion = UnsupportedOption(name: "awaitsCompletion")

    /// The name.
    public var description: String { name }
}

extension WaybillError {
    /// Makes the `unsupported` error for an option that a custom transport cannot carry out.
    ///
    /// - Parameters:
    ///   - option: The option.
    ///   - message: The failure, in a sentence for developers.
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
