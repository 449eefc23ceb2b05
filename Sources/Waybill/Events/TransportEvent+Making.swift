// The events as transports report them: each kind with its values. A duration runs from a start instant to now; see
// `TransportEventSource.timestamp`.
extension TransportEvent {
    // MARK: Connections

    /// The transport connects to a host.
    public static func connecting(to host: String?, attempt: Int = 1) -> TransportEvent {
        TransportEvent(.connecting, since: nil, host: host, attempt: attempt)
    }

    /// The peer has accepted the connection.
    ///
    /// - Parameters:
    ///   - host: The host and its port.
    ///   - begun: The start of connecting.
    ///   - attempt: The number of the attempt, from 1.
    ///   - isResumed: Whether the server resumed an earlier session; nil if the protocol has no sessions.
    /// - Returns: The event.
    public static func connected(
        to host: String?,
        since begun: ContinuousClock.Instant?,
        attempt: Int = 1,
        isResumed: Bool? = nil
    ) -> TransportEvent {
        var event = TransportEvent(.connected, since: begun, host: host, attempt: attempt)
        event.isResumed = isResumed
        return event
    }

    /// An attempt to connect to a host failed.
    public static func connectionFailed(
        to host: String?,
        since begun: ContinuousClock.Instant?,
        attempt: Int = 1,
        error: WaybillError
    ) -> TransportEvent {
        TransportEvent(
            .connectionFailed,
            since: begun,
            host: host,
            attempt: attempt,
            error: error
        )
    }

