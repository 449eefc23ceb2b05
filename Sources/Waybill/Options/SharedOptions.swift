#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

// The options of two or more transports. One that a single transport has is declared in its module.

extension OptionName {
    /// The time limit of a command.
    public static let timeout = OptionKey<Duration>("timeout")
    /// Whether sending twice does no harm.
    public static let idempotent = OptionKey<Bool>("idempotent")
    /// Whether the caller awaits the peer's reply; it cannot be left out.
    public static let expectsReply = OptionKey<Bool>("expectsReply", canBeOmitted: false)
    /// The topic for a reply.
    public static let responseTopic = OptionKey<String>(stored: "responseTopic")
    /// The data that a reply carries back.
    public static let correlationData = OptionKey<[UInt8]>(stored: "correlationData")
    /// Whether a send or a stream waits for a connection.
    public static let waitsForConnection = OptionKey<Bool>("waitsForConnection")
    /// What happens when messages arrive faster than the consumer takes them.
    public static let buffering = OptionKey<BufferPolicy>("buffering")
    /// Whether the app acknowledges messages itself; it cannot be left out.
    public static let manualAcknowledgement = OptionKey<Bool>(
        "manualAcknowledgement",
        canBeOmitted: false
    )
    /// The user name of a connection.
    public static let userName = OptionKey<String>("userName")
    /// The password of a connection.
    public static let password = OptionKey<String>("password")
    /// The longest silence on a connection.
    public static let keepAlive = OptionKey<Duration>("keepAlive")
    /// Fields of the HTTP request that opens a WebSocket.
    public static let upgradeHeaders = OptionKey<Headers>("upgradeHeaders")
    /// The address of one connection; it cannot be left out.
    public static let url = OptionKey<URL>("url", canBeOmitted: false)

    /// The quality of service; left out, the highest supported one is used.
    public static let qos = OptionName("qos")
    /// The headers of a request.
    public static let headers = OptionName("headers")
    /// The content type of a body.
    public static let contentType = OptionName("contentType")
    /// Several topics in one subscription; they cannot be left out.
    public static let severalTopics = OptionName("severalTopics", canBeOmitted: false)
}

extension OptionName {
    /// The message that an `ack` or a `nack` names; it belongs to the command, and counts as no option.
    package static let messageID = OptionKey<Message.ID>("messageID")
    /// A kind that a transport's module has added; it counts as no option.
    static let kind = OptionKey<EntryCommand.Kind>("kind")

    // Read below the modules that have these keys, and declare them under their own names: the one that a store keeps as a
    // date, the one that decides whether a send is repeated, and what routers and reports read.

    /// The time after which a message is worth nothing (MQTT 5).
    package static let storedExpiry = OptionKey<Duration>("expiry")
    /// Whether a message of QoS 1 is sent once at the most (MQTT).
    package static let sentOnceOnly = OptionKey<Bool>("sentOnce")
    /// The event type of a message (event streams).
    package static let streamEventType = OptionKey<String>("eventType")
    /// Whether the server resumed the session (MQTT).
    package static let sessionPresence = OptionKey<Bool>("isSessionPresent")
}

extension SendOption {
    /// The time limit for the peer's acknowledgement, or for its reply where one is requested.
    ///
    /// Before it, a store has the same time to keep the message (``SessionStore``). A message that is stored, and waits
    /// for a connection (``waitsForConnection``), has this time from the call on. Without it the transport's limit
    /// begins for such a message when its last byte is given to the socket.
    public static func timeout(_ limit: Duration) -> Self { Self(.timeout, limit) }

    /// Sending twice does no harm: a send that may have arrived is then retried.
    ///
    /// Messages of QoS 1 and 2 are retried in any case, unless they are sent once only.
    public static var idempotent: Self { Self(.idempotent, true) }

    /// The call awaits the peer's reply, which is then ``Receipt/reply``.
    ///
    /// ``Provider/request(_:as:)`` awaits it without this option. ``Provider/request(of:entry:_:)`` awaits it only with
    /// the option. Where sends are HTTP requests, the response is the reply in any case. MQTT 3.1.1 has no replies:
    /// `unsupported`.
    public static var expectsReply: Self { Self(.expectsReply, true) }

    /// The topic to which the receiver sends its reply (MQTT 5's response topic, STOMP's `reply-to`).
    ///
    /// Set it where the app subscribes to the replies itself. A request that returns its reply sets a topic of its own.
    public static func responseTopic(_ topic: String) -> Self { Self(.responseTopic, topic) }

    /// Data that a reply carries back, so that it can be matched (MQTT 5's correlation data, STOMP's `correlation-id`).
    ///
    /// ``EntryCommand/reply(to:qos:_:)`` copies it from the message that is answered.
    public static func correlationData(_ data: [UInt8]) -> Self { Self(.correlationData, data) }

