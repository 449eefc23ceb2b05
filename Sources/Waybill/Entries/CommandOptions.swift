/// Options for opening a connection; an option that is nil is left to the transport's configuration.
public struct ConnectOptions: Sendable {
    /// The client identifier; the server keeps a session under this name.
    public var clientIdentifier: String?
    /// The user name.
    public var userName: String?
    /// The password; never logged.
    public var password: String?
    /// The message that the server publishes if the connection is lost.
    public var will: Will?
    /// Whether the server discards an earlier session.
    public var cleanStart: Bool?
    /// The time that the server keeps the session after the connection (MQTT 5, 3.1.2.11.2), in whole seconds;
    /// 4,294,967,295 and more mean forever.
    ///
    /// Zero ends the session with the connection. Nil leaves it to the configuration.
    public var sessionExpiry: Duration?
    /// The longest silence on the connection, in whole seconds up to 65,535; zero turns keep alive off.
    public var keepAlive: Duration?
    /// The time limit for connecting; it counts for each host where there are several.
    public var timeout: Duration?
    /// Fields of the HTTP request that opens a WebSocket, such as `Authorization`.
    ///
    /// They replace fields of the same name in the configuration. Plain TCP and TLS have no such request: connecting
    /// then fails with `unsupported`.
    public var upgradeHeaders: Headers = [:]

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        clientIdentifier: String? = nil,
        userName: String? = nil,
        password: String? = nil,
        will: Will? = nil,
        cleanStart: Bool? = nil,
        sessionExpiry: Duration? = nil,
        keepAlive: Duration? = nil,
        timeout: Duration? = nil,
        upgradeHeaders: Headers = [:]
    ) {
        self.clientIdentifier = clientIdentifier
        self.userName = userName
        self.password = password
        self.will = will
        self.cleanStart = cleanStart
        self.sessionExpiry = sessionExpiry
        self.keepAlive = keepAlive
        self.timeout = timeout
        self.upgradeHeaders = upgradeHeaders
    }
}

/// Options for sending.
public struct SendOptions: Sendable {
    /// The quality of service.
    public var qos: QoS
    /// Whether the server keeps the message for later subscribers.
    public var retain: Bool
    /// Whether sending twice does no harm; a send that may have arrived is then retried.
    ///
    /// Messages of QoS 1 and 2 are retried in any case, except with ``isSentOnce``.
    public var isIdempotent: Bool
    // Rarely set, so kept out of line: these options travel with every message.
    private var box: RareBox?

    private struct Rare: Hashable, Sendable {
        var timeout: Duration?
        var expiry: Duration?
        var asksForReceipt: Bool?
        var method: String?
        var responseTopic: String?
        var correlationData: [UInt8]?
        var isText: Bool?
        var isSentOnce = false
        var waitsForConnection: Bool?
    }

    private final class RareBox: Sendable {
        let values: Rare

        init(_ values: Rare) { self.values = values }

        // A failable initializer would allocate the object before it fails.
        static func holding(_ values: Rare) -> RareBox? {
            values == Rare() ? nil : RareBox(values)
        }
    }

