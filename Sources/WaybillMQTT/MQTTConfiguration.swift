public import Waybill
import WireCore

/// The options of an ``MQTTTransport``.
///
/// ```swift
/// let configuration = MQTTConfiguration(
///     session: .init(cleanStart: false, expiry: .seconds(86_400)),
///     timeouts: .init(connect: .seconds(5))
/// )
/// ```
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
        var store: (any SessionStore)?
        var lateDelivery = LateDeliveryPolicy()
        var adaptiveKeepAlive: AdaptiveKeepAlive?
        var reconnection = ReconnectionPolicy()
        var offline = OfflinePolicy()
        var redirects = MQTTRedirectPolicy()
        var hints: [any ConnectionHintSource] = []
        var tls = TLSOptions()
        var proxy: ProxyOptions?
        var failover = FailoverOptions()
        var webSocket = WebSocketOptions()
        var wireLogger: (any WireLogger)?
        var label: String?
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
    public var version: Version
    // Here, where it takes no room.
    private var cleanStart: Bool
    /// The client identifier; nil makes a random one of 22 letters and digits for each transport.
    public var clientIdentifier: String?
    /// The user name; nil uses that of the URL.
    public var userName: String? {
        get { hiddenUserName.value }
        set { hiddenUserName.value = newValue }
    }
    private var hiddenUserName: Redacted<String?>
    /// The password; nil uses that of the URL.
    ///
    /// Never logged.
    public var password: String? {
        get { hiddenPassword.value }
        set { hiddenPassword.value = newValue }
    }
    private var hiddenPassword: Redacted<String?>
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

    /// The session: what outlives a connection, at the server and here.
    public var session: Session {
        get {
            Session(
                cleanStart: cleanStart,
                expiry: sessionExpiry,
                store: box?.values.store,
                lateDelivery: box?.values.lateDelivery ?? Rare.unset.lateDelivery
            )
        }
        set {
            cleanStart = newValue.cleanStart
            sessionExpiry = newValue.expiry
            // Without a rare option no box is made.
            let isPlain = newValue.store == nil && newValue.lateDelivery == Rare.unset.lateDelivery
            guard box != nil || !isPlain else { return }
            var values = rare
            values.store = newValue.store
            values.lateDelivery = newValue.lateDelivery
            rare = values
        }
    }

    /// The pings of the client.
    public var keepAlive: KeepAlive {
        get { KeepAlive(interval: keepAliveInterval, adaptive: box?.values.adaptiveKeepAlive) }
        set {
            keepAliveInterval = newValue.interval
            guard box?.values.adaptiveKeepAlive != nil || newValue.adaptive != nil else { return }
            rare.adaptiveKeepAlive = newValue.adaptive
        }
    }
    private var keepAliveInterval: Duration
    private var sessionExpiry: Duration?

    /// How long the client waits.
    public var timeouts: Timeouts
    /// How much the client sends, accepts and keeps at a time.
    public var limits: Limits
    /// The short forms of topics (MQTT 5, 3.3.2.3.4).
    public var aliases: TopicAliases
    /// The replies to requests (MQTT 5, 4.10).
    public var replies: Replies
    /// Whether the server may add reason strings and user properties to every packet that can have them (MQTT 5,
    /// 3.1.2.11.7: Request Problem Information).
    ///
    /// Nil, the default, leaves the property out of CONNECT, which means yes. With false, only PUBLISH, CONNACK and
    /// DISCONNECT may have them. A server that sends them elsewhere then loses its connection.
    public var requestsProblemInformation: Bool?

    /// Whether a request makes a connection if there is none; true by default.
    public var connectsOnDemand: Bool
    /// Whether and when to connect again after a lost connection; by default without a limit.
    public var reconnection: ReconnectionPolicy {
        get { rare.reconnection }
        set { rare.reconnection = newValue }
    }

    /// What happens to sends while a lost connection is made again; by default those of QoS 1 and 2 wait.
    public var offline: OfflinePolicy {
        get { rare.offline }
        set { rare.offline = newValue }
    }

    /// What happens when messages arrive faster than they are taken; by default the oldest are dropped.
    ///
    /// An entry may override it. Messages of QoS 1 and 2 are never dropped, because the protocol limits their number.
    public var buffering: BufferPolicy
    /// Whether the client goes where a server sends it (MQTT 5, 4.11); over TLS by default.
    public var redirects: MQTTRedirectPolicy {
        get { rare.redirects }
        set { rare.redirects = newValue }
    }

    /// Sources of hints to pause, to resume and to retry at once; none by default.
    ///
    /// On Apple platforms, changes of the network are always a source, too.
    public var hints: [any ConnectionHintSource] {
        get { rare.hints }
        set { rare.hints = newValue }
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

    private static let standard: Self = {
        var standard = Self(version: .v5)
        standard.box = nil
        return standard
    }()

    /// Makes the default configuration.
    public init() {
        self = .standard
    }

    /// Makes a configuration; each parameter has the meaning of the property of the same name.
    public init(
        version: Version = .v5,
        clientIdentifier: String? = nil,
        userName: String? = nil,
        password: String? = nil,
        credentials: CredentialSource? = nil,
        authenticator: (any MQTTAuthenticator)? = nil,
        will: Will? = nil,
        session: Session = Session(),
        keepAlive: KeepAlive = KeepAlive(),
        timeouts: Timeouts = Timeouts(),
        limits: Limits = Limits(),
        aliases: TopicAliases = TopicAliases(),
        replies: Replies = Replies(),
        requestsProblemInformation: Bool? = nil,
        connectsOnDemand: Bool = true,
        reconnection: ReconnectionPolicy = ReconnectionPolicy(),
        offline: OfflinePolicy = OfflinePolicy(),
        buffering: BufferPolicy = BufferPolicy(.dropOldest),
        redirects: MQTTRedirectPolicy = MQTTRedirectPolicy(),
        hints: [any ConnectionHintSource] = [],
        tls: TLSOptions = TLSOptions(),
        proxy: ProxyOptions? = nil,
        failover: FailoverOptions = FailoverOptions(),
        webSocket: WebSocketOptions = WebSocketOptions(),
        wireLogger: (any WireLogger)? = nil,
        label: String? = nil
    ) {
        box = RareBox(
            Rare(
                credentials: credentials,
                authenticator: authenticator,
                will: will,
                store: session.store,
                lateDelivery: session.lateDelivery,
                adaptiveKeepAlive: keepAlive.adaptive,
                reconnection: reconnection,
                offline: offline,
                redirects: redirects,
                hints: hints,
                tls: tls,
                proxy: proxy,
                failover: failover,
                webSocket: webSocket,
                wireLogger: wireLogger,
                label: label
            )
        )
        self.version = version
        self.clientIdentifier = clientIdentifier
        hiddenUserName = Redacted(userName)
        hiddenPassword = Redacted(password)
        cleanStart = session.cleanStart
        sessionExpiry = session.expiry
        keepAliveInterval = keepAlive.interval
        self.timeouts = timeouts
        self.limits = limits
        self.aliases = aliases
        self.replies = replies
        self.requestsProblemInformation = requestsProblemInformation
        self.connectsOnDemand = connectsOnDemand
        self.buffering = buffering
    }

    /// Whether the server keeps the session after the connection.
    var keepsSession: Bool {
        switch version {
        case .v5: (sessionExpiry ?? .zero) >= .seconds(1)
        case .v3_1_1: !cleanStart
        }
    }
}