    /// The URL that takes the place of the transport's for this one request, where a send is an HTTP request.
    ///
    /// The topic is appended as to the transport's URL. Other hosts are not tried. What may stand in it, and which
    /// credentials go there, is said at ``ConnectOption/url(_:)``. Such a send is not stored. MQTT and STOMP send over
    /// the connection that is there: `unsupported`.
    public static func url(_ url: URL) -> Self { Self(.url, url) }

    /// The send waits for a connection, also for the first one (MQTT, STOMP).
    ///
    /// Without it ``OfflinePolicy/waitsForConnection`` of the transport decides. Where sends are HTTP requests, it is
    /// `unsupported`.
    public static var waitsForConnection: Self { .waitsForConnection(true) }

    /// Whether the send waits for a connection; see ``waitsForConnection``.
    public static func waitsForConnection(_ waits: Bool) -> Self {
        Self(.waitsForConnection, waits)
    }
}

extension SubscribeOption {
    /// The time limit for the peer's acknowledgement.
    public static func timeout(_ limit: Duration) -> Self { Self(.timeout, limit) }

    /// What happens when messages arrive faster than the consumer takes them.
    public static func buffering(_ policy: BufferPolicy) -> Self { Self(.buffering, policy) }

    /// The URL that takes the place of the transport's for this one stream, where a subscription is an HTTP request.
    ///
    /// The topic is appended as to the transport's URL. The stream is requested there again after each end. What may
    /// stand in it, and which credentials go there, is said at ``ConnectOption/url(_:)``. MQTT and STOMP subscribe over
    /// the connection that is there: `unsupported`.
    public static func url(_ url: URL) -> Self { Self(.url, url) }

    /// Messages are acknowledged when the app sends an entry with the command `ack` or `nack`, and not as soon as the
    /// consumer has taken them from the stream.
    public static var manualAcknowledgement: Self { Self(.manualAcknowledgement, true) }

    /// The stream begins at once without a connection.
    ///
    /// Without it ``OfflinePolicy/waitsForConnection`` of the transport decides, which is false without a store on
    /// disk.
    ///
    /// The transport then connects as after a lost connection, attempt after attempt, as its policy says. The failed
    /// first attempt of another call does not end the stream. The SUBSCRIBE follows once there is a connection.
    ///
    /// Where connections are opened by hand only, the stream waits for the next attempt, and ends if that attempt
    /// fails. A refusal by the server ends the stream, and so does anything that ends the streams of a connection.
    /// ``timeout(_:)`` counts only while there is a connection. With a connection at the start, this option makes no
    /// difference.
    public static var waitsForConnection: Self { .waitsForConnection(true) }

    /// Whether the stream begins at once without a connection; see ``waitsForConnection``.
    public static func waitsForConnection(_ waits: Bool) -> Self {
        Self(.waitsForConnection, waits)
    }
}

extension ConnectOption {
    /// The time limit for connecting; it counts for each host where there are several.
    public static func timeout(_ limit: Duration) -> Self { Self(.timeout, limit) }

    /// The user name.
    public static func userName(_ name: String) -> Self { Self(.userName, name) }

    /// The password; never logged.
    public static func password(_ password: String) -> Self { Self(.password, password) }

    /// The longest silence on the connection, in whole seconds up to 65,535; zero turns keep alive off.
    public static func keepAlive(_ time: Duration) -> Self { Self(.keepAlive, time) }

    /// Fields of the HTTP request that opens a WebSocket, such as `Authorization`.
    ///
    /// They replace fields of the same name in the configuration. Plain TCP and TLS have no such request: connecting
    /// then fails with `unsupported`.
    public static func upgradeHeaders(_ fields: Headers) -> Self { Self(.upgradeHeaders, fields) }

    /// The URL that takes the place of the transport's for the connection of this command: host, port, path and query.
    ///
    /// It counts before ``Credentials/url``, and that before the transport's URL with ``FailoverOptions``, whose hosts
    /// are then not tried. As the other options of a connect, it also counts where this connection is restored. For a
    /// URL that expires, use ``Credentials/url``. Neither the query nor a user name or password in it is ever shown.
    ///
    /// The scheme may be any of the transport's protocol, but TLS is never dropped: with `mqtts` or `wss` as the
    /// transport's, `mqtt` and `ws` are `invalidEntry`. So is any other URL that the transport would not take, before
    /// any input or output. A scheme of another protocol is `unsupported`. Event streams have no connection to open:
    /// `unsupported`.
    ///
    /// Scheme, host and port are an origin. To an origin that is not one of the transport's (its URL and its failover
    /// hosts), the configuration's user name, password and header fields do not go, nor do ``Credentials`` that were
    /// not given with it, nor what interceptors add, such as a token, unless the interceptor states the URL. What the
    /// entry states beside the URL or in it goes there.
    public static func url(_ url: URL) -> Self { Self(.url, url) }
}

extension DisconnectOption {
    /// The time limit for closing; after it the stream is closed by force.
    public static func timeout(_ limit: Duration) -> Self { Self(.timeout, limit) }
}
