/// The message that the server publishes for the client when the connection is lost.
///
/// What MQTT 3.1.1 does not have is `unsupported` there: the delay, and the properties of the message.
public struct Will: Sendable {
    /// The topic of the message.
    public var topic: String
    /// The body of the message.
    public var body: Payload
    /// The quality of service of the message.
    public var qos: QoS
    /// Whether the server keeps the message for later subscribers.
    public var retain: Bool
    /// The time that the server waits for the client to come back before it publishes (MQTT 5, 3.1.3.2.2), in whole
    /// seconds.
    public var delay: Duration?
    /// Whether the body is declared as text (MQTT 5, 3.1.3.2.3); nil declares nothing.
    ///
    /// A body that is declared as text and is not UTF-8 is refused with `invalidEntry`.
    public var isText: Bool?
    /// The time after which the server discards the message if it could not deliver it (MQTT 5, 3.1.3.2.4), in whole
    /// seconds; nil for never.
    public var expiry: Duration?
    /// The content type of the body (MQTT 5, 3.1.3.2.5).
    public var contentType: String?
    /// The topic for a reply (MQTT 5, 3.1.3.2.6).
    public var responseTopic: String?
    /// Data that a reply carries back (MQTT 5, 3.1.3.2.7).
    public var correlationData: [UInt8]?
    /// The user properties of the message (MQTT 5, 3.1.3.2.8), in this order.
    public var headers: Headers

    /// Makes a will; each parameter has the meaning of the property of the same name.
    public init(
        topic: String,
        body: Payload,
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        delay: Duration? = nil,
        isText: Bool? = nil,
        expiry: Duration? = nil,
        contentType: String? = nil,
        responseTopic: String? = nil,
        correlationData: [UInt8]? = nil,
        headers: Headers = [:]
    ) {
        self.topic = topic
        self.body = body
        self.qos = qos
        self.retain = retain
        self.delay = delay
        self.isText = isText
        self.expiry = expiry
        self.contentType = contentType
        self.responseTopic = responseTopic
        self.correlationData = correlationData
        self.headers = headers
    }

    /// Whether the will has properties of MQTT 5 beside its delay.
    package var hasProperties: Bool {
        isText != nil || expiry != nil || contentType != nil || responseTopic != nil
            || correlationData != nil || !headers.isEmpty
    }

    /// Removes the properties of MQTT 5 beside the delay.
    mutating func removeProperties() {
        self = Will(topic: topic, body: body, qos: qos, retain: retain, delay: delay)
    }
}
