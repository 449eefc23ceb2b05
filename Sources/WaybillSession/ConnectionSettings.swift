package import Waybill
import WireCore

/// When a transport connects, and how long that and closing may take.
package struct ConnectionSettings: Sendable {
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
