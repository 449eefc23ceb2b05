public import Waybill
public import WireCore

/// One connection from its stream to its end, as ``ConnectionLifecycle`` sees it.
///
/// A transport implements it over its protocol core and the link's driver.
@usableFromInline
package protocol TransportConnection: AnyObject, Sendable {
    /// What the client says first, such as MQTT's CONNECT packet.
    associatedtype Greeting: Sendable

    /// Whether the protocol has sessions that a server may resume, so that their receipts say whether it has.
    static var hasServerSessions: Bool { get }

    /// Says the first words and waits until the peer has accepted them.
    ///
    /// Called once.
    ///
    /// - Parameters:
    ///   - greeting: The first words.
    ///   - onEnd: To be called once when the connection is over, with the cause unless this side ended
    ///     it; before ``disconnect(within:abandonment:)`` returns, and with no lock held. To be let go of then: it
    ///     keeps the session.
    /// - Returns: What the peer said.
    /// - Throws: `WaybillError` when it refused or the connection ended; `CancellationError` when the
    ///   task was cancelled. ``disconnect(within:abandonment:)`` follows.
    func begin(
        _ greeting: Greeting,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt

    /// Restores what the connection before had, such as its subscriptions, each of them acknowledged.
    ///
    /// Called once, after ``begin(_:onEnd:)``; requests follow when it has returned.
    ///
    /// - Parameter receipt: What the peer said.
    /// - Throws: `WaybillError` when that cannot be done; `CancellationError`.
    ///   ``disconnect(within:abandonment:)`` follows.
    func resume(_ receipt: Receipt) async throws

    /// The time by the connection's clock.
    var now: WireInstant { get }

    /// Waits until what was sent is acknowledged, before ``disconnect(within:abandonment:)``; for a time at the most.
    ///
    /// Not to be cut short by cancelling the task.
    func drain(within timeout: Duration) async

    /// Says goodbye and waits until the stream is closed, or by force after a time.
    ///
    /// Not to be cut short by cancelling the task; does nothing when the connection is over.
    ///
    /// - Parameters:
    ///   - timeout: The time.
    ///   - abandonment: What unanswered calls fail with; nil for `connectionLost`.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async

    /// Waits until it is over, and its end was told.
    /// - Throws: `CancellationError`.
    func over() async throws

    /// Says goodbye without waiting.
    func disconnectNow()
}

extension TransportConnection {
    /// False: most protocols have none.
    package static var hasServerSessions: Bool { false }
}
