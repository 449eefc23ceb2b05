public import Waybill

/// One connection from its stream to its end, as ``ConnectionLifecycle`` sees it.
///
/// A transport implements it over its protocol core and the link's driver.
@usableFromInline
package protocol ConnectionSession: AnyObject, Sendable {
    /// What the client says first, such as MQTT's CONNECT packet.
    associatedtype Greeting: Sendable

    /// Says the first words and waits until the peer has accepted them.
    ///
    /// Called once.
    ///
    /// - Parameters:
    ///   - greeting: The first words.
    ///   - onEnd: To be called once when the connection is over, with the cause unless this side ended
    ///     it; before ``disconnect(within:abandonment:)`` returns, and with no lock held.
    /// - Returns: What the peer said.
    /// - Throws: `WaybillError` when it refused or the connection ended; `CancellationError` when the
    ///   task was cancelled. ``disconnect(within:abandonment:)`` follows.
    func begin(
        _ greeting: Greeting,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt

    /// Says goodbye and waits until the stream is closed, or by force after a time.
    ///
    /// Not to be cut short by cancelling the task; does nothing when the connection is over.
    ///
    /// - Parameters:
    ///   - timeout: The time.
    ///   - abandonment: What unanswered calls fail with; nil for `connectionLost`.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async

    /// Says goodbye without waiting.
    func disconnectNow()
}
