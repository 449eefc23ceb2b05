/// The treatment of sends during a reconnection.
///
/// Sends wait in the order of the calls. Once the connection is back, they are sent after the subscriptions and after
/// the calls that were pending at the loss, and before new calls. Each call ends as with a connection, or with an error
/// when it has waited too long or is dropped.
public struct OfflinePolicy: Hashable, Sendable {
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
    public var isEnabled: Bool
    /// The number of sends that may wait; 1,000 by default.
    public var messageLimit: Int
    /// The number of bytes that their bodies may have together; 4 MiB by default.
    public var byteLimit: Int
    /// The time for which a send may wait; nil, the default, for the time limit of its acknowledgement.
    ///
    /// A message's own expiry ends the wait, too. The send then fails with `timedOut`, and was never sent.
    public var timeToLive: Duration?
    /// What happens when the queue is full; `fail` by default.
    public var overflow: Overflow
    /// Whether sends without an acknowledgement wait, too; false by default.
    ///
    /// These are sends of QoS 0 in MQTT, and sends without a receipt in STOMP.
    public var includesUnacknowledged: Bool

    /// Whether sends and subscriptions wait for a connection, also for the first one; nil, the default, for true where
    /// the transport has a store on disk (``SessionStore/isOnDisk``) and the queue is used.
    ///
    /// The transport then makes attempts until it is connected, as after a loss. A send whose message is stored waits as
    /// long as the message lives: until its expiry, without one for good. It outlasts a `disconnect`, and connections
    /// that fail. It fails when the server refuses the client for good. ``SendOption/timeout(_:)`` and ``timeToLive`` limit
    /// the wait. A send whose message is not stored waits no longer than for its acknowledgement.
    ///
    /// ``SendOption/waitsForConnection`` and ``SubscribeOption/waitsForConnection`` come first.
    public var waitsForConnection: Bool?

    /// Makes a policy; each parameter has the meaning of the property of the same name.
    public init(
        isEnabled: Bool = true,
        messageLimit: Int = 1_000,
        byteLimit: Int = 4 << 20,
        timeToLive: Duration? = nil,
        overflow: Overflow = .fail,
        includesUnacknowledged: Bool = false,
        waitsForConnection: Bool? = nil
    ) {
        self.isEnabled = isEnabled
        self.messageLimit = messageLimit
        self.byteLimit = byteLimit
        self.timeToLive = timeToLive
        self.overflow = overflow
        self.includesUnacknowledged = includesUnacknowledged
        self.waitsForConnection = waitsForConnection
    }

    /// A policy without a queue.
    public static var off: OfflinePolicy {
        var policy = OfflinePolicy()
        policy.isEnabled = false
        return policy
    }
}
