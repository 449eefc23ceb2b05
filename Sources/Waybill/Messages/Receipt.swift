/// The confirmation that a request was carried out, with the peer's answer.
public struct Receipt: Sendable {
    /// The topic of the request.
    public var topic: String?
    // Rarely set, so kept out of line: every message has a receipt.
    private var box: RareBox?

    private struct Rare: Sendable {
        var reason: String?
        var headers: Headers = [:]
        var grantedQoS: QoS?
        var tls: NegotiatedTLS?
        var reply: Message?
        var values = KeyedValues()

        var isEmpty: Bool {
            reason == nil && headers.isEmpty && grantedQoS == nil && tls == nil && reply == nil
                && values.isEmpty
        }
    }

    private final class RareBox: Sendable {
        let values: Rare

        private init(_ values: Rare) { self.values = values }

        // A failable initializer would allocate the object before it fails.
        static func holding(_ values: Rare) -> RareBox? {
            values.isEmpty ? nil : RareBox(values)
        }
    }

    private var rare: Rare {
        get { box?.values ?? Rare() }
        set { box = .holding(newValue) }
    }

    /// The peer's reason, such as the name of a reason code; nil if it gave none.
    public var reason: String? {
        get { box?.values.reason }
        set { rare.reason = newValue }
    }

    /// The headers of the peer's answer.
    ///
    /// Each change copies the headers. To add many, build a `Headers` value first and assign it once.
    public var headers: Headers {
        get { box?.values.headers ?? [:] }
        set { rare.headers = newValue }
    }

    /// The quality of service that a server granted to a subscription.
    public var grantedQoS: QoS? {
        get { box?.values.grantedQoS }
        set { rare.grantedQoS = newValue }
    }

    /// A value that only one protocol has, by its key.
    ///
    /// The module of a transport adds properties for what its protocol states, such as `receipt.connack` with
    /// `WaybillMQTT`.
    ///
    /// - Parameter key: The key of the value.
    /// - Returns: The value; nil for a receipt without it.
    public subscript<Value>(key: OptionKey<Value>) -> Value? {
        get { box?.values.values[key] }
        set { rare.values[key] = newValue }
    }

    /// The properties of the TLS connection, after `connect` and with the response to an HTTP request; nil without TLS.
    public var tls: NegotiatedTLS? {
        get { box?.values.tls }
        set { rare.tls = newValue }
    }

    /// The peer's reply, if the protocol has one.
    public var reply: Message? {
        get { box?.values.reply }
        set { rare.reply = newValue }
    }

    /// Makes a receipt, as a transport or a test does.
    public init(
        topic: String? = nil,
        reason: String? = nil,
        headers: Headers = [:],
        grantedQoS: QoS? = nil,
        tls: NegotiatedTLS? = nil,
        reply: Message? = nil
    ) {
        self.topic = topic
        rare = Rare(
            reason: reason,
            headers: headers,
            grantedQoS: grantedQoS,
            tls: tls,
            reply: reply
        )
    }

    /// A receipt with nothing but the topic.
    package init(of topic: String?) {
        self.topic = topic
    }
}
