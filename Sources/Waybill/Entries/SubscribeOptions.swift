/// Options for subscribing.
public struct SubscribeOptions: Sendable {
    /// When the server sends retained messages (MQTT 5, 3.8.3.1).
    public enum RetainHandling: Sendable {
        /// At each subscription.
        case send
        /// At a subscription that is new to the server.
        case sendIfNew
        /// Never.
        case doNotSend
    }

    /// The highest quality of service wanted; the server may grant less.
    public var qos: QoS
    /// Whether the server leaves out the client's own messages (MQTT 5).
    public var noLocal: Bool
    /// Whether messages keep the retain flag that they were sent with (MQTT 5).
    public var retainAsPublished: Bool
    /// When the server sends retained messages (MQTT 5).
    public var retainHandling: RetainHandling
    /// The name of the group of clients that share the subscription (MQTT 5, 4.8.2); nil for a subscription of its own.
    ///
    /// The server gives each message to one client of the group. The topic stays the plain filter, to which a topic
    /// style applies: the transport subscribes to `$share/NAME/FILTER`. A name is not empty and has no `/`, `+` or `#`,
    /// else `invalidEntry`. ``noLocal`` is not allowed with it. MQTT 3.1.1 has no shared subscriptions: `unsupported`. A
    /// topic that begins with `$share/` is still sent as it is, for servers that know it in 3.1.1, too.
    public var shareName: String?
    /// The identifier of the subscription, which the server adds to its messages (MQTT 5, 3.8.2.1.2).
    public var subscriptionIdentifier: SubscriptionIdentifier
    /// What happens when messages arrive faster than the consumer takes them; nil for the transport's default.
    public var buffering: BufferPolicy?
    /// When messages are acknowledged.
    public var acknowledgement: AcknowledgementMode
    /// STOMP's ack mode; nil derives it from the quality of service.
    public var ackMode: AckMode?
    /// Whether the subscription asks for a receipt and waits for it (STOMP); nil for the transport's default.
    public var asksForReceipt: Bool?
    /// The HTTP method of the request for an event stream; nil for `GET`, or for `POST` where the entry has a body.
    public var method: String?
    /// The event types wanted; nil for all.
    ///
    /// Server-sent events only.
    public var eventTypes: Set<String>?
    /// The id of the last event of an earlier stream, from which the server continues.
    ///
    /// Server-sent events only.
    public var lastEventID: String?
    /// The time limit for the peer's acknowledgement; nil for the transport's own limit.
    public var timeout: Duration?
    /// Whether the stream begins at once without a connection; nil for ``OfflineQueuePolicy/waitsForConnection`` of the
    /// transport, which is false without a store on disk.
    ///
    /// The transport then connects as after a lost connection, attempt after attempt, as its policy says. The failed
    /// first attempt of another call does not end the stream. The SUBSCRIBE follows once there is a connection.
    ///
    /// Where connections are opened by hand only, the stream waits for the next attempt, and ends if that attempt
    /// fails. A refusal by the server ends the stream, and so does anything that ends the streams of a connection.
    /// ``timeout`` counts only while there is a connection. With a connection at the start, this option makes no
    /// difference.
    public var waitsForConnection: Bool?

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .send,
        shareName: String? = nil,
        subscriptionIdentifier: SubscriptionIdentifier = .automatic,
        ackMode: AckMode? = nil,
        buffering: BufferPolicy? = nil,
        acknowledgement: AcknowledgementMode = .whenTaken,
        asksForReceipt: Bool? = nil,
        method: String? = nil,
        eventTypes: Set<String>? = nil,
        lastEventID: String? = nil,
        timeout: Duration? = nil,
        waitsForConnection: Bool? = nil
    ) {
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
        self.shareName = shareName
        self.subscriptionIdentifier = subscriptionIdentifier
        self.buffering = buffering
        self.acknowledgement = acknowledgement
        self.ackMode = ackMode
        self.asksForReceipt = asksForReceipt
        self.method = method
        self.eventTypes = eventTypes
        self.lastEventID = lastEventID
        self.timeout = timeout
        self.waitsForConnection = waitsForConnection
    }
}

/// The identifier of a subscription (MQTT 5, 3.8.2.1.2).
public enum SubscriptionIdentifier: Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// The transport chooses one where the server supports identifiers.
    ///
    /// It finds the listeners of a message by the identifiers. Copies that a server sends for overlapping filters are
    /// then told apart.
    case automatic
    /// None: the topics of messages decide which filters get them.
    ///
    /// A server that sends a copy for each of several overlapping filters then delivers to each of them more than once.
    case omitted
    /// The number of the app's choice, from 1 to 268,435,455; others are refused with `invalidEntry`.
    ///
    /// All filters of one subscription have the same number. Two subscriptions cannot have the same: `invalidEntry`.
    /// Automatic numbers count up from 1. One of them is refused, too, if its subscription and this one have a topic in
    /// common. Numbers from 1,000 on rarely meet one.
    ///
    /// A message with the number counts for the subscription only if its topic matches.
    /// ``Message/Details/subscriptionIdentifiers`` tells which of the app's numbers a message matched.
    case number(UInt32)

    /// The number of the app's choice.
    public init(integerLiteral value: UInt32) { self = .number(value) }

    /// Whether the app has chosen the number.
    package var isNumber: Bool {
        if case .number = self { true } else { false }
    }
}
