import STOMPWire
public import Waybill
import WireCore

/// How a ``STOMPTransport`` behaves; an entry's own options win over these.
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

    /// The versions to offer; all by default, and the server takes the best that it has.
    public var versions = Version.allCases
    /// The virtual host; nil takes the host that is connected to.
    ///
    /// RabbitMQ wants the name of a virtual host of its own, such as `/`.
    public var host: String?
    /// The user; nil takes it from the URL.
    public var login: String? {
        get { hiddenLogin.value }
        set { hiddenLogin.value = newValue }
    }
    private var hiddenLogin = Redacted<String?>(nil)
    /// The user's secret; nil takes it from the URL.
    ///
    /// Never logged.
    public var passcode: String? {
        get { hiddenPasscode.value }
        set { hiddenPasscode.value = newValue }
    }
    private var hiddenPasscode = Redacted<String?>(nil)
    /// Gives credentials before each connect, also the ones that follow a loss; nil for those above.
    public var credentials: CredentialSource?
    /// How often this side gives a sign of life when it has nothing to say; 10 seconds by default, zero
    /// for not at all.
    ///
    /// The server may want it less often. Where neither side beats over a WebSocket, that sends pings, as ``webSocket``
    /// says.
    public var outgoingHeartBeat = Duration.seconds(10)
    /// How often the server shall give one; 10 seconds by default, zero for not at all.
    ///
    /// After twice the time agreed without a byte, and a margin of a second at the most, the connection
    /// counts as lost.
    public var incomingHeartBeat = Duration.seconds(10)
    /// Whether receipts are asked for and awaited; true by default.
    ///
    /// Without them a request is done when it has been handed to the link, and a refusal shows only as the
    /// end of the connection. DISCONNECT asks for one in any case.
    public var asksForReceipts = true

    /// How long nothing at all may come from the server before the connection counts as lost; nil, the default, for
    /// any time.
    ///
    /// For servers that do not beat; of others ``incomingHeartBeat`` asks the same. Time in which a slow consumer holds
    /// the server back does not count.
    public var readTimeout: Duration?

    /// How many requests may wait for their receipts at a time; 200 by default.
    ///
    /// Further ones wait in the order of their calls until receipts come; a send that is cancelled while it waits is not
    /// sent. RabbitMQ 3.10 resets a connection with heart-beats that sends a few hundred messages at once: it grants 400
    /// at a time. Sends without a receipt do not count, and overtake those that wait.
    public var maximumInFlight = 200

    /// How long connecting to a host may take, from the name to CONNECTED; 10 seconds by default.
    public var connectTimeout = Duration.seconds(10)
    /// How long a receipt may take; 15 seconds by default.
    ///
    /// Counted from the call: the time that a request waits for others (``maximumInFlight``) is part of it.
    public var receiptTimeout = Duration.seconds(15)
    /// How long a request that returns its answer may take in all; 30 seconds by default.
    public var replyTimeout = Duration.seconds(30)
    /// How long closing may take; 5 seconds by default.
    public var closeTimeout = Duration.seconds(5)

    /// The longest body to accept, in bytes; 1 MiB by default.
    ///
    /// Longer ones end the connection.
    public var maximumBodySize = 1 << 20
    /// The longest header line to accept, in bytes; 64 KiB by default.
    public var maximumHeaderLineSize = 65_536
    /// The most headers of a frame to accept; 100 by default.
    public var maximumHeaderCount = 100
    /// How many bytes may wait in memory for the transport; 64 MiB by default.
    ///
    /// Counts messages with their topics, headers and properties until they are taken, and what the server does not
    /// read. Near the limit reading stops until messages are taken, also while the connection is being closed.
    public var memoryLimit = 64 << 20

    /// Where answers to requests are sent; nil, the default, for a temporary queue with a name made up.
    ///
    /// Goes into `reply-to`, and is subscribed to before the first request; but RabbitMQ subscribes by itself
    /// to what begins with `/temp-queue/`. It must be this client's alone: another one that listens to the same
    /// queue would take its answers.
    public var replyDestination: String?

    /// Whether a request connects first when there is no connection; true by default.
    public var connectsOnDemand = true
    /// Whether and when to connect again after the connection was lost; without end by default.
    public var reconnection = ReconnectionPolicy()
    /// What tells when to pause, to go on and to try again; nothing by default, and the network on Apple platforms in
    /// any case.
    public var hints: [any ConnectionHintSource] = []
    /// What becomes of sends until the connection is back: they wait, unless nobody acknowledges them.
    public var offlineQueue = OfflineQueuePolicy()
    /// What happens when messages come faster than they are taken, unless the entry says otherwise: the
    /// subscription ends with `slowConsumer`.
    ///
    /// In the ack modes `client` and `client-individual` nothing is lost by that: the server delivers
    /// again what was not acknowledged. Nothing that awaits acknowledgement is ever dropped.
    public var buffering = BufferPolicy(.fail)
    /// How the connection is secured, where the URL says `stomps` or `wss`.
    public var tls = TLSOptions()
    /// The proxy through which connections are made; nil, the default, for none.
    public var proxy: ProxyOptions?
    /// Which other hosts may be connected to; none by default.
    public var failover = FailoverOptions()
    /// How a WebSocket is asked for, where the URL says `ws` or `wss`.
    public var webSocket = WebSocketOptions()
    /// Is shown every frame, without secrets.
    public var wireLogger: (any WireLogger)?

    /// The defaults.
    public init() {}

    /// What the core below is told.
    var limits: STOMPLimits {
        var limits = STOMPLimits()
        limits.maximumBodyByteCount = max(maximumBodySize, 0)
        limits.maximumLineByteCount = max(maximumHeaderLineSize, 1)
        limits.maximumHeaderCount = max(maximumHeaderCount, 1)
        return limits
    }

    /// The versions as the core below knows them.
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
