public import Waybill
import WireCore

/// How an ``SSETransport`` behaves; an entry's own options win over these.
public struct SSEConfiguration: Sendable {
    /// Further fields of every request, such as an `Authorization`; an entry's win over them.
    ///
    /// Values are never logged. `Authorization`, `Cookie` and `Proxy-Authorization` do not follow a redirect
    /// to another origin.
    public var headers: Headers = [:]
    /// The user for Basic authentication (RFC 7617); nil takes it from the URL.
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

    /// Gives credentials before each attempt to open a stream; nil for those above.
    public var credentials: CredentialSource?
    /// Whether and when a stream that has ended or been lost is asked for again; without end by default.
    ///
    /// The reconnection time that a server sets (`retry`) is the least wait from then on. A stream that has brought an
    /// event counts as healthy, however soon it ended; after one that has brought none the wait is at least 100
    /// milliseconds.
    public var reconnection = ReconnectionPolicy()
    /// Where POSTs with an idempotency key are kept until the server has answered, and how far each stream has come, also
    /// beyond the end of the process; nil, the default, for nowhere.
    ///
    /// A subscription begins after the last event that the app has taken from a stream of its topic, unless it states
    /// ``Waybill/SubscribeOption/lastEventID(_:)`` or the header `Last-Event-ID`. While a topic has several streams, only
    /// the first of them does, and notes its events.
    ///
    /// The key is the header `Idempotency-Key` of the entry itself: with that of an interceptor the next process would
    /// send another key. What a process has left that ended before an answer is sent by the next transport with the
    /// store, from its first request or stream on, with the interceptors of that request's provider. A send that fails
    /// is not sent again. Two transports must not use one store at the same time. An ``EventSource`` ignores it.
    public var store: (any SessionStore)?
    /// What tells when to pause, to go on and to try again; nothing by default, and the network on Apple platforms in
    /// any case.
    public var hints: [any ConnectionHintSource] = []

    /// How long connecting to a host may take, from the name to the head of the answer; 10 seconds by default.
    public var connectTimeout = Duration.seconds(10)
    /// How long the answer to a `send` may take; 30 seconds by default.
    ///
    /// It counts once over all redirects. The time that the send waits for a free connection counts, the time to make one
    /// does not: that has ``connectTimeout``.
    public var responseTimeout = Duration.seconds(30)
    /// How long a stream may be silent before it counts as lost; nil, the default, for any time.
    public var idleTimeout: Duration?
    /// How many connections `send` uses to one host at a time; 6 by default, as browsers do.
    ///
    /// Further sends wait for a free one, in the order of their calls. Each event stream has a connection of its own, which
    /// does not count here, so that streams never keep sends waiting. Hosts that stand in for one another (``failover``)
    /// count as one.
    public var maximumConnectionsPerHost = 6
    /// How many redirects are followed for one request; 5 by default.
    public var maximumRedirects = 5
    /// Whether responses may come compressed; true by default, where the system has zlib.
    ///
    /// With false a compressed answer is refused with `protocolViolation`, not decoded.
    public var acceptsCompression = true

    /// The longest line of a stream, in bytes; nil, the default, for as much as ``maximumEventSize`` allows in one line.
    ///
    /// An event with a longer line of data is skipped. A longer line of another field ends the subscription.
    public var maximumLineSize: Int?
    /// The most data of an event, in bytes; 1 MiB by default.
    ///
    /// A longer event is skipped, and the event `dropped` tells of it; its id counts as received.
    public var maximumEventSize = 1 << 20
    /// The longest body of a reply to a `send`, in bytes, after its decoding; 1 MiB by default.
    ///
    /// A longer one is `limitExceeded`. Of a refusal (a status other than 2xx) the first 64 KiB are kept.
    public var maximumReplySize = 1 << 20
    /// How many bytes may wait in memory for each stream; 64 MiB by default.
    ///
    /// Counts messages with their topics, headers and properties until they are taken, and what the server does not
    /// read. Near the limit reading stops until messages are taken, also while the connection is being closed.
    public var memoryLimit = 64 << 20

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
    /// The name of this client in its events and log records; nil, the default, for none.
    public var label: String?

    /// The defaults.
    public init() {}

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
        return maximumLineSize ?? min(max(maximumEventSize, 0), .max - field) + field
    }
}
