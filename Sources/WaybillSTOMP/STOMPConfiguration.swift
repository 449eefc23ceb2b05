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

    /// The offered versions; all by default.
    ///
    /// The server chooses the highest one that it supports.
    public var versions = Version.allCases
    /// The virtual host; nil uses the host of the connection.
    ///
    /// RabbitMQ needs the name of one of its virtual hosts, such as `/`.
    public var host: String?
    /// The user name; nil uses that of the URL.
    public var login: String? {
        get { hiddenLogin.value }
        set { hiddenLogin.value = newValue }
    }
    private var hiddenLogin = Redacted<String?>(nil)
    /// The password; nil uses that of the URL.
    ///
    /// Never logged.
    public var passcode: String? {
        get { hiddenPasscode.value }
        set { hiddenPasscode.value = newValue }
    }
    private var hiddenPasscode = Redacted<String?>(nil)
    /// The source of credentials, asked before each connect and reconnect; nil uses ``login`` and ``passcode``.
    public var credentials: CredentialSource?
    /// The interval of this side's heart-beats while it sends no frames; 10 seconds by default, zero for none.
    ///
    /// The server may demand a longer interval. If neither side sends heart-beats over a WebSocket, the WebSocket sends
    /// pings instead, as ``webSocket`` states.
    public var outgoingHeartBeat = Duration.seconds(10)
    /// The interval of heart-beats that is requested from the server; 10 seconds by default, zero for none.
    ///
    /// The connection counts as lost after twice the agreed interval without a byte, plus a margin of at most one
    /// second.
    public var incomingHeartBeat = Duration.seconds(10)
    /// Which requests ask for a receipt and wait for it.
    public enum Receipts: Hashable, CaseIterable, Sendable {
        /// All, until the server has shown that it sends none, as Spring's simple broker.
        ///
        /// It shows that when it sends a MESSAGE while a request waits, and no RECEIPT within a second. The requests that
        /// wait are then complete, and the others of this connection ask for none; the event `unsupported` tells of it.
        /// A RECEIPT that comes after all turns receipts on again.
        case automatic
        /// All, whatever the server does.
        case always
        /// None but those of entries that ask for one.
        case never
    }

    /// Which requests ask for a receipt; `automatic` by default.
    ///
    /// Without receipts a request is complete when it was handed to the link, and a refusal only ends the connection. A
    /// MESSAGE of a subscription completes its SUBSCRIBE, too. DISCONNECT, a send of QoS 1 and an entry that asks for a
    /// receipt always ask for one.
    public var receipts = Receipts.automatic

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

    /// When SEND has a `content-length`; `automatic` by default.
    public var contentLength = ContentLength.automatic

    /// The longest silence of the server before the connection counts as lost; nil, the default, for no limit.
    ///
    /// Meant for servers without heart-beats; for other servers ``incomingHeartBeat`` has the same effect. Time in
    /// which a slow consumer stops the reading does not count.
    public var readTimeout: Duration?

    /// The maximum number of requests that wait for their receipts at the same time; 200 by default.
    ///
    /// Further requests wait in the order of their calls until receipts arrive. A send that is cancelled during this
    /// wait is not sent. The limit protects connections with heart-beats to RabbitMQ 3.10, which grants 400 messages at
    /// a time and resets a connection that sends more. Sends without a receipt do not count, and overtake waiting
    /// requests.
    public var maximumInFlight = 200

    /// The timeout of connecting to one host, from the name lookup to CONNECTED; 10 seconds by default.
    public var connectTimeout = Duration.seconds(10)
    /// The timeout of a receipt; 15 seconds by default.
    ///
    /// It starts with the call, so that it includes the wait for other requests (``maximumInFlight``).
    public var receiptTimeout = Duration.seconds(15)
    /// The timeout of a request with a reply, from the call to the reply; 30 seconds by default.
    public var replyTimeout = Duration.seconds(30)
    /// The timeout of closing; 5 seconds by default.
    public var closeTimeout = Duration.seconds(5)

    /// The maximum size of a received body, in bytes; 1 MiB by default.
    ///
    /// A longer message is skipped, and the event `dropped` tells of it. In ack mode `client-individual` it is acknowledged.
    /// A longer body of another frame ends the connection.
    public var maximumBodySize = 1 << 20
    /// The maximum size of a received header line, in bytes; 64 KiB by default.
    public var maximumHeaderLineSize = 65_536
    /// The maximum number of headers in a received frame; 100 by default.
    public var maximumHeaderCount = 100
    /// The maximum number of bytes that wait in memory for the transport; 64 MiB by default.
    ///
    /// Counts received messages with their topics, headers and properties until they are taken, and sent bytes that the
    /// server has not read. Near the limit, reading stops until messages are taken, also during closing.
    public var memoryLimit = 64 << 20

    /// The destination of replies; nil, the default, for a temporary queue with a random name.
    ///
    /// It is sent in `reply-to`, and is subscribed before the first request. RabbitMQ itself subscribes to destinations
    /// that begin with `/temp-queue/`. No other client may use the same queue, because it would take the replies.
    public var replyDestination: String?

    /// Whether a request makes a connection if there is none; true by default.
    public var connectsOnDemand = true
    /// Whether and when to connect again after a lost connection; by default without a limit.
    public var reconnection = ReconnectionPolicy()
    /// Sources of hints to pause, to resume and to retry at once; none by default.
    ///
    /// On Apple platforms, changes of the network are always a source, too.
    public var hints: [any ConnectionHintSource] = []
    /// What happens to sends while a lost connection is made again; by default those with a receipt wait.
    public var offlineQueue = OfflinePolicy()
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
    public var buffering = BufferPolicy(.fail)
    /// The TLS options, for URLs with `stomps` or `wss`.
    public var tls = TLSOptions()
    /// The proxy of all connections; nil, the default, for none.
    public var proxy: ProxyOptions?
    /// Further hosts of the service; none by default.
    public var failover = FailoverOptions()
    /// The WebSocket options, for URLs with `ws` or `wss`.
    public var webSocket = WebSocketOptions()
    /// Receives a description of every frame, without secrets.
    public var wireLogger: (any WireLogger)?
    /// The name of this client in its events and log records; nil, the default, for none.
    public var label: String?

    /// The defaults.
    public init() {}

    /// The limits of the protocol core.
    var limits: STOMPLimits {
        var limits = STOMPLimits()
        limits.maximumBodyByteCount = max(maximumBodySize, 0)
        limits.maximumLineByteCount = max(maximumHeaderLineSize, 1)
        limits.maximumHeaderCount = max(maximumHeaderCount, 1)
        return limits
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
