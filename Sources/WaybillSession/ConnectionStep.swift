package import Waybill
package import WireCore

/// What a series of attempts began with.
package enum SeriesOrigin: Sendable {
    /// A request or an explicit connect, which waits for it.
    case demand
    /// A stream that begins offline: the series goes on although nothing waits for it.
    case stream
    /// The loss of the connection.
    case loss
}

/// The attempt that is under way, or comes next.
@usableFromInline
package struct ConnectionAttempt: Sendable {
    package let series: UInt64
    package let origin: SeriesOrigin
    /// From 1 within the series; 0 before the first.
    package var number: Int
    /// Why the attempt before has failed, or the connection before was lost.
    package var failure: WaybillError?
    /// Whether a stream wants a connection, too, so that more attempts follow one on demand.
    package var isWantedByStream = false
    /// That the new connection is over, and why, before it was taken over.
    package var earlyEnd: EarlyEnd?

    /// The end of a connection that the peer has just accepted.
    package struct EarlyEnd: Sendable {
        package let cause: WaybillError?
    }

    /// Whether the series goes on although nothing waits for it.
    package var isLasting: Bool { origin != .demand }
}

/// What follows from an event.
package struct ConnectionStep<Connection: Sendable>: Sendable {
    package var changes: [ConnectionChange] = []
    package var action = ConnectionAction<Connection>.none
    /// The error of calls that wait for a series which has just failed.
    package var failure: WaybillError?
}

/// What is to be done once the lock is open.
package enum ConnectionAction<Connection: Sendable>: Sendable {
    case none
    /// The request goes over this connection.
    case use(Connection)
    /// Wait for the series under way; for a limited time if it may last.
    case join(isLimited: Bool)
    /// Begin a series.
    case begin
    /// The series goes on with the next attempt, at its time.
    case goOn
    /// Wake the series, which waits.
    case wake
    case close(Connection)
    /// Cancel the series, and wait until it has cleaned up.
    case stop
    /// Tell that the connection is over and no other follows.
    case conclude(WaybillError?, isForGood: Bool)
}

/// What a series does next.
package enum SeriesTurn: Sendable {
    /// Try for this time, counted from 1.
    case open(Int)
    /// Wait until a time; nil for until it is woken.
    case wait(WireInstant?)
    /// The series is over.
    case end
}

/// What observers of a transport are told, within the lock, so that the order is that of the changes.
package enum ConnectionChange: Sendable {
    case connecting(attempt: Int)
    case connected
    /// The attempt of this number comes after a while; without a delay, after a pause.
    case waiting(Duration?, attempt: Int, cause: WaybillError)
    /// The connection that was there is over.
    case ended(cause: WaybillError?)
    /// No other one follows.
    case disconnected(cause: WaybillError?)
}
