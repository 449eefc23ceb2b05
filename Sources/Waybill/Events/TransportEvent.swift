/// An event of a connection, a subscription, a message, a request or a token.
///
/// The kind determines which values are present beside the time and the label; the others are nil.
///
/// | kind | values |
/// | --- | --- |
/// | `connecting` | `host`, `attempt` |
/// | `connected` | `host`, `attempt`, `duration` since `connecting`, `isResumed` |
/// | `connectionFailed` | `host`, `attempt`, `duration`, `error` |
/// | `waiting` | `attempt` that comes, `until`, `error` that it comes from |
/// | `disconnected` | `host`, `duration` that it was connected, `error` unless this side ended it |
/// | `redirected` | `host` that refers to others, `otherHosts` that are tried, `error` with its reason |
/// | `subscribed`, `resubscribed` | `topic`, `qos` that was granted, `duration` |
/// | `subscriptionRefused` | `topic`, `duration`, `error` |
/// | `subscriptionEnded` | `topic`, `error` unless this side ended it |
/// | `sent` | `topic`, `qos`, `byteCount` of the body |
/// | `acknowledged` | `topic`, `qos`, `byteCount`, `duration` since it was asked for |
/// | `sendFailed` | `topic`, `qos`, `byteCount`, `duration`, `error` |
/// | `received` | `topic`, `qos`, `byteCount` of the body |
/// | `storeIncomplete` | `count` of changes that are not written, if the store knows it; `error` |
/// | `dropped` | `topic`, `count` of messages, `byteCount` of their bodies, `dropReason` |
/// | `readingHeld` | `byteCount` of all that waits, `topic` of the subscription with the most of it |
/// | `readingResumed` | `duration` since reading was stopped |
/// | `unsupported` | `error` with the missing feature, `topic` of the subscription if it is about one |
/// | `skipped` | `topic`, `error` |
/// | `enqueuedFailed` | `command`, `topic`, `error` |
/// | `retrying` | `command`, `topic`, `attempt` that comes, `delay` before it, `error` |
/// | `tokenRequested`, `tokenRefreshing` | none |
/// | `tokenReceived` | `duration` |
/// | `tokenFailed` | `duration`, `error` |
/// | `missed` | `count` of events |
///
/// A value is also nil if the protocol does not have it, or if it was not measured because there was no observer at its
/// start. No value holds a body, the value of a header or a credential.
public struct TransportEvent: Sendable {
    /// The kind of event.
    ///
    /// More kinds may be added: a `switch` needs a `default`.
    public struct Kind: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// The transport connects to a host.
        public static let connecting = Kind(name: "connecting")
        /// The peer has accepted the connection.
        public static let connected = Kind(name: "connected")
        /// An attempt to connect to a host failed.
        public static let connectionFailed = Kind(name: "connectionFailed")
        /// The transport waits before the next attempt.
        public static let waiting = Kind(name: "waiting")
        /// A connection ended.
        public static let disconnected = Kind(name: "disconnected")
        /// A server has referred the client to other servers.
        public static let redirected = Kind(name: "redirected")

        /// The peer has confirmed a subscription.
        public static let subscribed = Kind(name: "subscribed")
        /// The peer has confirmed a subscription again, on the connection after a lost one.
        public static let resubscribed = Kind(name: "resubscribed")
        /// A subscription was refused or failed.
        public static let subscriptionRefused = Kind(name: "subscriptionRefused")
        /// A subscription ended.
        public static let subscriptionEnded = Kind(name: "subscriptionEnded")

        /// A message was handed to the link; reported again each time the message is resent.
        public static let sent = Kind(name: "sent")
        /// The peer has confirmed a message.
        public static let acknowledged = Kind(name: "acknowledged")
        /// A message was not sent, or the peer did not confirm it.
        public static let sendFailed = Kind(name: "sendFailed")
        /// A message arrived for a subscription.
        public static let received = Kind(name: "received")

        /// The store did not write everything within the close timeout, when the connection was closed.
        ///
        /// If the process ends now, the next one may send messages again that the server has acknowledged.
        public static let storeIncomplete = Kind(name: "storeIncomplete")

        /// A policy dropped messages.
        public static let dropped = Kind(name: "dropped")

