/// The limits for messages that arrive before there is a subscription for them.
///
/// A server that kept a session sends its stored messages at once, often before the app has subscribed to anything. A
/// subscription that begins in time gets them, in order, before later messages. They are not acknowledged until then.
///
/// Messages above the limits are left to the server: not acknowledged, so that it sends no more than its window allows.
/// The next subscription has the connection made again, where the policy of reconnection allows it, and the server sends
/// them again. Those without an acknowledgement (QoS 0) are dropped.
///
/// Held messages take room in the server's window. A session with a subscription that no launch listens to any more
/// keeps others waiting: unsubscribe from it, or use ``off``.
public struct LateDeliveryPolicy: Hashable, Sendable {
    /// Keeps nothing: a message without a subscription is acknowledged at once.
    public static var off: Self {
        var policy = Self()
        policy.timeToLive = .zero
        return policy
    }

    /// The time for which a message is kept; 60 seconds by default, none if it is zero.
    ///
    /// After that it is acknowledged and reported (`dropped`, `noListener`), as every message without a subscription is.
    public var timeToLive: Duration
    /// The number of messages that are kept; 1,024 by default.
    public var messageLimit: Int
    /// The number of bytes that the messages may take together; nil, the default, for an eighth of the transport's
    /// memory limit, and 8 MiB at most.
    ///
    /// A message counts with its body, its topic, its headers and about 400 bytes of overhead.
    public var byteLimit: Int?

    /// Makes a policy; each parameter has the meaning of the property of the same name.
    public init(
        timeToLive: Duration = .seconds(60),
        messageLimit: Int = 1_024,
        byteLimit: Int? = nil
    ) {
        self.timeToLive = timeToLive
        self.messageLimit = messageLimit
        self.byteLimit = byteLimit
    }

    package static let defaultByteLimit = 8 << 20
}
