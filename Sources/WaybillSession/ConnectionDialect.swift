package import Waybill

/// What one transport does in the course of a connection's life: the one seam between ``ConnectionLifecycle`` and a protocol.
///
/// | when | what is called |
/// | --- | --- |
/// | before each attempt | ``prepare(_:_:)``, which adds credentials to the greeting |
/// | for each host | ``open(_:within:_:)``, then the connection's ``TransportConnection/begin(_:onEnd:)`` |
/// | no connection follows | ``conclude(_:isForGood:)`` |
package protocol ConnectionDialect<Connection>: Sendable {
    associatedtype Connection: TransportConnection

    /// Whether preparing the greeting again may mend that credentials were refused.
    var canReplaceCredentials: Bool { get }

    /// Prepares the greeting of one attempt.
    ///
    /// - Parameters:
    ///   - greeting: The greeting as it was asked for.
    ///   - occasion: What happened in this attempt so far.
    /// - Returns: The greeting to send.
    /// - Throws: `WaybillError`; `CancellationError` when the task was cancelled.
    func prepare(
        _ greeting: Connection.Greeting,
        _ occasion: inout ConnectOccasion
    ) async throws -> Connection.Greeting

    /// Makes a connection over a new stream to a host, not begun yet.
    ///
    /// - Parameters:
    ///   - route: The host, and how it is reached.
    ///   - timeout: How long it may take.
    ///   - greeting: What will be sent first.
    /// - Returns: The connection.
    /// - Throws: `WaybillError`; `CancellationError` when the task was cancelled. Nothing is left open then.
    func open(
        _ route: Failover.Route,
        within timeout: Duration,
        _ greeting: Connection.Greeting
    ) async throws -> Connection

    /// The connection is over and no other follows; may be called twice.
    ///
    /// - Parameters:
    ///   - cause: Why; nil when this side ended it.
    ///   - isForGood: Whether there will never be another one.
    func conclude(_ cause: WaybillError?, isForGood: Bool)
}

extension ConnectionDialect {
    /// False: there is no source of credentials.
    package var canReplaceCredentials: Bool { false }

    /// Sends the greeting as it was asked for.
    package func prepare(
        _ greeting: Connection.Greeting,
        _ occasion: inout ConnectOccasion
    ) async throws -> Connection.Greeting { greeting }
}
