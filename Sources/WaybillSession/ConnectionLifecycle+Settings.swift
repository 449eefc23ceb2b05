package import Waybill
import WaybillLink
import WireCore

extension ConnectionLifecycle {
    /// When and how long.
    package struct Settings: Sendable {
        /// Whether a request connects first when there is no connection.
        package var connectsOnDemand: Bool
        /// How long connecting to a host may take, up to the peer's acceptance.
        package var connectTimeout: Duration
        /// How long closing may take.
        package var closeTimeout: Duration
        /// How long what is under way may take before.
        package var drainTimeout: Duration
        /// Whether and when to connect again.
        package var reconnection: ReconnectionPolicy
        /// What becomes of sends meanwhile.
        package var offlineQueue: OfflineQueuePolicy

        package init(
            connectsOnDemand: Bool,
            connectTimeout: Duration,
            closeTimeout: Duration,
            drainTimeout: Duration = .zero,
            reconnection: ReconnectionPolicy,
            offlineQueue: OfflineQueuePolicy = .off
        ) {
            self.connectsOnDemand = connectsOnDemand
            self.connectTimeout = connectTimeout
            self.closeTimeout = closeTimeout
            self.drainTimeout = drainTimeout
            self.reconnection = reconnection
            self.offlineQueue = offlineQueue
        }
    }

    /// What a transport does in the course of its life.
    package struct Actions: Sendable {
        /// Prepares the first words of one attempt.
        ///
        /// Throws `WaybillError`, or `CancellationError` when the task was cancelled.
        package typealias Preparing =
            @Sendable (Connection.Greeting, inout ConnectOccasion) async throws ->
            Connection.Greeting

        /// Makes a session over a new stream to a host, not begun yet, within a time.
        ///
        /// Throws `WaybillError`, or `CancellationError` when the task was cancelled. Nothing is left open then.
        package typealias Opening =
            @Sendable (Failover.Route, Duration, Connection.Greeting) async throws -> Connection

        /// Hears that the connection is over and no other follows: the cause, unless this side ended it, and
        /// whether there will never be another one.
        package typealias Concluding = @Sendable (WaybillError?, _ isForGood: Bool) -> Void

        var prepare: Preparing
        var canReplaceCredentials: Bool
        var open: Opening
        var conclude: Concluding

        /// Collects actions.
        ///
        /// - Parameters:
        ///   - prepare: Prepares the first words of each attempt.
        ///   - canReplaceCredentials: Whether preparing them again may mend that they were refused.
        ///   - open: Makes a session.
        ///   - conclude: Hears that the connection is over and no other follows; may be told twice.
        package init(
            prepare: @escaping Preparing = { greeting, _ in greeting },
            canReplaceCredentials: Bool = false,
            open: @escaping Opening,
            conclude: @escaping Concluding = { _, _ in }
        ) {
            self.prepare = prepare
            self.canReplaceCredentials = canReplaceCredentials
            self.open = open
            self.conclude = conclude
        }
    }
}
