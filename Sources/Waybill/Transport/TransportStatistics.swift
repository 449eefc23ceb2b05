/// What waits in a transport, and what it has seen since it was made.
///
/// The numbers are read one after another, while the transport goes on.
public struct TransportStatistics: Hashable, Sendable {
    /// The sends in the offline queue.
    public var queuedCount = 0
    /// The bytes of the bodies in the offline queue.
    public var queuedByteCount = 0
    /// The requests that the server has not answered yet, also those that wait for room in the window.
    ///
    /// Over MQTT these are sends of QoS 1 and 2, subscriptions and their ends; over STOMP all that ask for a receipt;
    /// over event streams the sends that have a connection.
    public var inFlightCount = 0
    /// The bytes of memory of received messages, until the app takes them.
    public var waitingByteCount = 0
    /// The messages that the app has to acknowledge itself and has not acknowledged yet.
    public var unacknowledgedCount = 0
    /// The requests that wait for a reply.
    public var awaitedReplyCount = 0
    /// The replies that came too late, twice, or for no request of this transport.
    public var lateReplyCount = 0
    /// The connections that a server has accepted; over event streams the opened streams.
    public var connectionCount = 0

    /// Makes a snapshot of nothing.
    public init() {}
}
