public import Waybill

/// What an MQTT 5 server states in its CONNACK (MQTT 5, 3.2.2.3): limits, features and texts.
///
/// A property that the server leaves out has the value that the specification gives it. It is nil where the
/// specification leaves the matter to what the client has sent.
///
/// ``Receipt/connack`` of a `connect` has them, and so has the transport while it is connected.
public struct MQTTConnack: Hashable, Sendable {
    /// The time that the server keeps the session (Session Expiry Interval); nil if it keeps it as the client asked.
    ///
    /// 4,294,967,295 seconds mean forever.
    public var sessionExpiry: Duration?
    /// The number of unacknowledged messages of QoS 1 and 2 that the server accepts (Receive Maximum).
    public var receiveMaximum = 65_535
    /// The highest quality of service that the server supports (Maximum QoS).
    public var maximumQoS = QoS.exactlyOnce
    /// Whether the server keeps retained messages (Retain Available).
    public var retainAvailable = true
    /// The longest packet that the server accepts, in bytes (Maximum Packet Size); nil for no limit.
    public var maximumPacketSize: Int?
    /// The client identifier that the server has assigned (Assigned Client Identifier); nil if the client sent one.
    public var assignedClientIdentifier: String?
    /// The number of topic aliases that the server accepts (Topic Alias Maximum).
    public var topicAliasMaximum = 0
    /// The server's text (Reason String).
    public var reasonString: String?
    /// The user properties of the CONNACK; no description shows their values.
    public var userProperties: Headers = [:]
    /// Whether the server supports wildcards in filters (Wildcard Subscription Available).
    public var wildcardSubscriptionAvailable = true
    /// Whether the server supports subscription identifiers (Subscription Identifiers Available).
    public var subscriptionIdentifiersAvailable = true
    /// Whether the server supports shared subscriptions (Shared Subscription Available).
    public var sharedSubscriptionAvailable = true
    /// The keep alive that the server demands (Server Keep Alive); nil if it accepts the client's.
    public var serverKeepAlive: Duration?
    /// The server's basis for response topics (Response Information); nil unless the client has asked for it.
    public var responseInformation: String?
    /// Other servers that the client may use, as the server wrote them (Server Reference).
    public var serverReference: String?

    /// The properties of a CONNACK that has none, as the specification defines them.
    public init() {}
}

extension MQTTConnack: CustomStringConvertible, Unmirrored {
    /// Limits and features; no text of the server and no values of user properties.
    public var description: String {
        var text = "QoS \(maximumQoS.rawValue), receive maximum \(receiveMaximum)"
        if let maximumPacketSize { text += ", packets of \(maximumPacketSize) bytes" }
        if let sessionExpiry { text += ", session expiry \(sessionExpiry)" }
        if let serverKeepAlive { text += ", keep alive \(serverKeepAlive)" }
        let missing: [(String, Bool)] = [
            ("retain", retainAvailable), ("wildcards", wildcardSubscriptionAvailable),
            ("subscription identifiers", subscriptionIdentifiersAvailable),
            ("shared subscriptions", sharedSubscriptionAvailable),
        ]
        for (name, isAvailable) in missing where !isAvailable { text += ", no \(name)" }
        return text
    }
}
