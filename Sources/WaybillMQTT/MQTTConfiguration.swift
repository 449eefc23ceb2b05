public import Waybill
import WireCore

/// How an ``MQTTTransport`` behaves; an entry's own options win over these.
public struct MQTTConfiguration: Sendable {
    /// A version of the protocol.
    public enum Version: Sendable {
        /// MQTT 3.1.1 (OASIS, 2014).
        case v3_1_1
        /// MQTT 5.0 (OASIS, 2019).
        case v5
    }

    // Rarely set: out of line, since each transport keeps its configuration.
    private struct Rare: Sendable {
        static let unset = Rare()

        var credentials: CredentialSource?
        var will: Will?
        var reconnection = ReconnectionPolicy()
        var hints: [any ConnectionHintSource] = []
        var offlineQueue = OfflineQueuePolicy()
        var lateDelivery: LateDeliveryPolicy?
        var store: (any SessionStore)?
        var tls = TLSOptions()
        var proxy: ProxyOptions?
        var failover = FailoverOptions()
        var webSocket = WebSocketOptions()
        var wireLogger: (any WireLogger)?
    }

    private final class RareBox: Sendable {
        let values: Rare

        init(_ values: Rare) {
            self.values = values
        }
    }

    private var box: RareBox?

    private var rare: Rare {
        get { box?.values ?? .unset }
        set { box = RareBox(newValue) }
    }

    /// The version to speak; 5 by default.
    public var version = Version.v5
    /// Who the client is; nil makes up a name of 22 letters and digits for each transport.
    public var clientIdentifier: String?
    /// The user's name; nil takes it from the URL.
    public var userName: String? {
        get { hiddenUserName.value }
        set { hiddenUserName.value = newValue }
    }
    private var hiddenUserName = Redacted<String?>(nil)
    /// The password; nil takes it from the URL.
    ///
    /// Never logged.
    public var password: String? {
        get { hiddenPassword.value }
        set { hiddenPassword.value = newValue }
    }
    private var hiddenPassword = Redacted<String?>(nil)
    /// Gives credentials before each connect, also the ones that follow a loss; nil for those above.
    public var credentials: CredentialSource? {
        get { box?.values.credentials }
        set { rare.credentials = newValue }
    }

    /// What the server publishes should the connection be lost.
    public var will: Will? {
        get { box?.values.will }
        set { rare.will = newValue }
    }

    /// Whether an earlier session is discarded; true by default.
    public var cleanStart = true
    /// How long the server keeps the session after the connection (MQTT 5); nil for not at all.
    public var sessionExpiry: Duration?
    /// How long the connection may be silent, in whole seconds up to 65,535; 60 by default, zero
    /// turns it off.
    ///
    /// A server's own value wins (MQTT 5). Where it is off over a WebSocket, that sends pings, as ``webSocket`` says.
    public var keepAlive = Duration.seconds(60)

    /// How long nothing at all may come from the server before the connection counts as lost; nil, the default, for
    /// any time.
    ///
    /// A server that has nothing to say is taken for one that is gone, unless this is longer than ``keepAlive`` by a
    /// round trip: it answers a ping in time then. Time in which a slow consumer holds the server back does not count.
    public var readTimeout: Duration?

    /// How long connecting to a host may take, from the name to the CONNACK; 10 seconds by default.
    public var connectTimeout = Duration.seconds(10)
    /// How long any other acknowledgement may take; 30 seconds by default.
    public var acknowledgementTimeout = Duration.seconds(30)
    /// How long a request that returns its answer may take in all; 30 seconds by default.
    public var replyTimeout = Duration.seconds(30)
    /// How long closing may take; 5 seconds by default.
    public var closeTimeout = Duration.seconds(5)

    /// How long `disconnect` waits for messages of QoS 1 and 2 to be acknowledged before it closes; 5 seconds by default.
    public var drainTimeout = Duration.seconds(5)

