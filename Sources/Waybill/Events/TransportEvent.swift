/// One thing that has happened to a connection, a subscription, a message, a request or a token.
///
/// Which values there are, beside the time, depends on the kind; the others are nil.
///
/// | kind | values |
/// | --- | --- |
/// | `connecting` | `host`, `attempt` |
/// | `connected` | `host`, `attempt`, `duration` since `connecting`, `isResumed` |
/// | `connectionFailed` | `host`, `attempt`, `duration`, `error` |
/// | `waiting` | `attempt` that comes, `until`, `error` that it comes from |
/// | `disconnected` | `host`, `duration` that it was connected, `error` unless this side ended it |
/// | `subscribed`, `resubscribed` | `topic`, `qos` that was granted, `duration` |
/// | `subscriptionRefused` | `topic`, `duration`, `error` |
/// | `subscriptionEnded` | `topic`, `error` unless this side ended it |
/// | `sent` | `topic`, `qos`, `byteCount` of the body |
/// | `acknowledged` | `topic`, `qos`, `byteCount`, `duration` since it was asked for |
/// | `sendFailed` | `topic`, `qos`, `byteCount`, `duration`, `error` |
/// | `received` | `topic`, `qos`, `byteCount` of the body |
/// | `dropped` | `topic`, `count` of messages, `byteCount` of their bodies, `dropReason` |
/// | `skipped` | `topic`, `error` |
/// | `enqueuedFailed` | `command`, `topic`, `error` |
/// | `retrying` | `command`, `topic`, `attempt` that comes, `delay` before it, `error` |
/// | `tokenRequested`, `tokenRefreshing` | none |
/// | `tokenReceived` | `duration` |
/// | `tokenFailed` | `duration`, `error` |
/// | `missed` | `count` of events |
///
/// A value that a protocol does not have, or that was not measured because nobody observed yet, is nil, too. None
/// of them holds a body, the value of a header or a credential.
public struct TransportEvent: Sendable {
    /// What kind of thing.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct Kind: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// A host is connected to.
        public static let connecting = Kind(name: "connecting")
        /// The peer has accepted the connection.
        public static let connected = Kind(name: "connected")
        /// There is no connection to that host.
        public static let connectionFailed = Kind(name: "connectionFailed")
        /// The next attempt comes after a while.
        public static let waiting = Kind(name: "waiting")
        /// A connection is over.
        public static let disconnected = Kind(name: "disconnected")

        /// The peer has confirmed a subscription.
        public static let subscribed = Kind(name: "subscribed")
        /// The peer has confirmed a subscription again, on a connection after the one that was lost.
        public static let resubscribed = Kind(name: "resubscribed")
        /// There is no subscription.
        public static let subscriptionRefused = Kind(name: "subscriptionRefused")
        /// A subscription is over.
        public static let subscriptionEnded = Kind(name: "subscriptionEnded")

        /// A message was handed to the link; once more each time that it is sent again.
        public static let sent = Kind(name: "sent")
        /// The peer has confirmed a message.
        public static let acknowledged = Kind(name: "acknowledged")
        /// A message was not sent, or not confirmed.
        public static let sendFailed = Kind(name: "sendFailed")
        /// A message has come for a subscription.
        public static let received = Kind(name: "received")

        /// Messages were dropped by a policy.
        public static let dropped = Kind(name: "dropped")

        /// A message that could not be decoded, or that an interceptor refused, was skipped by a loop over
        /// ``Messages/skippingFailures``.
        public static let skipped = Kind(name: "skipped")
        /// An entry that was enqueued has failed, and its handle was let go of before anybody asked for that.
        public static let enqueuedFailed = Kind(name: "enqueuedFailed")

        /// A request that failed is tried again.
        public static let retrying = Kind(name: "retrying")

        /// A token source is asked for the first token.
        public static let tokenRequested = Kind(name: "tokenRequested")
        /// A token source is asked for another token, in the place of one that was refused.
        public static let tokenRefreshing = Kind(name: "tokenRefreshing")
        /// A token source has answered.
        public static let tokenReceived = Kind(name: "tokenReceived")
        /// A token source has no token.
        public static let tokenFailed = Kind(name: "tokenFailed")

        /// This observer has lagged behind, and so many events are gone.
        public static let missed = Kind(name: "missed")
    }

    /// Why messages were dropped.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct DropReason: Hashable, Sendable {
        /// The reason in words.
        public let name: String

        /// Those that had waited longest in a subscription made room.
        public static let oldestWaiting = DropReason(name: "the oldest made room")
        /// There was no room for new ones in a subscription.
        public static let noRoom = DropReason(name: "no room")
        /// Too many waited in a subscription, which was ended for that.
        public static let slowConsumer = DropReason(name: "the consumer was too slow")
        /// Those that had waited longest in the offline queue made room.
        public static let oldestQueued = DropReason(name: "the oldest in the queue made room")
        /// There was no room for new ones in the offline queue.
        public static let queueFull = DropReason(name: "the queue was full")
        /// They had waited longer than they may.
        public static let expired = DropReason(name: "expired")

        init(name: String) {
            self.name = name
        }

        /// The reason for which the policy of a subscription drops messages.
        package init(_ overflow: BufferPolicy.Overflow) {
            self =
                switch overflow {
                case .dropOldest: .oldestWaiting
                case .dropNewest: .noRoom
                case .fail, .holdBack: .slowConsumer
                }
        }
    }

    /// What kind of thing.
    public var kind: Kind
    /// When it happened.
    public var time: ContinuousClock.Instant
    /// The host and its port.
    public var host: String?
    /// The attempt, from 1.
    public var attempt: Int?
    /// How long it took.
    public var duration: Duration?
    /// Whether the server has resumed an earlier session.
    public var isResumed: Bool?
    /// When the next attempt comes.
    public var until: ContinuousClock.Instant?
    /// How long is waited before the next attempt.
    public var delay: Duration?
    /// What went wrong.
    public var error: WaybillError?
    /// The topic of the subscription, message or request.
    public var topic: String?
    /// The name of the request's command.
    public var command: String?
    /// How surely the message is delivered, or what was granted to the subscription.
    public var qos: QoS?
    /// How many messages or events.
    public var count: Int?
    /// How many bytes of body.
    public var byteCount: Int?
    /// Why messages were dropped.
    public var dropReason: DropReason?

    /// Describes an event without any values but the time.
    public init(_ kind: Kind, time: ContinuousClock.Instant = .now) {
        self.kind = kind
        self.time = time
    }
}
