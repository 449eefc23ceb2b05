/// The treatment of sends during a reconnection.
///
/// Sends wait in the order of the calls. Once the connection is back, they are sent after the subscriptions and after
/// the calls that were pending at the loss, and before new calls. Each call ends as with a connection, or with an error
/// when it has waited too long or is dropped.
public struct OfflineQueuePolicy: Hashable, Sendable {
    /// What happens when the queue is full.
    public enum Overflow: Hashable, Sendable {
        /// The new send fails with `limitExceeded`.
        case fail
        /// The oldest sends fail with `limitExceeded`, and are reported as dropped.
        case dropOldest
        /// The new send fails with `limitExceeded`, and is reported as dropped.
        case dropNewest
    }

    /// Whether the queue is used; true by default.
    ///
    /// Without the queue a send waits for the connection as any other request does, in no particular order.
    public var isEnabled = true
    /// The number of sends that may wait; 1,000 by default.
    public var messageLimit = 1_000
    /// The number of bytes that their bodies may have together; 4 MiB by default.
    public var byteLimit = 4 << 20
    /// The time for which a send may wait; nil, the default, for the time limit of its acknowledgement.
    ///
    /// With a store on disk nil means no limit, because the next process would send the message, too.
    /// A message's own expiry ends the wait, too. The send then fails with `timedOut`, and was never sent.
    public var timeToLive: Duration?
    /// What happens when the queue is full; `fail` by default.
    public var overflow = Overflow.fail
    /// Whether sends without an acknowledgement wait, too; false by default.
    ///
    /// These are sends of QoS 0 in MQTT, and sends without a receipt in STOMP.
    public var includesUnacknowledged = false

    /// Whether sends and subscriptions without a connection wait for one, also for the first; nil, the default, for yes
    /// with a store on disk (``SessionStore/isOnDisk``), else no.
    ///
    /// A send then waits in the queue, and the transport connects as after a lost connection, attempt after attempt, as
    /// its policy says. Without it, the first request makes one attempt, whose failure is its own. After an explicit
    /// disconnect, and where connections are opened by hand only, sends fail with `notConnected` all the same. An entry
    /// may state it, too (``SendOptions/waitsForConnection``, ``SubscribeOptions/waitsForConnection``).
    public var waitsForConnection: Bool?

    /// Makes the default policy.
    public init() {}

    /// A policy without a queue.
    public static var off: OfflineQueuePolicy {
        var policy = OfflineQueuePolicy()
        policy.isEnabled = false
        return policy
    }
}
