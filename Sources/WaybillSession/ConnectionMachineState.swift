package import Waybill
public import WireCore

/// The state of a ``ConnectionMachine``, and what follows from it alone.
@usableFromInline
package enum ConnectionMachineState<Connection: AnyObject & Sendable>: Sendable {
    case idle(ConnectionIntent)
    // Attempts are out of line, because each request reads this enum, which copies it.
    indirect case connecting(ConnectionAttempt, then: ConnectionIntent)
    case connected(Connection)
    /// The next attempt starts at a time; nil for at once.
    indirect case waiting(ConnectionAttempt, until: WireInstant?)
    indirect case paused(ConnectionAttempt)
    /// A connection is being closed; the intent says what follows.
    case closing(Connection, ConnectionIntent)
    /// An attempt is being stopped, because the app has disconnected.
    indirect case stopping(ConnectionAttempt)
    /// The shell ends subscriptions and calls. What begins now has to wait, because it would end with them.
    case concluding(ConnectionIntent)
    case shutDown

    /// The current attempt, or the next one.
    package var attempt: ConnectionAttempt? {
        switch self {
        case .connecting(let attempt, _), .waiting(let attempt, _), .paused(let attempt),
            .stopping(let attempt):
            attempt
        case .idle, .connected, .closing, .concluding, .shutDown: nil
        }
    }

    /// The connection that requests use.
    package var connection: Connection? {
        switch self {
        case .connected(let connection), .closing(let connection, _): connection
        case .idle, .connecting, .waiting, .paused, .stopping, .concluding, .shutDown: nil
        }
    }

    /// Whether a connection is made again after a loss, or made for a subscription.
    package var isReturning: Bool { attempt?.isLasting ?? false }

    /// Whether there is a connection, or one follows without a request.
    package var isAlive: Bool {
        switch self {
        case .connected, .closing: true
        case .connecting, .waiting, .paused, .stopping: isReturning
        case .idle, .concluding, .shutDown: false
        }
    }

    /// Whether there is a connection or an attempt to make one, also one that waits, is paused or is being stopped.
    package var isUnderWay: Bool {
        switch self {
        case .connected, .closing: true
        case .idle, .connecting, .waiting, .paused, .stopping, .concluding, .shutDown:
            attempt != nil
        }
    }

    /// The error of a request whose wait for a connection has timed out.
    package var absence: WaybillError {
        WaybillError(
            .notConnected,
            absenceText,
            after: attempt?.failure
        )
    }

    private var absenceText: String {
        switch attempt?.origin {
        case .subscription: "there is no connection yet"
        case .demand where isPaused: "the connection is paused"
        case .demand, .loss, nil: "the connection was lost and is not back yet"
        }
    }

    /// Whether the next attempt waits for the end of a pause.
    var isPaused: Bool { if case .paused = self { true } else { false } }

    /// The error of an attempt that ended without its own error, and of the calls that wait for it.
    package var stopReason: WaybillError {
        switch self {
        case .stopping: WaybillError(.notConnected, "disconnected while connecting")
        case .shutDown: .shutDown
        case .idle, .connecting, .connected, .waiting, .paused, .closing, .concluding:
            WaybillError(.notConnected, "the attempt to connect was cancelled")
        }
    }
}
