/// That a request is done, and what the peer said about it.
public struct Receipt: Sendable {
    /// The topic of the request.
    public var topic: String?
    // Rarely set: out of line, since every message has a receipt.
    private var box: RareBox?

    private struct Rare: Sendable {
        var reason: String?
        var headers: Headers = [:]
        var grantedQoS: QoS?
        var isSessionPresent = false
        var clientIdentifier: String?
        var tls: NegotiatedTLS?
        var reply: Message?

        var isEmpty: Bool {
            reason == nil && headers.isEmpty && grantedQoS == nil && !isSessionPresent
                && tls == nil && reply == nil && clientIdentifier == nil
        }
    }

    private final class RareBox: Sendable {
        let values: Rare

        init?(_ values: Rare) {
            guard !values.isEmpty else { return nil }
            self.values = values
        }
    }

    private var rare: Rare {
        get { box?.values ?? Rare() }
        set { box = RareBox(newValue) }
    }

    /// What the peer said, such as the name of a reason code; nil when it said nothing.
    public var reason: String? {
        get { box?.values.reason }
        set { rare.reason = newValue }
    }

    /// What the peer said beside it.
    ///
    /// Changing it copies it: whoever adds many headers does so to a list of their own and sets that.
    public var headers: Headers {
        get { box?.values.headers ?? [:] }
        set { rare.headers = newValue }
    }

    /// The quality of service that a server granted to a subscription.
    public var grantedQoS: QoS? {
        get { box?.values.grantedQoS }
        set { rare.grantedQoS = newValue }
    }

    /// Whether the server has resumed an earlier session, after `connect`.
    public var isSessionPresent: Bool {
        get { box?.values.isSessionPresent ?? false }
        set { rare.isSessionPresent = newValue }
    }

    /// Under which identifier the server knows the client, after `connect` over MQTT: the client's own, or the one that
    /// the server has assigned.
    public var clientIdentifier: String? {
        get { box?.values.clientIdentifier }
        set { rare.clientIdentifier = newValue }
    }

    /// How the connection is secured, after `connect` and with the answer to a request of HTTP; nil without TLS.
    public var tls: NegotiatedTLS? {
        get { box?.values.tls }
        set { rare.tls = newValue }
    }

    /// The peer's answer, where the protocol has one.
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
        isSessionPresent: Bool = false,
        tls: NegotiatedTLS? = nil,
        reply: Message? = nil
    ) {
        self.topic = topic
        rare = Rare(
            reason: reason,
            headers: headers,
            grantedQoS: grantedQoS,
            isSessionPresent: isSessionPresent,
            tls: tls,
            reply: reply
        )
    }

    /// One that says that it is done and nothing else.
    package init(of topic: String?) {
        self.topic = topic
    }
}
