/// How long messages are kept that nobody listens for yet.
///
/// A server that has kept a session sends what came meanwhile at once, often before an app has subscribed to
/// anything. Whoever subscribes in time gets them, in order, before what follows. Until then they are not acknowledged.
public struct LateDeliveryPolicy: Hashable, Sendable {
    /// How long a message is kept; 60 seconds by default.
    ///
    /// After that it is acknowledged as any message is that nobody listens for.
    public var timeToLive = Duration.seconds(60)
    /// How many messages are kept; 100 by default.
    ///
    /// The oldest go first.
    public var messageLimit = 100
    /// How many bytes they may take in all; 1 MiB by default.
    ///
    /// A message counts with its body, its topic, its headers and some 400 bytes for itself. The oldest go first. A
    /// message that takes more by itself is not kept.
    public var byteLimit = 1 << 20

    /// The defaults.
    public init() {}
}