    private var rare: Rare {
        get { box?.values ?? Rare() }
        set { box = .holding(newValue) }
    }

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        isIdempotent: Bool = false,
        timeout: Duration? = nil,
        expiry: Duration? = nil,
        method: String? = nil,
        asksForReceipt: Bool? = nil,
        responseTopic: String? = nil,
        correlationData: [UInt8]? = nil,
        isText: Bool? = nil,
        isSentOnce: Bool = false,
        waitsForConnection: Bool? = nil
    ) {
        self.qos = qos
        self.retain = retain
        self.isIdempotent = isIdempotent
        let isPlain =
            timeout == nil && expiry == nil && method == nil && asksForReceipt == nil
            && responseTopic == nil && correlationData == nil && isText == nil && !isSentOnce
            && waitsForConnection == nil
        guard !isPlain else { return }
        box = RareBox(
            Rare(
                timeout: timeout,
                expiry: expiry,
                asksForReceipt: asksForReceipt,
                method: method,
                responseTopic: responseTopic,
                correlationData: correlationData,
                isText: isText,
                isSentOnce: isSentOnce,
                waitsForConnection: waitsForConnection
            )
        )
    }

    /// Whether all options are nil that are stored out of line; checked for each message before the options are.
    package var isPlain: Bool { box == nil }

    /// The time limit for the peer's acknowledgement, or for its reply where one is requested; nil for the transport's
    /// own limit.
    ///
    /// Before it, a store has the same time to keep the message (``SessionStore``). A message that is stored, and waits
    /// for a connection (``waitsForConnection``), has this time from the call on. Without it the transport's limit
    /// begins for such a message when its last byte is given to the socket.
    public var timeout: Duration? {
        get { box?.values.timeout }
        set { rare.timeout = newValue }
    }

    /// The time after which the server discards an undelivered message (MQTT 5), in whole seconds; nil for never.
    public var expiry: Duration? {
        get { box?.values.expiry }
        set { rare.expiry = newValue }
    }

    /// The HTTP method, such as `PUT`, where a send is an HTTP request; nil for `POST`.
    public var method: String? {
        get { box?.values.method }
        set { rare.method = newValue }
    }

    /// Whether the send asks for a receipt and waits for it (STOMP); nil for the transport's default.
    public var asksForReceipt: Bool? {
        get { box?.values.asksForReceipt }
        set { rare.asksForReceipt = newValue }
    }

    /// The topic to which the receiver sends its reply (MQTT 5's response topic, STOMP's `reply-to`).
    ///
    /// Set it where the app subscribes to the replies itself. A request that returns its reply sets a topic of its own.
    public var responseTopic: String? {
        get { box?.values.responseTopic }
        set { rare.responseTopic = newValue }
    }

    /// Data that a reply carries back, so that it can be matched (MQTT 5's correlation data, STOMP's `correlation-id`).
    ///
    /// ``EntryCommand/reply(to:qos:)`` copies it from the message that is answered.
    public var correlationData: [UInt8]? {
        get { box?.values.correlationData }
        set { rare.correlationData = newValue }
    }

    /// Whether a message of QoS 1 is sent at most once, although the server confirms it (MQTT); false by default.
    ///
    /// The message is not stored, does not wait in the offline queue, and is not sent again over another connection. If
    /// the connection ends before the server confirms it, the send fails with `connectionLost`: the message may have
    /// arrived or not. A retry policy repeats such a failure only with ``isIdempotent``.
    ///
    /// For values that are soon replaced by newer ones. With QoS 0 it makes no difference. With QoS 2, and where sends
    /// are not MQTT's, it is `unsupported`.
    public var isSentOnce: Bool {
        get { box?.values.isSentOnce ?? false }
        set { rare.isSentOnce = newValue }
    }

    /// Whether the send waits for a connection, also for the first one (MQTT, STOMP); nil for
    /// ``OfflineQueuePolicy/waitsForConnection`` of the transport.
    ///
    /// With ``isSentOnce`` it makes no difference. Where sends are HTTP requests, true is `unsupported`.
    public var waitsForConnection: Bool? {
        get { box?.values.waitsForConnection }
        set { rare.waitsForConnection = newValue }
    }

    /// Whether the body is declared as text (MQTT 5, 3.3.2.3.2: the payload format indicator); nil, the default,
    /// declares nothing.
    ///
    /// True sends 1. The body must then be UTF-8, else the send fails with `invalidEntry`. False sends 0, which means
    /// bytes without a format. The kind of the body decides nothing by itself, because a declared send takes two bytes
    /// more, and a server may check it.
    public var isText: Bool? {
        get { box?.values.isText }
        set { rare.isText = newValue }
    }
}

/// How the client acknowledges messages to a STOMP server (STOMP 1.2, SUBSCRIBE ack Header).
public enum AckMode: Hashable, Sendable {
    /// The client acknowledges nothing.
    case auto
    /// Each acknowledgement covers all messages of the subscription before it.
    case client
    /// Each message is acknowledged separately; from STOMP 1.1 on.
    case clientIndividual
}

/// When a message that needs an acknowledgement is acknowledged.
public enum AcknowledgementMode: Sendable {
    /// As soon as the consumer has taken it from the stream.
    case whenTaken
    /// When the app sends an entry with the command `ack` or `nack`.
    case manual
}

/// What happens to messages that arrive faster than the consumer takes them.
///
/// Messages that the protocol itself holds back (MQTT at QoS 1 and 2) are never dropped, whatever the policy. Neither
/// are messages that a STOMP server wants acknowledged: the subscription fails when more of them wait than the policy
/// allows. There, a message counts from its arrival to its acknowledgement.
public struct BufferPolicy: Hashable, Sendable {
    /// What to do with a message that does not fit.
    public enum Overflow: Hashable, Sendable {
        /// The oldest waiting message is dropped.
        case dropOldest
        /// The new message is dropped.
        case dropNewest
        /// The subscription ends with `slowConsumer`.
        case fail
        /// Reading from the peer stops, for everything on the connection.
        case holdBack
    }

    /// What to do with a message that does not fit.
    public var overflow: Overflow
    /// The number of messages that may wait; at least one.
    public var messageLimit: Int
    /// The number of body bytes that may wait; a single message may exceed it.
    public var byteLimit: Int

    /// Sets the limits; by default 16,384 messages and 16 MiB.
    public init(
        _ overflow: Overflow,
        messageLimit: Int = 16_384,
        byteLimit: Int = 16 << 20
    ) {
        self.overflow = overflow
        self.messageLimit = max(messageLimit, 1)
        self.byteLimit = max(byteLimit, 1)
    }
}