        /// Waiting messages have stopped the reading of the connection for five seconds.
        ///
        /// Answers to calls wait, too. When a call times out meanwhile, the subscription with the most waiting messages
        /// ends with `slowConsumer`.
        public static let readingHeld = Kind(name: "readingHeld")
        /// The connection is read again, after ``readingHeld``.
        public static let readingResumed = Kind(name: "readingResumed")

        /// The peer lacks something that the transport asks for by default; the transport goes on without it.
        ///
        /// Spring's simple broker sends no receipts, and messages that cannot be acknowledged.
        public static let unsupported = Kind(name: "unsupported")

        /// A loop over ``Messages/skippingFailures`` skipped a message that could not be decoded, or that an
        /// interceptor refused.
        public static let skipped = Kind(name: "skipped")
        /// An enqueued entry failed after the app had released its handle without reading the outcome.
        public static let enqueuedFailed = Kind(name: "enqueuedFailed")

        /// A failed request is retried.
        public static let retrying = Kind(name: "retrying")

        /// The token source is asked for the first token.
        public static let tokenRequested = Kind(name: "tokenRequested")
        /// The token source is asked for a new token, in place of one that was refused.
        public static let tokenRefreshing = Kind(name: "tokenRefreshing")
        /// The token source has returned a token.
        public static let tokenReceived = Kind(name: "tokenReceived")
        /// The token source has failed.
        public static let tokenFailed = Kind(name: "tokenFailed")

        /// This observer lagged behind and missed events.
        public static let missed = Kind(name: "missed")
    }

    /// The reason why messages were dropped.
    ///
    /// More reasons may be added: a `switch` needs a `default`.
    public struct DropReason: Hashable, Sendable {
        /// The reason in words.
        public let name: String

        /// The oldest messages of a full subscription were dropped.
        public static let oldestWaiting = DropReason(name: "the oldest made room")
        /// A full subscription took no new messages.
        public static let noRoom = DropReason(name: "no room")
        /// Too many messages waited in a subscription, and the policy ended it.
        public static let slowConsumer = DropReason(name: "the consumer was too slow")
        /// The oldest messages of the full offline queue were dropped.
        public static let oldestQueued = DropReason(name: "the oldest in the queue made room")
        /// The full offline queue took no new messages.
        public static let queueFull = DropReason(name: "the queue was full")
        /// The message was longer than the transport's limit; it was acknowledged and not kept.
        public static let tooLarge = DropReason(name: "too large")
        /// No subscription takes the message, which is not kept; in MQTT it is acknowledged.
        ///
        /// Of more than 100 in a second the others are reported together, without their topics.
        public static let noListener = DropReason(name: "no listener")
        /// The messages waited longer than allowed.
        public static let expired = DropReason(name: "expired")

        init(name: String) {
            self.name = name
        }

        /// The drop reason that belongs to the policy of a subscription.
        package init(_ overflow: BufferPolicy.Overflow) {
            self =
                switch overflow {
                case .dropOldest: .oldestWaiting
                case .dropNewest: .noRoom
                case .fail, .holdBack: .slowConsumer
                }
        }
    }

    /// The kind of event.
    public var kind: Kind
    /// The time of the event.
    public var time: ContinuousClock.Instant
    /// The label of the client, as its transport's configuration states it; nil without one.
    public var label: String?
    /// The host and its port.
    public var host: String?
    /// The hosts that are tried instead, with their ports; empty if a referral is not followed.
    public var otherHosts: [String]?
    /// The number of the attempt, from 1.
    public var attempt: Int?
    /// The time that the step took.
    public var duration: Duration?
    /// Whether the server resumed an earlier session.
    public var isResumed: Bool?
    /// The time of the next attempt.
    public var until: ContinuousClock.Instant?
    /// The wait before the next attempt.
    public var delay: Duration?
    /// The error.
    public var error: WaybillError?
    /// The topic of the subscription, message or request.
    public var topic: String?
    /// The name of the request's command.
    public var command: String?
    /// The quality of service of the message, or the one granted to the subscription.
    public var qos: QoS?
    /// The number of messages or events.
    public var count: Int?
    /// The number of body bytes.
    public var byteCount: Int?
    /// The reason why messages were dropped.
    public var dropReason: DropReason?

    /// Makes an event with no values but the time.
    public init(_ kind: Kind, time: ContinuousClock.Instant = .now) {
        self.kind = kind
        self.time = time
    }
}
