/// How to close a connection; what is nil is left to the transport's configuration.
public struct DisconnectOptions: Hashable, Sendable {
    /// How long closing may take before the stream is closed by force.
    public var timeout: Duration?
    /// How long sends of QoS 1 and 2 that are under way may take before (MQTT); zero waits for none.
    public var drainTimeout: Duration?
    /// Whether the server publishes the will all the same (MQTT 5, 3.14.2.1: reason code 0x04).
    public var publishesWill: Bool
    /// Why, as a code that a client may send (MQTT 5, table 3-10), such as `.administrativeAction`; nil for an end as
    /// planned.
    public var reasonCode: MQTTReason.Code?
    /// Why, in words (MQTT 5, 3.14.2.2.3); left out where the server takes no packet that long.
    public var reason: String?
    /// For how long the server keeps the session (MQTT 5, 3.14.2.2.2), in whole seconds; 4,294,967,295 and more
    /// mean for ever.
    ///
    /// Other than zero only where the configuration's `sessionExpiry` is: a session without one cannot get one now.
    public var sessionExpiry: Duration?

    /// Collects options.
    public init(
        timeout: Duration? = nil,
        drainTimeout: Duration? = nil,
        publishesWill: Bool = false,
        reasonCode: MQTTReason.Code? = nil,
        reason: String? = nil,
        sessionExpiry: Duration? = nil
    ) {
        self.timeout = timeout
        self.drainTimeout = drainTimeout
        self.publishesWill = publishesWill
        self.reasonCode = reasonCode
        self.reason = reason
        self.sessionExpiry = sessionExpiry
    }

    /// Whether it tells the server why, or what to do about the will.
    package var statesReason: Bool { publishesWill || reasonCode != nil || reason != nil }
}
