/// Whether and when a transport reconnects after a lost connection.
///
/// The wait before each attempt is random between zero and a ceiling, so that many clients of one server do not
/// reconnect at once. This is "full jitter" (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015). The
/// ceiling begins at ``initialDelay``, doubles with every failure in a row and ends at ``maximumDelay``. If a server
/// names a time to wait, no attempt is made earlier. For a busy server (``WaybillError/isServerBusy``), ``busyDelay``
/// is added to the random wait.
///
/// A failure that is not retryable ends the reconnection at once (``WaybillError/isRetryable``).
public struct ReconnectionPolicy: Hashable, Sendable {
    /// Whether the transport reconnects; true by default.
    public var isEnabled: Bool
    /// The ceiling of the first wait; 1 second by default.
    public var initialDelay: Duration
    /// The highest ceiling; 60 seconds by default.
    public var maximumDelay: Duration
    /// The minimum wait for a busy server that names no time; 5 seconds by default.
    ///
    /// The random wait is added to it, so that clients that were refused together do not return together.
    public var busyDelay: Duration
    /// The longest wait that a server can ask for; 10 minutes by default.
    ///
    /// It limits `Retry-After` and the reconnection time of an event stream. If a server asks for more, the next
    /// attempt is made after this time.
    public var maximumServerDelay: Duration
    /// The time that a connection must last until earlier failures are forgotten; 60 seconds by default.
    public var healthyTime: Duration
    /// The number of attempts that may fail in a row; nil, the default, for no limit.
    ///
    /// A connection that the server accepts and ends counts as a failure, too. Attempts are counted anew after
    /// progress: an acknowledgement, the answer to a subscription, a message or an event, an answer to a ping or a
    /// heart-beat. So they are after a connection of ``healthyTime``.
    public var maximumAttempts: Int?
    /// The time after the loss during which attempts are made; nil, the default, for no limit.
    ///
    /// It begins anew as the number of ``maximumAttempts`` does.
    public var maximumTime: Duration?

    /// Makes a policy; each parameter has the meaning of the property of the same name.
    public init(
        isEnabled: Bool = true,
        initialDelay: Duration = .seconds(1),
        maximumDelay: Duration = .seconds(60),
        busyDelay: Duration = .seconds(5),
        maximumServerDelay: Duration = .seconds(600),
        healthyTime: Duration = .seconds(60),
        maximumAttempts: Int? = nil,
        maximumTime: Duration? = nil
    ) {
        self.isEnabled = isEnabled
        self.initialDelay = initialDelay
        self.maximumDelay = maximumDelay
        self.busyDelay = busyDelay
        self.maximumServerDelay = maximumServerDelay
        self.healthyTime = healthyTime
        self.maximumAttempts = maximumAttempts
        self.maximumTime = maximumTime
    }

    /// A policy that never reconnects.
    public static var never: ReconnectionPolicy {
        var policy = ReconnectionPolicy()
        policy.isEnabled = false
        return policy
    }
}
