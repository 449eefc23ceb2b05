/// Whether and when a transport connects again after its connection was lost.
///
/// The wait before each attempt is drawn between nothing and a ceiling, so that many clients of one server do not
/// come back all at once ("full jitter", AWS Architecture Blog, "Exponential Backoff And Jitter", 2015). The
/// ceiling begins at ``initialDelay``, doubles with every failure in a row and ends at ``maximumDelay``. A server
/// that says when to come again is not asked earlier, and one that is busy (``WaybillError/isServerBusy``) is left
/// alone for ``busyDelay`` before the wait that is drawn.
///
/// What no attempt can mend ends it at once: whatever ``WaybillError/isRetryable`` says no to.
public struct ReconnectionPolicy: Hashable, Sendable {
    /// Whether to connect again at all; true by default.
    public var isEnabled = true
    /// The ceiling of the first wait; 1 second by default.
    public var initialDelay = Duration.seconds(1)
    /// The most that the ceiling grows to; 60 seconds by default.
    public var maximumDelay = Duration.seconds(60)
    /// How long a server that is busy and says not for how long is left alone at least; 5 seconds by default.
    ///
    /// What is drawn comes on top, so that those whom it has sent away together do not come back together.
    public var busyDelay = Duration.seconds(5)
    /// The longest wait that a server can ask for, with `Retry-After` or the reconnection time of an event stream; 10 minutes
    /// by default.
    ///
    /// A server that asks for more is asked again after this time.
    public var maximumServerDelay = Duration.seconds(600)
    /// How long a connection must have lasted for the failures before it to be forgotten; 60 seconds by default.
    public var healthyTime = Duration.seconds(60)
    /// How many attempts may fail in a row; nil, the default, for any number.
    public var maximumAttempts: Int?
    /// How long to go on after the connection was lost; nil, the default, for ever.
    public var maximumTime: Duration?

    /// The defaults.
    public init() {}

    /// Stays away.
    public static var never: ReconnectionPolicy {
        var policy = ReconnectionPolicy()
        policy.isEnabled = false
        return policy
    }
}
