/// The limits for messages that arrive before there is a subscription for them.
///
/// A server that kept a session sends its stored messages at once, often before the app has subscribed to anything. A
/// subscription that begins in time gets them, in order, before later messages. They are not acknowledged until then.
public struct LateDeliveryPolicy: Hashable, Sendable {
    /// The time for which a message is kept; 60 seconds by default.
    ///
    /// After that it is acknowledged, as every message without a subscription is.
    public var timeToLive = Duration.seconds(60)
    /// The number of messages that are kept; 100 by default.
    ///
    /// The oldest are dropped first.
    public var messageLimit = 100
    /// The number of bytes that the messages may take together; 1 MiB by default.
    ///
    /// A message counts with its body, its topic, its headers and about 400 bytes of overhead. The oldest are dropped
    /// first. A message above the limit is not kept.
    public var byteLimit = 1 << 20

    /// Makes the default policy.
    public init() {}
}
