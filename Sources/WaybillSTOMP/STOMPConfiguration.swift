import STOMPWire
public import Waybill
import WireCore

/// The options of a ``STOMPTransport``.
///
/// An entry's own options override them.
public struct STOMPConfiguration: Sendable {
    /// A version of the protocol.
    public enum Version: CaseIterable, Sendable {
        /// STOMP 1.0: no heart-beats, no NACK, no escapes.
        case v1_0
        /// STOMP 1.1 (2011).
        case v1_1
        /// STOMP 1.2 (2012).
        case v1_2
    }

    /// Which requests ask for a receipt and wait for it.
    public enum Receipts: Hashable, CaseIterable, Sendable {
        /// All, until the server has shown that it sends none, as Spring's simple broker.
        ///
        /// It shows that when it sends a MESSAGE while a request waits, and no RECEIPT within a second. The requests
        /// that wait are then complete, and the others of this connection ask for none; the event `unsupported` tells
        /// of it. A RECEIPT that comes after all turns receipts on again.
        case automatic
        /// All, whatever the server does.
        case always
        /// None but those of entries that ask for one.
        case never
    }

    /// When SEND has a `content-length`.
    public enum ContentLength: Hashable, CaseIterable, Sendable {
        /// Always, but not `unlessText` with a server of ActiveMQ Classic, whose other consumers would get a message of
        /// bytes.
        case automatic
        /// For each body.
        case always
        /// For each body that is not text by its content type, is not UTF-8 or has a NUL.
        case unlessText
    }

    /// The offered versions; all by default.
    ///
    /// The server chooses the highest one that it supports.
    public var versions: [Version]
    /// The virtual host; nil uses the host of the connection.
    ///
    /// RabbitMQ needs the name of one of its virtual hosts, such as `/`.
    public var host: String?
    /// The user name, sent as `login`; nil uses that of the URL.
    public var userName: String? {
        get { hiddenUserName.value }
        set { hiddenUserName.value = newValue }
    }
    private var hiddenUserName: Redacted<String?>
    /// The password, sent as `passcode`; nil uses that of the URL.
    ///
    /// Never logged.
    public var password: String? {
        get { hiddenPassword.value }
        set { hiddenPassword.value = newValue }
    }
    private var hiddenPassword: Redacted<String?>
    /// The source of credentials, asked before each connect and reconnect; nil uses ``userName`` and ``password``.
    public var credentials: CredentialSource?
    /// The intervals of heart-beats.
    public var heartBeat: HeartBeat
    /// Which requests ask for a receipt; `automatic` by default.
    ///
    /// Without receipts a request is complete when it was handed to the link, and a refusal only ends the connection. A
    /// MESSAGE of a subscription completes its SUBSCRIBE, too. DISCONNECT, a send of QoS 1 and an entry that asks for a
    /// receipt always ask for one.
    public var receipts: Receipts
    /// When SEND has a `content-length`; `automatic` by default.
    public var contentLength: ContentLength
    /// How long the client waits.
    public var timeouts: Timeouts
    /// How much the client sends, accepts and keeps at a time.
    public var limits: Limits
    /// The destination of replies; nil, the default, for a temporary queue with a random name.
    ///
    /// It is sent in `reply-to`, and is subscribed before the first request. RabbitMQ itself subscribes to destinations
    /// that begin with `/temp-queue/`. No other client may use the same queue, because it would take the replies.
    public var replyDestination: String?

