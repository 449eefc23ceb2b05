package import Waybill
package import WireCore

/// The reason for a series of attempts.
package enum SeriesOrigin: Sendable {
    /// A request or an explicit connect. Its task waits for the series.
    case demand
    /// A subscription that starts offline. The series continues although no task waits for it.
    case subscription
    /// The loss of the connection.
    case loss
}

/// The current attempt, or the next one.
@usableFromInline
package struct ConnectionAttempt: Sendable {
    package let series: UInt64
    package let origin: SeriesOrigin
    /// The number within the series, from 1; 0 before the first attempt.
    package var number: Int
    /// The error of the previous attempt, or of the lost connection.
    package var failure: WaybillError?
    /// Whether a subscription also needs the connection, so that further attempts follow a failed one.
    package var isWantedBySubscription = false
    /// Whether the attempt has got as far as the network, so that its failure is no fault of this side alone.
    package var hasDialed = false
    /// The end of the new connection, if it came before the connection was handed over.
    package var earlyEnd: EarlyEnd?

    /// The end of a connection that the peer has just accepted.
    package struct EarlyEnd: Sendable {
        package let cause: WaybillError?
        package let hasProgress: Bool
    }

    /// Whether the series continues although no task waits for it.
    package var isLasting: Bool { origin != .demand }
}

/// What the app wants of the connection, by its latest call.
@usableFromInline
package enum ConnectionIntent: Sendable {
    /// A request or a subscription makes a connection.
    case ready
    /// A subscription waits for the end of the pause. A request makes a connection if none was there before the pause.
    case paused
    /// Only an explicit connect makes a connection, because the app has disconnected.
    case disconnected
}

/// The answer of the machine to one event.
package struct ConnectionStep<Connection: Sendable>: Sendable {
    package var changes: [ConnectionChange] = []
    package var action = ConnectionAction<Connection>.none
    /// The error of calls that wait for the series, which has just failed, or of a request whose limit is over.
    package var failure: WaybillError?
    /// Whether the connection that has ended had lasted ``ReconnectionPolicy/healthyTime``; nil for other events.
    package var wasHealthy: Bool?
    /// Whether a request waits for the interval before the attempt, so that a pause may come first.
    package var waitsForInterval = false
}

extension ConnectionStep {
    /// The step of a request that waits for the series of another request.
    ///
    /// The wait has no limit if the attempt begins in time, because the attempt has one.
    func joining(
        _ attempt: ConnectionAttempt,
        until time: WireInstant,
        within limit: Duration,
        at now: WireInstant,
        isNew: Bool = false
    ) -> ConnectionStep {
        let isLimited = now.duration(to: time) > limit
        var step = self
        step.action = isNew ? .begin(isLimited: isLimited) : .join(isLimited: isLimited)
        step.failure = isLimited ? attempt.failure : nil
        step.waitsForInterval = !isLimited
        return step
    }
}

/// What the shell does after it has opened the lock.
package enum ConnectionAction<Connection: Sendable>: Sendable {
    case none
    /// Send the request over this connection.
    case use(Connection)
    /// Wait for the current series, with a timeout if the series has none.
    case join(isLimited: Bool)
    /// Wait until the running series and its connection are concluded, and pass the event again.
    case postpone
    /// Begin a series, and wait for it if a request has asked for it, as `join` does.
    case begin(isLimited: Bool)
    /// Make the attempt of the series with this number, from 1.
    case open(Int)
    /// Wait, in the series, until a time or until it is woken; nil means no time.
    case wait(until: WireInstant?)
    /// Wake the waiting series.
    case wake
    case close(Connection)
    /// Cancel the series, and wait until it has cleaned up.
    case stop
    /// End subscriptions and calls, because no connection follows, and report when that is done.
    case conclude(WaybillError?, isForGood: Bool)
}

/// A change that is reported to observers.
///
/// It is reported under the lock, so that reports have the order of the changes.
package enum ConnectionChange: Sendable {
    case connecting(attempt: Int)
    case connected
    /// The attempt with this number follows after a delay; without a delay, after a pause.
    case waiting(Duration?, attempt: Int, cause: WaybillError)
    /// The connection is over.
    case ended(cause: WaybillError?)
    /// No other connection follows.
    case disconnected(cause: WaybillError?)
}
