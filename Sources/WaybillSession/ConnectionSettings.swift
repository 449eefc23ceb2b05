/// When a transport connects, and the timeouts of connecting and closing.
package struct ConnectionSettings: Sendable {
    /// Whether a request makes a connection if there is none.
    package var connectsOnDemand: Bool
    /// The timeout of connecting to one host, until the peer has accepted.
    package var connectTimeout: Duration
    /// The timeout of closing.
    package var closeTimeout: Duration
    /// The longest wait, before closing, for acknowledgements of sent messages.
    package var drainTimeout: Duration
    /// Whether sends and subscriptions wait for a connection, unless their options say otherwise.
    package var waitsForConnection: Bool

    package init(
        connectsOnDemand: Bool,
        connectTimeout: Duration,
        closeTimeout: Duration,
        drainTimeout: Duration = .zero,
        waitsForConnection: Bool = false
    ) {
        self.connectsOnDemand = connectsOnDemand
        self.connectTimeout = connectTimeout
        self.closeTimeout = closeTimeout
        self.drainTimeout = drainTimeout
        self.waitsForConnection = waitsForConnection
    }
}
