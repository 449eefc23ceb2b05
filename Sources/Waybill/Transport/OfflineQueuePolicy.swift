/// What becomes of sends while a connection that was lost is being made again.
///
/// They wait, in the order of the calls, and go out once the connection is back: after the subscriptions and after
/// what was under way when it was lost, before anything new. Each call ends as it would have with a connection, or
/// when it has waited too long, or when it has to make room.
public struct OfflineQueuePolicy: Hashable, Sendable {
    /// Who has to go when the queue is full.
    public enum Overflow: Hashable, Sendable {
        /// The send that finds no room fails with `limitExceeded`.
        case fail
        /// The oldest sends do, with `limitExceeded`, and are reported as dropped.
        case dropOldest
        /// The send that finds no room does, with `limitExceeded`, and is reported as dropped.
        case dropNewest
    }

    /// Whether sends wait at all; true by default.
    ///
    /// Without the queue a send waits for the connection as any other request does, in no order.
    public var isEnabled = true
    /// How many sends may wait; 1,000 by default.
    public var messageLimit = 1_000
    /// How many bytes their bodies may have in all; 4 MiB by default.
    public var byteLimit = 4 << 20
    /// How long a send may wait; nil, the default, for as long as its acknowledgement may take.
    ///
    /// A message's own expiry ends the wait, too. It fails with `timedOut` then, and was never sent.
    public var timeToLive: Duration?
    /// Who has to go when the queue is full; `fail` by default.
    public var overflow = Overflow.fail
    /// Whether sends that nobody acknowledges wait, too: QoS 0 in MQTT, sends without a receipt in STOMP; false by
    /// default.
    public var includesUnacknowledged = false

    /// The defaults.
    public init() {}

    /// No queue.
    public static var off: OfflineQueuePolicy {
        var policy = OfflineQueuePolicy()
        policy.isEnabled = false
        return policy
    }
}
