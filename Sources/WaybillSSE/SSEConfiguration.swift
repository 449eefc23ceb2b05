public import Waybill

/// How an ``SSETransport`` behaves; an entry's own options win over these.
public struct SSEConfiguration: Sendable {
    /// Further fields of every request, such as an `Authorization`; an entry's win over them.
    ///
    /// Values are never logged. `Authorization`, `Cookie` and `Proxy-Authorization` do not follow a redirect
    /// to another origin.
    public var headers: Headers = [:]
    /// The user for Basic authentication (RFC 7617); nil takes it from the URL.
    public var userName: String?
    /// The password; nil takes it from the URL.
    ///
    /// Never logged.
    public var password: String?

    /// Whether a stream that has ended or been lost is asked for again; true by default.
    public var reconnects = true
    /// How long to wait before asking again, until a stream sets its own (`retry`); 3 seconds by default.
    ///
    /// When attempts fail one after another the wait doubles, with jitter, up to
    /// ``maximumReconnectionTime``.
    public var reconnectionTime = Duration.seconds(3)
    /// The longest wait between two attempts, unless the server asks for more; 60 seconds by default.
    public var maximumReconnectionTime = Duration.seconds(60)

    /// How long connecting to a host may take, from the name to the head of the answer; 10 seconds by default.
    public var connectTimeout = Duration.seconds(10)
    /// How long the answer to a `send` may take; 30 seconds by default.
    public var responseTimeout = Duration.seconds(30)
    /// How long a stream may be silent before it counts as lost; nil, the default, for any time.
    public var idleTimeout: Duration?
    /// How many redirects are followed for one request; 5 by default.
    public var maximumRedirects = 5
    /// Whether responses may come compressed; true by default, where the system has zlib.
    public var acceptsCompression = true

    /// The longest line of a stream, in bytes; 64 KiB by default.
    ///
    /// A longer one ends the subscription.
    public var maximumLineSize = 65_536
    /// The most data of an event, and the longest body of a response, in bytes; 1 MiB by default.
    public var maximumEventSize = 1 << 20

    /// How connections are secured, where the URL or a redirect says `https`.
    public var tls = TLSOptions()
    /// The proxy through which connections are made; nil, the default, for none.
    public var proxy: ProxyOptions?
    /// Which other hosts may be connected to; none by default.
    public var failover = FailoverOptions()

    /// What happens when events come faster than they are taken, unless the entry says otherwise: the server
    /// is held back, as every stream has a connection of its own.
    public var buffering = BufferPolicy(.holdBack)
    /// Is shown every request, response and event, without secrets.
    public var wireLogger: (any WireLogger)?

    /// The defaults.
    public init() {}
}
