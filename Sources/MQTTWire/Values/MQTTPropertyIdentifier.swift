package import WireCore

/// The property identifiers of MQTT 5 (2.2.2.2).
package enum MQTTPropertyIdentifier: UInt8, CaseIterable, Hashable, Sendable {
    case payloadFormatIndicator = 0x01
    case messageExpiryInterval = 0x02
    case contentType = 0x03
    case responseTopic = 0x08
    case correlationData = 0x09
    case subscriptionIdentifier = 0x0B
    case sessionExpiryInterval = 0x11
    case assignedClientIdentifier = 0x12
    case serverKeepAlive = 0x13
    case authenticationMethod = 0x15
    case authenticationData = 0x16
    case requestProblemInformation = 0x17
    case willDelayInterval = 0x18
    case requestResponseInformation = 0x19
    case responseInformation = 0x1A
    case serverReference = 0x1C
    case reasonString = 0x1F
    case receiveMaximum = 0x21
    case topicAliasMaximum = 0x22
    case topicAlias = 0x23
    case maximumQoS = 0x24
    case retainAvailable = 0x25
    case userProperty = 0x26
    case maximumPacketSize = 0x27
    case wildcardSubscriptionAvailable = 0x28
    case subscriptionIdentifiersAvailable = 0x29
    case sharedSubscriptionAvailable = 0x2A

    /// The type of a property's value.
    enum Shape {
        case byte, twoByte, fourByte, variable, string, binary, pair
    }

    var shape: Shape {
        switch self {
        case .payloadFormatIndicator, .requestProblemInformation, .requestResponseInformation,
            .maximumQoS, .retainAvailable, .wildcardSubscriptionAvailable,
            .subscriptionIdentifiersAvailable, .sharedSubscriptionAvailable:
            .byte
        case .serverKeepAlive, .receiveMaximum, .topicAliasMaximum, .topicAlias: .twoByte
        case .messageExpiryInterval, .sessionExpiryInterval, .willDelayInterval, .maximumPacketSize:
            .fourByte
        case .subscriptionIdentifier: .variable
        case .contentType, .responseTopic, .assignedClientIdentifier, .authenticationMethod,
            .responseInformation, .serverReference, .reasonString:
            .string
        case .correlationData, .authenticationData: .binary
        case .userProperty: .pair
        }
    }

    /// Whether the property is allowed in a place (MQTT 5, table 2-4).
    func isAllowed(in place: MQTTPropertyPlace) -> Bool {
        switch self {
        case .payloadFormatIndicator, .messageExpiryInterval, .contentType, .responseTopic,
            .correlationData:
            [.publish, .will].contains(place)
        case .subscriptionIdentifier: [.publish, .subscribe].contains(place)
        case .sessionExpiryInterval: [.connect, .connack, .disconnect].contains(place)
        case .assignedClientIdentifier, .serverKeepAlive, .responseInformation, .maximumQoS,
            .retainAvailable, .wildcardSubscriptionAvailable, .subscriptionIdentifiersAvailable,
            .sharedSubscriptionAvailable:
            place == .connack
        case .authenticationMethod, .authenticationData:
            [.connect, .connack, .auth].contains(place)
        case .requestProblemInformation, .requestResponseInformation: place == .connect
        case .willDelayInterval: place == .will
        case .serverReference: [.connack, .disconnect].contains(place)
        case .reasonString:
            [.connack, .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback, .disconnect, .auth]
                .contains(place)
        case .receiveMaximum, .topicAliasMaximum, .maximumPacketSize:
            [.connect, .connack].contains(place)
        case .topicAlias: place == .publish
        case .userProperty: true
        }
    }

    /// Whether the property may appear there more than once.
    func isRepeatable(in place: MQTTPropertyPlace) -> Bool {
        self == .userProperty || (self == .subscriptionIdentifier && place == .publish)
    }

    /// Whether a number is in the property's range.
    func allows(_ number: UInt32) -> Bool {
        switch self {
        case .receiveMaximum, .maximumPacketSize, .topicAlias, .subscriptionIdentifier: number > 0
        case .sessionExpiryInterval, .messageExpiryInterval, .willDelayInterval, .serverKeepAlive,
            .topicAliasMaximum:
            true
        default: number <= 1
        }
    }
}

/// A place of properties: a packet, or the will inside CONNECT.
package enum MQTTPropertyPlace: CaseIterable, Hashable, Sendable {
    case connect, will, connack, publish, puback, pubrec, pubrel, pubcomp, subscribe, suback
    case unsubscribe, unsuback, disconnect, auth
}

/// A user property: a name and a value.
package typealias MQTTUserProperty = NamedValue

/// A property other than a user property.
struct MQTTProperty: Hashable, Sendable {
    enum Value: Hashable, Sendable {
        /// Byte, two-byte, four-byte and variable byte integers.
        case integer(UInt32)
        case string(String)
        case binary([UInt8])
    }

    var identifier: MQTTPropertyIdentifier
    var value: Value

    /// The length of identifier and value.
    var byteCount: Int {
        switch (value, identifier.shape) {
        case (.string(let string), _): 3 + string.utf8.count
        case (.binary(let bytes), _): 3 + bytes.count
        case (.integer, .byte): 2
        case (.integer, .twoByte): 3
        case (.integer(let number), .variable):
            1 + ByteWriter.byteCount(ofVariableByteInteger: Int(number))
        case (.integer, _): 5
        }
    }
}
