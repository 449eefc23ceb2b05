/// The protocol versions, by the level in CONNECT.
package enum MQTTVersion: UInt8, CaseIterable, Hashable, Sendable {
    /// MQTT 3.1.1 (OASIS, 2014).
    case v3_1_1 = 4
    /// MQTT 5.0 (OASIS, 2019).
    case v5 = 5
}

/// The quality of service of a message (MQTT 5, 4.3).
package enum MQTTQoS: UInt8, CaseIterable, Comparable, Hashable, Sendable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    package static func < (left: MQTTQoS, right: MQTTQoS) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The kinds of control packet, by their number in the fixed header (MQTT 5, 2.1.2).
package enum MQTTPacketKind: UInt8, CaseIterable, Hashable, Sendable {
    case connect = 1
    case connack, publish, puback, pubrec, pubrel, pubcomp, subscribe, suback, unsubscribe
    case unsuback, pingreq, pingresp, disconnect, auth

    /// The fixed flags of the header; nil for PUBLISH, whose flags vary.
    var fixedFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        default: 0
        }
    }
}

/// A side of a connection.
package enum MQTTRole: Hashable, Sendable {
    case client, server

    /// Whether the other side may send such a packet.
    func accepts(_ kind: MQTTPacketKind, version: MQTTVersion) -> Bool {
        switch kind {
        case .connect, .subscribe, .unsubscribe, .pingreq: self == .server
        case .connack, .suback, .unsuback, .pingresp: self == .client
        case .disconnect: self == .server || version == .v5
        case .auth: version == .v5
        case .publish, .puback, .pubrec, .pubrel, .pubcomp: true
        }
    }
}
