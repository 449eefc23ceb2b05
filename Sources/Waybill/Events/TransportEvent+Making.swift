// Events as transports report them: each kind with the values that belong to it. Durations are measured from an
// instant to the present; see `TransportEventSource.timestamp`.
extension TransportEvent {
    // MARK: Connections

    /// A host is connected to.
    public static func connecting(to host: String?, attempt: Int = 1) -> TransportEvent {
        var event = TransportEvent(.connecting)
        event.host = host
        event.attempt = attempt
        return event
    }

    /// The peer has accepted the connection.
    ///
    /// - Parameters:
    ///   - host: The host and its port.
    ///   - begun: When it was begun to connect.
    ///   - attempt: The attempt, from 1.
    ///   - isResumed: Whether the server has resumed an earlier session; nil where there is no such thing.
    /// - Returns: The event.
    public static func connected(
        to host: String?,
        since begun: ContinuousClock.Instant?,
        attempt: Int = 1,
        isResumed: Bool? = nil
    ) -> TransportEvent {
        var event = TransportEvent(.connected, since: begun)
        event.host = host
        event.attempt = attempt
        event.isResumed = isResumed
        return event
    }

    /// There is no connection to a host.
    public static func connectionFailed(
        to host: String?,
        since begun: ContinuousClock.Instant?,
        attempt: Int = 1,
        error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.connectionFailed, since: begun)
        event.host = host
        event.attempt = attempt
        event.error = error
        return event
    }

    /// The next attempt comes after a while.
    public static func waiting(
        until instant: ContinuousClock.Instant,
        attempt: Int,
        cause: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.waiting)
        event.until = instant
        event.attempt = attempt
        event.error = cause
        return event
    }

    /// A connection is over.
    ///
    /// - Parameters:
    ///   - host: The host and its port.
    ///   - begun: Since when it was connected.
    ///   - cause: What ended it; nil when this side did.
    /// - Returns: The event.
    public static func disconnected(
        from host: String?,
        since begun: ContinuousClock.Instant?,
        cause: WaybillError?
    ) -> TransportEvent {
        var event = TransportEvent(.disconnected, since: begun)
        event.host = host
        event.error = cause
        return event
    }

    // MARK: Subscriptions

    /// The peer has confirmed a subscription.
    ///
    /// - Parameters:
    ///   - topic: The topic or filter.
    ///   - begun: When it was asked for.
    ///   - qos: What was granted; nil where there is no such thing.
    ///   - isAgain: Whether it was confirmed before, on a connection that was lost: then `begun` is that loss.
    /// - Returns: The event.
    public static func subscribed(
        topic: String?,
        since begun: ContinuousClock.Instant?,
        qos: QoS? = nil,
        isAgain: Bool = false
    ) -> TransportEvent {
        var event = TransportEvent(isAgain ? .resubscribed : .subscribed, since: begun)
        event.topic = topic
        event.qos = qos
        return event
    }

    /// There is no subscription.
    public static func subscriptionRefused(
        topic: String?,
        since begun: ContinuousClock.Instant?,
        error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.subscriptionRefused, since: begun)
        event.topic = topic
        event.error = error
        return event
    }

    /// A subscription is over; the cause is nil when this side ended it.
    public static func subscriptionEnded(topic: String?, cause: WaybillError?) -> TransportEvent {
        var event = TransportEvent(.subscriptionEnded)
        event.topic = topic
        event.error = cause
        return event
    }

    // MARK: Messages

    /// A message was handed to the link.
    public static func sent(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil
    ) -> TransportEvent {
        TransportEvent(.sent, nil, topic, byteCount, qos)
    }

    /// The peer has confirmed a message, for which it was asked at an instant.
    public static func acknowledged(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil,
        since begun: ContinuousClock.Instant?
    ) -> TransportEvent {
        TransportEvent(.acknowledged, begun, topic, byteCount, qos)
    }

    /// A message was not sent, or not confirmed.
    public static func sendFailed(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil,
        since begun: ContinuousClock.Instant?,
        error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.sendFailed, begun, topic, byteCount, qos)
        event.error = error
        return event
    }

    /// A message has come for a subscription; those of one batch may share the time.
    public static func received(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil,
        at time: ContinuousClock.Instant = .now
    ) -> TransportEvent {
        var event = TransportEvent(.received, time: time)
        event.topic = topic
        event.byteCount = byteCount
        event.qos = qos
        return event
    }

    /// Messages were dropped.
    public static func dropped(
        _ count: Int,
        byteCount: Int?,
        topic: String?,
        reason: DropReason
    ) -> TransportEvent {
        var event = TransportEvent(.dropped)
        event.count = count
        event.byteCount = byteCount
        event.topic = topic
        event.dropReason = reason
        return event
    }

    // MARK: The package's own

    /// A message was skipped for this error.
    static func skipped(_ error: WaybillError) -> TransportEvent {
        var event = TransportEvent(.skipped)
        event.topic = error.topic
        event.error = error
        return event
    }

    /// A request that failed is tried again, for the attempt of that number.
    static func retrying(
        _ request: Request,
        attempt: Int,
        delay: Duration,
        after error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.retrying)
        event.command = request.command.name
        event.topic = request.topic
        event.attempt = attempt
        event.delay = delay
        event.error = error
        return event
    }

    /// An entry that was enqueued has failed.
    static func enqueuedFailed(
        command: String,
        topic: String?,
        error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.enqueuedFailed)
        event.command = command
        event.topic = topic
        event.error = error
        return event
    }

    /// So many events are gone.
    static func missed(_ count: Int) -> TransportEvent {
        var event = TransportEvent(.missed)
        event.count = count
        return event
    }

    /// An event that took from an instant to the present.
    init(_ kind: Kind, since begun: ContinuousClock.Instant?) {
        self.init(kind)
        duration = begun?.duration(to: time)
    }

    private init(
        _ kind: Kind,
        _ begun: ContinuousClock.Instant?,
        _ topic: String?,
        _ byteCount: Int,
        _ qos: QoS?
    ) {
        self.init(kind, since: begun)
        self.topic = topic
        self.byteCount = byteCount
        self.qos = qos
    }
}
