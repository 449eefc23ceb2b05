public import Waybill
import WireCore

/// How an ``SSETransport`` behaves; an entry's own options win over these.
public struct SSEConfiguration: Sendable {
    /// Further fields of every request, such as an `Authorization`; an entry's win over them.
    ///
    /// Values are never logged. `Authorization`, `Cookie` and `Proxy-Authorization` do not follow a redirect
    /// to another origin.
    public var headers: Headers
    /// The user for Basic authentication (RFC 7617); nil takes it from the URL.
    public var userName: String? {
        get { hiddenUserName.value }
        set { hiddenUserName.value = newValue }
    }
    private var hiddenUserName: Redacted<String?>
    /// The password; nil takes it from the URL.
    ///
    /// Never logged.
    public var password: String? {
        get { hiddenPassword.value }
        set { hiddenPassword.value = newValue }
    }
    private var hiddenPassword: Redacted<String?>

    /// Gives credentials before each attempt to open a stream; nil for those above.
    public var credentials: CredentialSource?
    /// Whether responses may come compressed; true by default, where the system has zlib.
    ///
    /// With false a compressed answer is refused with `protocolViolation`, not decoded.
    public var acceptsCompression: Bool
    /// How long the client waits.
    public var timeouts: Timeouts
    /// How much the client sends, accepts and keeps at a time.
    public var limits: Limits
    /// Whether and when a stream that has ended or been lost is asked for again; without end by default.
    ///
    /// The reconnection time that a server sets (`retry`) is the least wait from then on. A stream that has brought an
    /// event counts as healthy, however soon it ended; after one that has brought none the wait is at least 100
    /// milliseconds.
    public var reconnection: ReconnectionPolicy
    /// Where POSTs with an idempotency key are kept until the server has answered, and how far each stream has come,
    /// also beyond the end of the process; nil, the default, for nowhere.
    ///
    /// A subscription begins after the last event that the app has taken from a stream of its topic, unless it states
    /// ``Waybill/SubscribeOption/lastEventID(_:)`` or the header `Last-Event-ID`. While a topic has several streams,
    /// only the first of them does, and notes its events.
    ///
    /// The key is the header `Idempotency-Key` of the entry itself: with that of an interceptor the next process would
    /// send another key. What a process has left that ended before an answer is sent by the next transport with the
    /// store, from its first request or stream on, with the interceptors of that request's provider. A send that fails
    /// is not sent again. Two transports must not use one store at the same time. An ``EventSource`` ignores it.
    public var store: (any SessionStore)?
    /// What happens when events come faster than they are taken, unless the entry says otherwise: the server
    /// is held back, as every stream has a connection of its own.
    public var buffering: BufferPolicy
    /// What tells when to pause, to go on and to try again; nothing by default, and the network on Apple platforms in
    /// any case.
    public var hints: [any ConnectionHintSource]
    /// How connections are secured, where the URL or a redirect says `https`.
    public var tls: TLSOptions
    /// The proxy through which connections are made; nil, the default, for none.
    public var proxy: ProxyOptions?
    /// Which other hosts may be connected to; none by default.
    public var failover: FailoverOptions
    /// Is shown every request, response and event, without secrets.
    public var wireLogger: (any WireLogger)?
    /// The name of this client in its events and log records; nil, the default, for none.
    public var label: String?

    /// Makes a configuration; each parameter has the meaning of the property of the same name.
    public init(
        headers: Headers = [:],
        userName: String? = nil,
        password: String? = nil,
        credentials: CredentialSource? = nil,
        acceptsCompression: Bool = true,
        timeouts: Timeouts = Timeouts(),
        limits: Limits = Limits(),
        reconnection: ReconnectionPolicy = ReconnectionPolicy(),
        store: (any SessionStore)? = nil,
        buffering: BufferPolicy = BufferPolicy(.holdBack),
        hints: [any ConnectionHintSource] = [],
        tls: TLSOptions = TLSOptions(),
        proxy: ProxyOptions? = nil,
        failover: FailoverOptions = FailoverOptions(),
        wireLogger: (any WireLogger)? = nil,
        label: String? = nil
    ) {
        self.headers = headers
        hiddenUserName = Redacted(userName)
        hiddenPassword = Redacted(password)
        self.credentials = credentials
        self.acceptsCompression = acceptsCompression
        self.timeouts = timeouts
        self.limits = limits
        self.reconnection = reconnection
        self.store = store
        self.buffering = buffering
        self.hints = hints
        self.tls = tls
        self.proxy = proxy
        self.failover = failover
        self.wireLogger = wireLogger
        self.label = label
    }

    /// Shows something to the wire logger, if there is one.
    func log(
        _ direction: WireRecord.Direction,
        name: @autoclosure () -> String,
        topic: @autoclosure () -> String,
        _ text: @autoclosure () -> String,
        _ body: @autoclosure () -> Payload = Payload()
    ) {
        guard let wireLogger else { return }
        let (body, topic) = (body(), topic())
        wireLogger.logFrame(
            direction,
            text(),
            name: name(),
            topic: topic.isEmpty ? nil : topic.withoutQuery,
            byteCount: body.count,
            body: body,
            of: label
        )
    }

    /// What a line may have: the data of an event, and the name of the field before it.
    var lineLimit: Int {
        let field = "data: ".utf8.count
        return limits.lineSize ?? min(max(limits.eventSize, 0), .max - field) + field
    }
}
