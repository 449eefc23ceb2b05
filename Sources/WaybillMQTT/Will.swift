public import Waybill
import WireCore

/// The message that the server publishes for the client when the connection is lost.
///
/// What MQTT 3.1.1 does not have is `unsupported` there: the delay, the content type, the headers, and every option but
/// `retained`.
public struct Will: Hashable, Sendable {
    private var name: WireName
    private var type: WireName?
    /// The body of the message.
    public var body: Payload
    /// The user properties of the message (MQTT 5, 3.1.3.2.8), in this order.
    public var headers: Headers
    /// The time that the server waits for the client to come back before it publishes (MQTT 5, 3.1.3.2.2), in whole
    /// seconds.
    public var delay: Duration?
    /// A send, with the quality of service and the options of the message.
    private(set) var command: EntryCommand

    /// Makes a will.
    ///
    /// - Parameters:
    ///   - topic: The topic of the message.
    ///   - body: The body of the message.
    ///   - contentType: The content type of the body.
    ///   - headers: The user properties of the message.
    ///   - qos: The quality of service of the message.
    ///   - delay: The time that the server waits before it publishes.
    ///   - options: `retained`, `payloadFormat`, `expiry`, `responseTopic` and `correlationData`; others are
    ///     `unsupported`.
    public init(
        topic: String,
        body: Payload = Payload(),
        contentType: String? = nil,
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        delay: Duration? = nil,
        _ options: SendOption...
    ) {
        name = WireName(topic)
        type = contentType.map(WireName.init)
        self.body = body
        self.headers = headers
        self.delay = delay
        command = .send(qos: qos, options: options)
    }

    /// The topic of the message.
    public var topic: String {
        get { name.text }
        set { name = WireName(newValue) }
    }

    /// The content type of the body (MQTT 5, 3.1.3.2.5).
    public var contentType: String? {
        get { type?.text }
        set { type = newValue.map(WireName.init) }
    }

    /// The quality of service of the message.
    public var qos: QoS {
        get { command.qos }
        set { command.qos = newValue }
    }

    /// The value of an option of the message; nil where it is absent.
    public subscript<Value>(key: OptionKey<Value>) -> Value? {
        get { command[key] }
        set { command[key] = newValue }
    }
}

extension Will: OptionHolder {
    package mutating func omit(_ name: OptionName) {
        switch name {
        case .willDelay: delay = nil
        case .headers: headers = [:]
        case .contentType: contentType = nil
        default: command.omit(name)
        }
    }
}