    /// How many messages of QoS 1 and 2 may wait for the server at once; 20 by default, 1 to
    /// 65,535.
    ///
    /// A server's Receive Maximum lowers it.
    public var inflightWindow = 20
    /// How many messages of QoS 1 and 2 the server may send before the first is taken; 1,024 by
    /// default.
    ///
    /// Only MQTT 5 servers are told. A server that sends more all the same (Mosquitto 2.0.11 does, to an app that lags)
    /// keeps its connection: the client takes what comes, up to 65,535 messages that wait.
    public var receiveMaximum: UInt16 = 1_024
    /// The longest packet to accept, in bytes; 1 MiB by default.
    ///
    /// Longer ones end the connection.
    public var maximumPacketSize = 1 << 20
    /// How many bytes may wait in memory for the transport; 64 MiB by default.
    ///
    /// Counts messages with their topics, headers and properties until they are taken, and what the server does not
    /// read. Near the limit reading stops until messages are taken, also while the connection is being closed.
    public var memoryLimit = 64 << 20

    /// What the topic begins with to which answers to requests are sent (MQTT 5); `waybill/reply` by default.
    ///
    /// The client identifier follows and, unless the server keeps the session under one of your own, something
    /// made up. Nobody else may subscribe to it where answers are private.
    public var replyTopicPrefix = "waybill/reply"
    /// Whether the server is asked what that topic should begin with instead (MQTT 5, 4.10.1).
    ///
    /// False by default; a server need not answer.
    public var asksForResponseInformation = false

    /// Whether a request connects first when there is no connection; true by default.
    public var connectsOnDemand = true
    /// Whether and when to connect again after the connection was lost; without end by default.
    public var reconnection: ReconnectionPolicy {
        get { rare.reconnection }
        set { rare.reconnection = newValue }
    }

    /// What tells when to pause, to go on and to try again; nothing by default, and the network on Apple platforms in
    /// any case.
    public var hints: [any ConnectionHintSource] {
        get { rare.hints }
        set { rare.hints = newValue }
    }

    /// What becomes of sends until the connection is back: they wait, unless nobody acknowledges them.
    public var offlineQueue: OfflineQueuePolicy {
        get { rare.offlineQueue }
        set { rare.offlineQueue = newValue }
    }

    /// What happens when messages come faster than they are taken, unless the entry says otherwise:
    /// the oldest go.
    ///
    /// Messages of QoS 1 and 2 are held back by the protocol and never dropped.
    public var buffering = BufferPolicy(.dropOldest)
    /// How long messages are kept that nobody listens for yet; nil, the default, for not at all.
    public var lateDelivery: LateDeliveryPolicy? {
        get { box?.values.lateDelivery }
        set { rare.lateDelivery = newValue }
    }

    /// Keeps sends of QoS 1 and 2 until they are acknowledged, beyond the end of the process; nil, the default, for
    /// not at all.
    public var store: (any SessionStore)? {
        get { box?.values.store }
        set { rare.store = newValue }
    }

    /// How the connection is secured, where the URL says `mqtts` or `wss`.
    public var tls: TLSOptions {
        get { rare.tls }
        set { rare.tls = newValue }
    }

    /// The proxy through which connections are made; nil, the default, for none.
    public var proxy: ProxyOptions? {
        get { box?.values.proxy }
        set { rare.proxy = newValue }
    }

    /// Which other hosts may be connected to; none by default.
    public var failover: FailoverOptions {
        get { rare.failover }
        set { rare.failover = newValue }
    }

    /// How a WebSocket is asked for, where the URL says `ws` or `wss`.
    public var webSocket: WebSocketOptions {
        get { rare.webSocket }
        set { rare.webSocket = newValue }
    }

    /// Is shown every packet, without secrets.
    public var wireLogger: (any WireLogger)? {
        get { box?.values.wireLogger }
        set { rare.wireLogger = newValue }
    }

    /// The defaults.
    public init() {}

    /// The defaults with another version.
    public init(version: Version) {
        self.version = version
    }

    /// Whether the server keeps the session after the connection.
    var keepsSession: Bool {
        switch version {
        case .v5: (sessionExpiry ?? .zero) >= .seconds(1)
        case .v3_1_1: !cleanStart
        }
    }
}
