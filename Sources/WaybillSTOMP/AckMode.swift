/// How the client acknowledges messages to a STOMP server (STOMP 1.2, SUBSCRIBE ack Header).
public enum AckMode: Hashable, Sendable {
    /// The client acknowledges nothing.
    case auto
    /// Each acknowledgement covers all messages of the subscription before it.
    case client
    /// Each message is acknowledged separately; from STOMP 1.1 on.
    case clientIndividual
}
