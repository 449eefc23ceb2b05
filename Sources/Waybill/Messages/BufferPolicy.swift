/// What happens to messages that arrive faster than the consumer takes them.
///
/// Messages that the protocol itself holds back (MQTT at QoS 1 and 2) are never dropped, whatever the policy. Neither
/// are messages that a STOMP server wants acknowledged: the subscription fails when more of them wait than the policy
/// allows. There, a message counts from its arrival to its acknowledgement.
public struct BufferPolicy: Hashable, Sendable {
    /// What to do with a message that does not fit.
    public enum Overflow: Hashable, Sendable {
        /// The oldest waiting message is dropped.
        case dropOldest
        /// The new message is dropped.
        case dropNewest
        /// The subscription ends with `slowConsumer`.
        case fail
        /// Reading from the peer stops, for everything on the connection.
        case holdBack
    }

    /// What to do with a message that does not fit.
    public var overflow: Overflow
    /// The number of messages that may wait; at least one.
    public var messageLimit: Int
    /// The number of body bytes that may wait; a single message may exceed it.
    public var byteLimit: Int

    /// Sets the limits; by default 16,384 messages and 16 MiB.
    public init(
        _ overflow: Overflow,
        messageLimit: Int = 16_384,
        byteLimit: Int = 16 << 20
    ) {
        self.overflow = overflow
        self.messageLimit = max(messageLimit, 1)
        self.byteLimit = max(byteLimit, 1)
    }
}
