/// That a request is done, and what the peer said about it.
public struct Receipt: Sendable {
    /// The topic of the request.
    public var topic: String?
    /// What the peer said, such as the name of a reason code; nil when it said nothing.
    public var reason: String?
    /// What the peer said beside it.
    public var headers: Headers
    /// The quality of service that a server granted to a subscription.
    public var grantedQualityOfService: QualityOfService?
    /// Whether the server has resumed an earlier session, after `connect`.
    public var isSessionPresent: Bool
    /// How the connection is secured, after `connect` and with the answer to a request of HTTP; nil without TLS.
    public var tls: NegotiatedTLS?
    /// The peer's answer, where the protocol has one.
    public var reply: Message?

    /// Makes a receipt, as a transport or a test does.
    public init(
        topic: String? = nil,
        reason: String? = nil,
        headers: Headers = [:],
        grantedQualityOfService: QualityOfService? = nil,
        isSessionPresent: Bool = false,
        tls: NegotiatedTLS? = nil,
        reply: Message? = nil
    ) {
        self.topic = topic
        self.reason = reason
        self.headers = headers
        self.grantedQualityOfService = grantedQualityOfService
        self.isSessionPresent = isSessionPresent
        self.tls = tls
        self.reply = reply
    }
}
