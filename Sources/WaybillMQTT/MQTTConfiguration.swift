public import Waybill
import WireCore

/// The options of an ``MQTTTransport``.
///
/// An entry's own options override them.
public struct MQTTConfiguration: Sendable {
    /// A version of the protocol.
    public enum Version: Sendable {
        /// MQTT 3.1.1 (OASIS, 2014).
        case v3_1_1
        /// MQTT 5.0 (OASIS, 2019).
        case v5
    }

    // Rarely set options, stored in a box so that the configuration that each transport keeps stays small.
    private struct Rare: Sendable {
        static let unset = Rare()

        var credentials: CredentialSource?
        var authenticator: (any MQTTAuthenticator)?
        var will: Will?
        var reconnection = ReconnectionPolicy()
        var hints: [any ConnectionHintSource] = []
        var offlineQueue = OfflinePolicy()
        var lateDelivery = LateDeliveryPolicy()
        var store: (any SessionStore)?
        var tls = TLSOptions()
        var proxy: ProxyOptions?
        var failover = FailoverOptions()
        var redirects = MQTTRedirectPolicy()
        var adaptiveKeepAlive: AdaptiveKeepAlive?
        var webSocket = WebSocketOptions()
        var wireLogger: (any WireLogger)?
        var label: String?
        var failsWithoutSubscribers = false
        var announcesMaximumPacketSize = true
        var asksForProblemInformation: Bool?
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

    /// The protocol version; 5 by default.
    public var version = Version.v5
    /// The client identifier; nil makes a random one of 22 letters and digits for each transport.
    public var clientIdentifier: String?
    /// The user name; nil uses that of the URL.
    public var userName: String? {
        get { hiddenUserName.value }
        set { hiddenUserName.value = newValue }
    }
    private var hiddenUserName = Redacted<String?>(nil)
    /// The password; nil uses that of the URL.
    ///
    /// Never logged.
    public var password: String? {
        get { hiddenPassword.value }
        set { hiddenPassword.value = newValue }
    }
    private var hiddenPassword = Redacted<String?>(nil)
    /// The source of credentials, asked before each connect and reconnect; nil uses the user name and the password
    /// above.
    public var credentials: CredentialSource? {
        get { box?.values.credentials }
        set { rare.credentials = newValue }
    }

    /// The authentication method (MQTT 5, 4.12), such as ``SCRAMAuthenticator``; nil, the default, for none.
    ///
    /// With MQTT 3.1.1, connecting fails with `unsupported`.
    public var authenticator: (any MQTTAuthenticator)? {
        get { box?.values.authenticator }
        set { rare.authenticator = newValue }
    }

    /// The message that the server publishes if the connection is lost.
    public var will: Will? {
        get { box?.values.will }
        set { rare.will = newValue }
    }

    /// Whether the server discards an earlier session; true by default.
    public var cleanStart = true
    /// How long the server keeps the session after the connection (MQTT 5); nil ends the session with the connection.
    public var sessionExpiry: Duration?
    /// The longest time without a packet of the client, which then sends PINGREQ; whole seconds up to 65,535.
    ///
    /// 60 seconds by default; zero turns it off. A server's own value overrides it (MQTT 5). If it is off over a
    /// WebSocket, the WebSocket sends pings instead, as ``webSocket`` states.
    public var keepAlive = Duration.seconds(60)
    /// Whether the interval of pings is learned, within ``keepAlive``; nil, the default, pings as that states.
    public var adaptiveKeepAlive: AdaptiveKeepAlive? {
        get { box?.values.adaptiveKeepAlive }
        set { rare.adaptiveKeepAlive = newValue }
    }

    /// The longest silence of the server before the connection counts as lost; nil, the default, for no limit.
    ///
    /// Set it longer than ``keepAlive`` plus a round trip, so that an idle server is heard through its answers to
    /// pings. Time in which a slow consumer stops the reading does not count.
    public var readTimeout: Duration?