    /// Whether a request makes a connection if there is none; true by default.
    public var connectsOnDemand: Bool
    /// Whether and when to connect again after a lost connection; by default without a limit.
    public var reconnection: ReconnectionPolicy
    /// What happens to sends while a lost connection is made again; by default those with a receipt wait.
    public var offline: OfflinePolicy
    /// Where sends with a receipt are kept until the server has answered, also beyond the end of the process; nil, the
    /// default, for nowhere.
    ///
    /// A send is stored before it is sent. A send in a transaction, one without a receipt and one that expects a reply
    /// are not stored. STOMP has no session: a send whose connection is lost fails with `connectionLost`, may have
    /// arrived, and is not sent again. What a process has left that ended before its sends did is sent by the next
    /// transport with the store, over its first connection and before all other sends, and may arrive twice. Two
    /// transports must not use one store at the same time.
    ///
    /// With a store on disk, sends and subscriptions wait for a connection
    /// (``Waybill/OfflinePolicy/waitsForConnection``).
    public var store: (any SessionStore)?
    /// What happens when messages arrive faster than they are taken; by default the subscription ends with
    /// `slowConsumer`.
    ///
    /// An entry may override it. In the ack modes `client` and `client-individual` the end loses no message, because
    /// the server delivers unacknowledged messages again. A message that waits for an acknowledgement is never dropped.
    public var buffering: BufferPolicy
    /// Sources of hints to pause, to resume and to retry at once; none by default.
    ///
    /// On Apple platforms, changes of the network are always a source, too.
    public var hints: [any ConnectionHintSource]
    /// The TLS options, for URLs with `stomps` or `wss`.
    public var tls: TLSOptions
    /// The proxy of all connections; nil, the default, for none.
    public var proxy: ProxyOptions?
    /// Further hosts of the service; none by default.
    public var failover: FailoverOptions
    /// The WebSocket options, for URLs with `ws` or `wss`.
    public var webSocket: WebSocketOptions
    /// Receives a description of every frame, without secrets.
    ///
    /// It shows destinations, and the ids of receipts, subscriptions and transactions, also those that the app has
    /// chosen.
    public var wireLogger: (any WireLogger)?
    /// The name of this client in its events and log records; nil, the default, for none.
    public var label: String?

    /// Makes a configuration; each parameter has the meaning of the property of the same name.
    public init(
        versions: [Version] = Version.allCases,
        host: String? = nil,
        userName: String? = nil,
        password: String? = nil,
        credentials: CredentialSource? = nil,
        heartBeat: HeartBeat = HeartBeat(),
        receipts: Receipts = .automatic,
        contentLength: ContentLength = .automatic,
        timeouts: Timeouts = Timeouts(),
        limits: Limits = Limits(),
        replyDestination: String? = nil,
        connectsOnDemand: Bool = true,
        reconnection: ReconnectionPolicy = ReconnectionPolicy(),
        offline: OfflinePolicy = OfflinePolicy(),
        store: (any SessionStore)? = nil,
        buffering: BufferPolicy = BufferPolicy(.fail),
        hints: [any ConnectionHintSource] = [],
        tls: TLSOptions = TLSOptions(),
        proxy: ProxyOptions? = nil,
        failover: FailoverOptions = FailoverOptions(),
        webSocket: WebSocketOptions = WebSocketOptions(),
        wireLogger: (any WireLogger)? = nil,
        label: String? = nil
    ) {
        self.versions = versions
        self.host = host
        hiddenUserName = Redacted(userName)
        hiddenPassword = Redacted(password)
        self.credentials = credentials
        self.heartBeat = heartBeat
        self.receipts = receipts
        self.contentLength = contentLength
        self.timeouts = timeouts
        self.limits = limits
        self.replyDestination = replyDestination
        self.connectsOnDemand = connectsOnDemand
        self.reconnection = reconnection
        self.offline = offline
        self.store = store
        self.buffering = buffering
        self.hints = hints
        self.tls = tls
        self.proxy = proxy
        self.failover = failover
        self.webSocket = webSocket
        self.wireLogger = wireLogger
        self.label = label
    }

    /// The limits of the protocol core.
    var wireLimits: STOMPLimits {
        var wire = STOMPLimits()
        wire.maximumBodyByteCount = max(limits.bodySize, 0)
        wire.maximumLineByteCount = max(limits.headerLineSize, 1)
        wire.maximumHeaderCount = max(limits.headerCount, 1)
        return wire
    }

    /// Whether a request asks for a receipt whose entry does not say it.
    var receiptDemand: STOMPReceiptDemand {
        switch receipts {
        case .automatic: .automatic
        case .always: .required
        case .never: .none
        }
    }

    /// When SEND has a length, as a value of the protocol core.
    var wireContentLength: STOMPContentLength {
        switch contentLength {
        case .automatic: .automatic
        case .always: .always
        case .unlessText: .unlessText
        }
    }

    /// The versions as values of the protocol core.
    var wireVersions: [STOMPVersion] {
        versions.map { version in
            switch version {
            case .v1_0: .v1_0
            case .v1_1: .v1_1
            case .v1_2: .v1_2
            }
        }
    }
}
