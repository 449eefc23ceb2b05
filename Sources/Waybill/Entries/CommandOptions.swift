/// How to open a connection; what is nil is left to the transport's configuration.
public struct ConnectOptions: Sendable {
    /// Who the client is; a server that keeps sessions keeps them under this name.
    public var clientIdentifier: String?
    /// The user's name.
    public var userName: String?
    /// The password; never logged.
    public var password: String?
    /// What the server publishes should the connection be lost.
    public var will: Will?
    /// Whether an earlier session is discarded.
    public var cleanStart: Bool?
    /// How long the connection may be silent, in whole seconds up to 65,535; zero turns it off.
    public var keepAlive: Duration?
    /// How long connecting may take, for each host where there are several.
    public var timeout: Duration?
    /// Fields of the HTTP request that opens a WebSocket, such as `Authorization`.
    ///
    /// They replace fields of the same name in the configuration. Over plain TCP or TLS there is no such request:
    /// connecting then fails with `unsupported`.
    public var upgradeHeaders: Headers = [:]

    /// Collects options.
    public init(
        clientIdentifier: String? = nil,
        userName: String? = nil,
        password: String? = nil,
        will: Will? = nil,
        cleanStart: Bool? = nil,
        keepAlive: Duration? = nil,
        timeout: Duration? = nil,
        upgradeHeaders: Headers = [:]
    ) {
        self.clientIdentifier = clientIdentifier
        self.userName = userName
        self.password = password
        self.will = will
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.timeout = timeout
        self.upgradeHeaders = upgradeHeaders
    }
}

/// What the server publishes in the client's name when the connection is lost.
public struct Will: Sendable {
    /// Where it is published.
    public var topic: String
    /// What is published.
    public var body: Payload
    /// How surely it is delivered.
    public var qos: QoS
    /// Whether the server keeps it for those who subscribe later.
    public var retain: Bool
    /// How long the server waits for the client to come back before it publishes (MQTT 5).
    public var delay: Duration?

    /// Describes a will.
    public init(
        topic: String,
        body: Payload,
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        delay: Duration? = nil
    ) {
        self.topic = topic
        self.body = body
        self.qos = qos
        self.retain = retain
        self.delay = delay
    }
}

/// How to send.
public struct SendOptions: Sendable {
    /// How surely it is delivered.
    public var qos: QoS
    /// Whether the server keeps it for those who subscribe later.
    public var retain: Bool
    /// Whether sending twice does no harm, so that a send which may have arrived is retried.
    ///
    /// Messages of QoS 1 and 2 are retried in any case.
    public var isIdempotent: Bool
    // Rarely set: out of line, since these options travel with every message.
    private var box: RareBox?

    private struct Rare: Hashable, Sendable {
        var timeout: Duration?
        var expiry: Duration?
        var asksForReceipt: Bool?
        var method: String?
        var responseTopic: String?
        var correlationData: [UInt8]?
    }

    private final class RareBox: Sendable {
        let values: Rare

        init?(_ values: Rare) {
            guard values != Rare() else { return nil }
            self.values = values
        }
    }

    private var rare: Rare {
        get { box?.values ?? Rare() }
        set { box = RareBox(newValue) }
    }

    /// Collects options; each has its meaning at the property of the same name.
    public init(
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        isIdempotent: Bool = false,
        timeout: Duration? = nil,
        expiry: Duration? = nil,
        method: String? = nil,
        asksForReceipt: Bool? = nil,
        responseTopic: String? = nil,
        correlationData: [UInt8]? = nil
    ) {
        self.qos = qos
        self.retain = retain
        self.isIdempotent = isIdempotent
        let isPlain =
            timeout == nil && expiry == nil && method == nil && asksForReceipt == nil
            && responseTopic == nil && correlationData == nil
        guard !isPlain else { return }
        box = RareBox(
            Rare(
                timeout: timeout,
                expiry: expiry,
                asksForReceipt: asksForReceipt,
                method: method,
                responseTopic: responseTopic,
                correlationData: correlationData
            )
        )
    }

    /// How long the peer's acknowledgement may take, or its answer where one is asked for; nil for the
    /// transport's own limit.
    public var timeout: Duration? {
        get { box?.values.timeout }
        set { rare.timeout = newValue }
    }

    /// After what time the server discards a message that it could not deliver (MQTT 5), in whole
    /// seconds; nil for never.
    public var expiry: Duration? {
        get { box?.values.expiry }
        set { rare.expiry = newValue }
    }

    /// The HTTP method, such as `PUT`, where a send is an HTTP request; nil for `POST`.
    public var method: String? {
        get { box?.values.method }
        set { rare.method = newValue }
    }

    /// Whether a receipt is asked for and awaited (STOMP); nil for the transport's own way.
    public var asksForReceipt: Bool? {
        get { box?.values.asksForReceipt }
        set { rare.asksForReceipt = newValue }
    }