    /// The timeout of connecting to one host, from the name lookup to CONNACK; 10 seconds by default.
    public var connectTimeout = Duration.seconds(10)
    /// The timeout of any other acknowledgement, and before it of the ``store``'s answer; 30 seconds by default.
    public var acknowledgementTimeout = Duration.seconds(30)
    /// The timeout of a request with a reply, from the call to the reply; 30 seconds by default.
    public var replyTimeout = Duration.seconds(30)
    /// The timeout of closing, and of emptying the ``store`` in `destroy()`; 5 seconds by default.
    public var closeTimeout = Duration.seconds(5)

    /// How long `disconnect` waits for the acknowledgements of QoS 1 and 2 before it closes; 5 seconds by default.
    public var drainTimeout = Duration.seconds(5)

    /// The maximum number of unacknowledged messages of QoS 1 and 2 to the server; 20 by default, 1 to 65,535.
    ///
    /// A server's Receive Maximum lowers it.
    public var inflightWindow = 20
    /// The maximum number of filters in a SUBSCRIBE or UNSUBSCRIBE, from 1; nil by default.
    ///
    /// With nil, each call is a packet of its own, with up to 100 filters, and a reconnection sends the packets of the
    /// calls again, at most eight of them unconfirmed. With a number, a reconnection also combines calls: with hundreds of
    /// subscriptions that saves many round trips. Some servers close the connection on more filters than their quota
    /// (AWS IoT Core: 8).
    public var filtersPerPacket: Int?
    /// The maximum number of unacknowledged messages of QoS 1 and 2 from the server; 1,024 by default.
    ///
    /// Only MQTT 5 servers get the value. Nil leaves it out of CONNECT, which means 65,535. Some servers send more to a
    /// slow app (Mosquitto 2.0.11 does). The client does not close such a connection: it accepts up to 65,535 waiting
    /// messages.
    public var receiveMaximum: UInt16? = 1_024
    /// The number of topics that the server may replace by aliases (MQTT 5); 16 by default, 0 for none, which leaves
    /// it out of CONNECT.
    ///
    /// The client keeps the topics of a connection's aliases, at most 1 MiB of them. Sixteen topics never exceed that. A
    /// server that exceeds it loses its connection.
    public var topicAliasMaximum: UInt16 = 16
    /// Whether sends replace topics by aliases, as far as the server allows it (MQTT 5); true by default.
    ///
    /// An alias takes 3 bytes. The topics that save most get the aliases, at most 1,024 of them.
    public var usesTopicAliases = true
    /// The maximum size of a received packet, in bytes; 1 MiB by default.
    ///
    /// A longer message is skipped and acknowledged, in MQTT 5 with the reason Quota exceeded, and the event `dropped`
    /// tells of it. Any other longer packet ends the connection. MQTT 5 servers are told the size, unless
    /// ``announcesMaximumPacketSize`` is false, and do not send a longer packet.
    public var maximumPacketSize = 1 << 20
    /// Whether CONNECT has the property Maximum Packet Size (MQTT 5, 3.1.2.11.4); true by default.
    ///
    /// False leaves it out. ``maximumPacketSize`` still holds.
    public var announcesMaximumPacketSize: Bool {
        get { box?.values.announcesMaximumPacketSize ?? true }
        set { rare.announcesMaximumPacketSize = newValue }
    }
    /// The maximum number of bytes that wait in memory for the transport; 64 MiB by default.
    ///
    /// Counts received messages with their topics, headers and properties until they are taken, and sent bytes that the
    /// server has not read. Near the limit, reading stops until messages are taken, also during closing.
    public var memoryLimit = 64 << 20