    /// The transport waits before the next attempt.
    public static func waiting(
        until instant: ContinuousClock.Instant,
        attempt: Int,
        cause: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.waiting, since: nil, attempt: attempt, error: cause)
        event.until = instant
        return event
    }

    /// A connection ended.
    ///
    /// - Parameters:
    ///   - host: The host and its port.
    ///   - begun: The start of the connection.
    ///   - cause: The error that ended it; nil when this side ended it.
    /// - Returns: The event.
    public static func disconnected(
        from host: String?,
        since begun: ContinuousClock.Instant?,
        cause: WaybillError?
    ) -> TransportEvent {
        TransportEvent(.disconnected, since: begun, host: host, error: cause)
    }

    /// A server has referred the client to other servers.
    ///
    /// - Parameters:
    ///   - host: The server that refers, with its port.
    ///   - otherHosts: The servers that are tried; empty if the referral is not followed.
    ///   - error: The end of the connection, with the server's reason.
    /// - Returns: The event.
    public static func redirected(
        by host: String?,
        to otherHosts: [String],
        error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.redirected, since: nil, host: host, error: error)
        event.otherHosts = otherHosts
        return event
    }

    // MARK: Subscriptions

    /// The peer has confirmed a subscription.
    ///
    /// - Parameters:
    ///   - topic: The topic or filter.
    ///   - begun: The time of the request, or of the loss of the connection for a repeated subscription.
    ///   - qos: The granted quality of service; nil if the protocol has none.
    ///   - isAgain: Whether the subscription is repeated on a new connection after a loss.
    /// - Returns: The event.
    public static func subscribed(
        topic: String?,
        since begun: ContinuousClock.Instant?,
        qos: QoS? = nil,
        isAgain: Bool = false
    ) -> TransportEvent {
        let kind: Kind = isAgain ? .resubscribed : .subscribed
        return TransportEvent(kind, since: begun, topic: topic, qos: qos)
    }

    /// A subscription was refused or failed.
    public static func subscriptionRefused(
        topic: String?,
        since begun: ContinuousClock.Instant?,
        error: WaybillError
    ) -> TransportEvent {
        TransportEvent(.subscriptionRefused, since: begun, topic: topic, error: error)
    }

    /// A subscription ended; the cause is nil when this side ended it.
    public static func subscriptionEnded(topic: String?, cause: WaybillError?) -> TransportEvent {
        TransportEvent(.subscriptionEnded, since: nil, topic: topic, error: cause)
    }

    // MARK: Messages

    /// A message was handed to the link.
    public static func sent(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil
    ) -> TransportEvent {
        TransportEvent(.sent, since: nil, topic: topic, byteCount: byteCount, qos: qos)
    }

    /// The peer has confirmed a message that was sent at an instant.
    public static func acknowledged(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil,
        since begun: ContinuousClock.Instant?
    ) -> TransportEvent {
        TransportEvent(.acknowledged, since: begun, topic: topic, byteCount: byteCount, qos: qos)
    }

    /// A message was not sent, or the peer did not confirm it.
    public static func sendFailed(
        topic: String?,
        byteCount: Int,
        qos: QoS? = nil,
        since begun: ContinuousClock.Instant?,
        error: WaybillError
    ) -> TransportEvent {
        TransportEvent(
            .sendFailed,
            since: begun,
            topic: topic,
            byteCount: byteCount,
            qos: qos,
            error: error
        )
    }

    /// A message arrived for a subscription; the messages of one batch may share the time.
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

    /// The store has not written everything.
    ///
    /// - Parameters:
    ///   - count: The number of changes that are not written; nil if the store does not know it.
    ///   - error: The reason.
    /// - Returns: The event.
    public static func storeIncomplete(_ count: Int?, error: WaybillError) -> TransportEvent {
        var event = TransportEvent(.storeIncomplete, since: nil, error: error)
        event.count = count
        return event
    }

    /// Messages were dropped.
    public static func dropped(
        _ count: Int,
        byteCount: Int?,
        topic: String?,
        reason: DropReason
    ) -> TransportEvent {
        var event = TransportEvent(.dropped, since: nil, topic: topic, byteCount: byteCount)
        event.count = count
        event.dropReason = reason
        return event
    }

    /// Waiting messages have stopped the reading of the connection.
    ///
    /// - Parameters:
    ///   - topic: The topic of the subscription with the most waiting messages.
    ///   - byteCount: The bytes of memory of all that waits.
    /// - Returns: The event.
    public static func readingHeld(topic: String?, byteCount: Int) -> TransportEvent {
        TransportEvent(.readingHeld, since: nil, topic: topic, byteCount: byteCount)
    }

    /// The connection is read again.
    ///
    /// - Parameter duration: The time since reading was stopped.
    /// - Returns: The event.
    public static func readingResumed(after duration: Duration) -> TransportEvent {
        var event = TransportEvent(.readingResumed)
        event.duration = duration
        return event
    }

    /// The peer lacks something that the transport goes on without.
    ///
    /// - Parameters:
    ///   - error: The missing feature, with the code `unsupported`.
    ///   - topic: The topic of the subscription; nil if it is about all requests.
    /// - Returns: The event.
    public static func unsupported(
        _ error: WaybillError,
        topic: String? = nil
    ) -> TransportEvent {
        TransportEvent(.unsupported, since: nil, topic: topic, error: error)
    }

    // MARK: Events of the package itself

    /// A message was skipped because of an error.
    static func skipped(_ error: WaybillError) -> TransportEvent {
        TransportEvent(.skipped, since: nil, topic: error.topic, error: error)
    }

    /// A failed request is retried; the event carries the number of the next attempt.
    static func retrying(
        _ request: Request,
        attempt: Int,
        delay: Duration,
        after error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.retrying, since: nil, attempt: attempt, error: error)
        event.command = request.command.name
        event.topic = request.topic
        event.delay = delay
        return event
    }

    /// An enqueued entry has failed.
    static func enqueuedFailed(
        command: String,
        topic: String?,
        error: WaybillError
    ) -> TransportEvent {
        var event = TransportEvent(.enqueuedFailed, since: nil, topic: topic, error: error)
        event.command = command
        return event
    }

    /// An observer has missed a number of events.
    static func missed(_ count: Int) -> TransportEvent {
        var event = TransportEvent(.missed)
        event.count = count
        return event
    }

    /// An event with the values that several kinds have, and with a duration from an instant to now.
    init(
        _ kind: Kind,
        since begun: ContinuousClock.Instant?,
        host: String? = nil,
        attempt: Int? = nil,
        topic: String? = nil,
        byteCount: Int? = nil,
        qos: QoS? = nil,
        error: WaybillError? = nil
    ) {
        self.init(kind)
        duration = begun?.duration(to: time)
        self.host = host
        self.attempt = attempt
        self.topic = topic
        self.byteCount = byteCount
        self.qos = qos
        self.error = error
    }
}