    /// Where whoever gets it shall send an answer (MQTT 5's response topic, STOMP's `reply-to`).
    ///
    /// For those who listen to the answers themselves; a request that returns its answer has one already.
    public var responseTopic: String? {
        get { box?.values.responseTopic }
        set { rare.responseTopic = newValue }
    }

    /// What an answer carries, so that it is told apart (MQTT 5's correlation data, STOMP's `correlation-id`).
    ///
    /// ``EntryCommand/reply(to:qos:)`` takes it from the message that is answered.
    public var correlationData: [UInt8]? {
        get { box?.values.correlationData }
        set { rare.correlationData = newValue }
    }
}

/// How to subscribe.
public struct SubscribeOptions: Sendable {
    /// When retained messages are sent (MQTT 5, 3.8.3.1).
    public enum RetainHandling: Sendable {
        /// At each subscription.
        case send
        /// At a subscription that did not exist before.
        case sendIfNew
        /// Never.
        case doNotSend
    }

    /// The best quality of service wanted; the server may grant less.
    public var qos: QoS
    /// Whether one's own messages are left out (MQTT 5).
    public var noLocal: Bool
    /// Whether messages keep the retain flag they were sent with (MQTT 5).
    public var retainAsPublished: Bool
    /// When retained messages are sent (MQTT 5).
    public var retainHandling: RetainHandling
    /// What happens when messages come faster than they are taken; nil for the transport's default.
    public var buffering: BufferPolicy?
    /// When messages are acknowledged.
    public var acknowledgement: AcknowledgementMode
    /// STOMP's own way to say how messages are acknowledged; nil to let the quality of service say it.
    public var ackMode: AckMode?
    /// Whether a receipt is asked for and awaited (STOMP); nil for the transport's own way.
    public var asksForReceipt: Bool?
    /// The HTTP method that asks for an event stream; nil for `GET`, or `POST` where the entry has a body.
    public var method: String?
    /// The types of events wanted; nil for all.
    ///
    /// Server-sent events only.
    public var eventTypes: Set<String>?
    /// Where an earlier stream stopped: the id of its last event.
    ///
    /// Server-sent events only.
    public var lastEventID: String?
    /// How long the peer's acknowledgement may take; nil for the transport's own limit.
    public var timeout: Duration?
    /// Whether the stream begins at once where there is no connection, and is subscribed to when there is one; false by
    /// default.
    ///
    /// The connection is made as one that was lost: attempt after attempt, as the transport's policy says, also when
    /// somebody else's first attempt fails meanwhile. Where connections are made by hand only, the stream waits for the
    /// next one, and ends with an attempt at it that fails. A refusal ends the stream, and so does all that ends the
    /// streams of a connection; ``timeout`` counts only where there is a connection, and the rest of this makes no
    /// difference then.
    public var startsOffline: Bool

    /// Collects options; each has its meaning at the property of the same name.
    public init(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .send,
        ackMode: AckMode? = nil,
        buffering: BufferPolicy? = nil,
        acknowledgement: AcknowledgementMode = .whenTaken,
        asksForReceipt: Bool? = nil,
        method: String? = nil,
        eventTypes: Set<String>? = nil,
        lastEventID: String? = nil,
        timeout: Duration? = nil,
        startsOffline: Bool = false
    ) {
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
        self.buffering = buffering
        self.acknowledgement = acknowledgement
        self.ackMode = ackMode
        self.asksForReceipt = asksForReceipt
        self.method = method
        self.eventTypes = eventTypes
        self.lastEventID = lastEventID
        self.timeout = timeout
        self.startsOffline = startsOffline
    }
}

/// How a STOMP server wants messages acknowledged (STOMP 1.2, SUBSCRIBE ack Header).
public enum AckMode: Hashable, Sendable {
    /// Not at all.
    case auto
    /// Each acknowledgement covers all messages of the subscription before it.
    case client
    /// Each message by itself; from 1.1 on.
    case clientIndividual
}

/// When a message that the peer wants acknowledged is.
public enum AcknowledgementMode: Sendable {
    /// As soon as the consumer has taken it from the stream.
    case whenTaken
    /// When the app says so, by an entry with the command `ack` or `nack`.
    case manual
}

/// What happens to messages that come faster than they are taken.
///
/// What the protocol itself holds back (MQTT at QoS 1 and 2) is never dropped, whatever the policy. Nor is
/// what a STOMP server wants acknowledged: a subscription fails when more of that waits than the policy
/// allows, from its arrival to its acknowledgement.
public struct BufferPolicy: Hashable, Sendable {
    /// What to do with what does not fit.
    public enum Overflow: Hashable, Sendable {
        /// The message that has waited longest makes room.
        case dropOldest
        /// The new message is dropped.
        case dropNewest
        /// The subscription ends with `slowConsumer`.
        case fail
        /// The peer is held back: everything else on the connection with it.
        case holdBack
    }

    /// What to do with what does not fit.
    public var overflow: Overflow
    /// How many messages may wait; at least one.
    public var messageLimit: Int
    /// How many bytes of body may wait; one message may pass it.
    public var byteLimit: Int

    /// Sets bounds; by default 16,384 messages and 16 MiB.
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
