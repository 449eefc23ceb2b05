/// Options for closing a connection; an option that is nil is left to the transport's configuration.
public struct DisconnectOptions: Hashable, Sendable {
    /// The time limit for closing; after it the stream is closed by force.
    public var timeout: Duration?
    /// The time that pending sends of QoS 1 and 2 may take before the close (MQTT); zero waits for none.
    public var drainTimeout: Duration?
    /// Whether the server publishes the will although the close is orderly (MQTT 5, 3.14.2.1: reason code 0x04).
    public var publishesWill: Bool
    /// A reason code that a client may send (MQTT 5, table 3-10), such as `.administrativeAction`; nil for a normal
    /// end.
    public var reasonCode: MQTTReason.Code?
    /// A reason string (MQTT 5, 3.14.2.2.3); left out where the packet would exceed the server's limit.
    public var reason: String?
    /// The time that the server keeps the session (MQTT 5, 3.14.2.2.2), in whole seconds; 4,294,967,295 and more mean
    /// forever.
    ///
    /// It may differ from zero only where the configuration's `sessionExpiry` does. A session without expiry cannot get
    /// one at its end.
    public var sessionExpiry: Duration?

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
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

    /// Whether the options carry a reason, or an instruction about the will, for the server.
    package var statesReason: Bool { publishesWill || reasonCode != nil || reason != nil }
}