    /// The prefix of the response topic, to which replies are sent (MQTT 5); `waybill/reply` by default.
    ///
    /// The client identifier follows. A random part follows, too, unless the server keeps the session and
    /// ``clientIdentifier`` is set. If replies are private, the server must not let other clients subscribe to it.
    public var replyTopicPrefix = "waybill/reply"
    /// Whether the client asks the server for the prefix of the response topic (MQTT 5, 4.10.1).
    ///
    /// False by default, which leaves the property out of CONNECT. A server may ignore the question.
    public var asksForResponseInformation = false
    /// Whether a request of QoS 1 fails at once with `rejected` when its PUBACK says that the topic has no subscriber
    /// (MQTT 5, 3.4.2.1: No matching subscribers).
    ///
    /// False by default: a subscriber whose session the server keeps, or one of another server of a cluster, may not
    /// count there.
    public var failsWithoutSubscribers: Bool {
        get { rare.failsWithoutSubscribers }
        set { rare.failsWithoutSubscribers = newValue }
    }
    /// Whether the server may add reason strings and user properties to every packet that can have them (MQTT 5,
    /// 3.1.2.11.7: Request Problem Information).
    ///
    /// Nil, the default, leaves the property out of CONNECT, which means yes. With false, only PUBLISH, CONNACK and
    /// DISCONNECT may have them. A server that sends them elsewhere then loses its connection.
    public var asksForProblemInformation: Bool? {
        get { box?.values.asksForProblemInformation }
        set { rare.asksForProblemInformation = newValue }
    }

    /// Whether a request makes a connection if there is none; true by default.
    public var connectsOnDemand = true
    /// Whether and when to connect again after a lost connection; by default without a limit.
    public var reconnection: ReconnectionPolicy {
        get { rare.reconnection }
        set { rare.reconnection = newValue }
    }

    /// Sources of hints to pause, to resume and to retry at once; none by default.
    ///
    /// On Apple platforms, changes of the network are always a source, too.
    public var hints: [any ConnectionHintSource] {
        get { rare.hints }
        set { rare.hints = newValue }
    }

    /// What happens to sends while a lost connection is made again; by default those of QoS 1 and 2 wait.
    public var offlineQueue: OfflinePolicy {
        get { rare.offlineQueue }
        set { rare.offlineQueue = newValue }
    }

    /// What happens when messages arrive faster than they are taken; by default the oldest are dropped.
    ///
    /// An entry may override it. Messages of QoS 1 and 2 are never dropped, because the protocol limits their number.
    public var buffering = BufferPolicy(.dropOldest)
    /// How long messages without a listener are kept for a later one, where the server keeps the session.
    ///
    /// ``Waybill/LateDeliveryPolicy/off`` drops them.
    public var lateDelivery: LateDeliveryPolicy {
        get { rare.lateDelivery }
        set { rare.lateDelivery = newValue }
    }

    /// The store that keeps sends of QoS 1 and 2 until they are acknowledged, beyond the end of the process.
    ///
    /// Nil, the default, stores nothing. A store that hangs makes no send hang: see ``SessionStore/add(_:)``. The messages
    /// whose sends it has let time out count until it answers. Above the limits of ``offlineQueue``, and not less than
    /// 8,192 messages and 8 MiB, further sends fail with `limitExceeded`.
    public var store: (any SessionStore)? {
        get { box?.values.store }
        set { rare.store = newValue }
    }

    /// The TLS options, for URLs with `mqtts` or `wss`.
    public var tls: TLSOptions {
        get { rare.tls }
        set { rare.tls = newValue }
    }

    /// The proxy of all connections; nil, the default, for none.
    public var proxy: ProxyOptions? {
        get { box?.values.proxy }
        set { rare.proxy = newValue }
    }

    /// Further hosts of the service; none by default.
    public var failover: FailoverOptions {
        get { rare.failover }
        set { rare.failover = newValue }
    }

    /// Whether the client goes where a server sends it (MQTT 5, 4.11); over TLS by default.
    public var redirects: MQTTRedirectPolicy {
        get { rare.redirects }
        set { rare.redirects = newValue }
    }

    /// The WebSocket options, for URLs with `ws` or `wss`.
    public var webSocket: WebSocketOptions {
        get { rare.webSocket }
        set { rare.webSocket = newValue }
    }

    /// Receives a description of every packet, without secrets.
    public var wireLogger: (any WireLogger)? {
        get { box?.values.wireLogger }
        set { rare.wireLogger = newValue }
    }

    /// The name of this client in its events and log records; nil, the default, for none.
    public var label: String? {
        get { box?.values.label }
        set { rare.label = newValue }
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
