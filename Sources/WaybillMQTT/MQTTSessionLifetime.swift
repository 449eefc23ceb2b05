import MQTTWire

/// How long the server keeps a session after its connection.
struct MQTTSessionLifetime: Sendable {
    /// The session expiry interval that CONNECT had, in seconds; nil without one.
    let requested: UInt32?
    /// Whether the server keeps the session.
    private(set) var isKept: Bool

    /// Makes the lifetime of a session from its CONNECT.
    init(_ connect: MQTTConnect) {
        requested = connect.properties.sessionExpiryInterval
        isKept = connect.version == .v5 ? requested ?? 0 > 0 : !connect.cleanStart
    }

    /// Notes the server's own value (MQTT 5, 3.2.2.3.2).
    mutating func note(_ connack: MQTTConnackPacket) {
        if let granted = connack.properties.sessionExpiryInterval { isKept = granted > 0 }
    }
}
