public import Waybill
public import WireCore

/// One connection, from its open stream to its end.
///
/// A transport implements it with its protocol core and the link's driver. ``ConnectionLifecycle`` calls it.
@usableFromInline
package protocol TransportConnection: AnyObject, Sendable {
    /// The content of the client's first packet, such as MQTT's CONNECT.
    associatedtype Greeting: Sendable

    /// Whether the protocol has sessions that a server may resume. If so, a receipt states whether the server did.
    static var hasServerSessions: Bool { get }

    /// Sends the greeting and waits until the peer has accepted it.
    ///
    /// Called once.
    ///
    /// - Parameters:
    ///   - greeting: The content of the first packet.
    ///   - onEnd: Called once when the connection is over, with no lock held, and before
    ///     ``disconnect(within:abandonment:)`` returns. The argument is the cause; nil if this side ended the
    ///     connection. The closure has to be released after the call, because it references the connection.
    /// - Returns: The peer's answer.
    /// - Throws: `WaybillError` if the peer refused or the connection ended; `CancellationError` if the
    ///   task was cancelled. ``disconnect(within:abandonment:)`` follows.
    func begin(
        _ greeting: Greeting,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt

    /// Restores the state of the previous connection, such as its subscriptions, and waits for each acknowledgement.
    ///
    /// Called once, after ``begin(_:onEnd:)``. Requests follow after it has returned.
    ///
    /// - Parameter receipt: The peer's answer to the greeting.
    /// - Throws: `WaybillError` if the state cannot be restored; `CancellationError`.
    ///   ``disconnect(within:abandonment:)`` follows.
    func resume(_ receipt: Receipt) async throws

    /// Whether the peer has answered more than the greeting: an acknowledgement, a message or a sign of life.
    ///
    /// It is read at the end, and decides whether the limits of the reconnection policy begin anew.
    var hasProgress: Bool { get }

    /// What tells the packet that broke the protocol from others, such as its first bytes; see ``RepeatedViolation``.
    var violationMark: [UInt8] { get }

    /// The current time of the connection's clock.
    var now: WireInstant { get }

    /// Waits until all sends are acknowledged, at most for the timeout. ``disconnect(within:abandonment:)`` follows.
    ///
    /// Cancelling the task does not shorten the wait.
    func drain(within timeout: Duration) async

    /// Ends the connection in the protocol's way, such as with DISCONNECT, and waits until the stream is closed.
    ///
    /// Cancelling the task does not shorten the wait. Does nothing if the connection is over.
    ///
    /// - Parameters:
    ///   - timeout: The wait after which the stream is closed by force.
    ///   - abandonment: The error of unanswered calls; nil for `connectionLost`.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async

    /// Waits until the connection is over and `onEnd` was called.
    ///
    /// - Throws: `CancellationError`.
    func over() async throws

    /// Ends the connection without waiting.
    func disconnectNow()
}

extension TransportConnection {
    /// False, because most protocols have no sessions.
    package static var hasServerSessions: Bool { false }

    /// Empty: the text of the violation alone tells it from others.
    package var violationMark: [UInt8] { [] }
}
