package import Waybill

/// The part of a connection's life that is specific to a transport.
///
/// ``ConnectionLifecycle`` knows a protocol only through its dialect and its ``TransportConnection``.
///
/// | time | call |
/// | --- | --- |
/// | before each attempt | ``prepare(_:_:)``, which adds credentials to the greeting |
/// | for each host | ``open(_:within:_:)``, then the connection's ``TransportConnection/begin(_:onEnd:)`` |
/// | no connection follows | ``conclude(_:isForGood:)`` |
/// | the app has closed the connection | ``flush(within:)`` |
package protocol ConnectionDialect<Connection>: Sendable {
    associatedtype Connection: TransportConnection

    /// Whether a greeting that is prepared again may have other credentials, after a refusal.
    var canReplaceCredentials: Bool { get }

    /// Prepares the greeting of one attempt.
    ///
    /// - Parameters:
    ///   - greeting: The greeting of the request.
    ///   - occasion: The state of this attempt.
    /// - Returns: The greeting to send.
    /// - Throws: `WaybillError`; `CancellationError` if the task was cancelled.
    func prepare(
        _ greeting: Connection.Greeting,
        _ occasion: inout ConnectOccasion
    ) async throws -> Connection.Greeting

    /// Opens a stream to a host and makes a connection over it, which has not begun.
    ///
    /// - Parameters:
    ///   - route: The host, with its address and dialer.
    ///   - timeout: The limit for the whole connect.
    ///   - greeting: The greeting that will be sent.
    /// - Returns: The connection.
    /// - Throws: `WaybillError`; `CancellationError` if the task was cancelled. No stream is left open then.
    func open(
        _ route: Failover.Route,
        within timeout: Duration,
        _ greeting: Connection.Greeting
    ) async throws -> Connection

    /// Ends subscriptions and calls, because the connection is over and no other follows.
    ///
    /// May be called twice.
    ///
    /// - Parameters:
    ///   - cause: The cause; nil if this side ended the connection.
    ///   - isForGood: Whether the transport was shut down.
    func conclude(_ cause: WaybillError?, isForGood: Bool)

    /// Waits until everything that outlives the process is stored, because the app has closed the connection.
    ///
    /// Cancelling the task does not shorten the wait.
    ///
    /// - Parameter timeout: The longest wait.
    func flush(within timeout: Duration) async
}

extension ConnectionDialect {
    /// False, because there is no source of credentials.
    package var canReplaceCredentials: Bool { false }

    /// Does nothing, because nothing is stored.
    package func flush(within timeout: Duration) async {}

    /// Returns the greeting unchanged.
    package func prepare(
        _ greeting: Connection.Greeting,
        _ occasion: inout ConnectOccasion
    ) async throws -> Connection.Greeting { greeting }
}
