import WireCore

/// The properties of a packet (MQTT 5, 2.2.2).
///
/// The protocol's properties come first, then the user properties, each group in the order of the wire (3.3.2.3.7).
///
/// An empty value allocates no memory.
package struct MQTTProperties: Hashable, Sendable {
    /// The protocol's properties.
    var list: [MQTTProperty] = []
    /// The user properties in order; names may repeat.
    package var userProperties: [MQTTUserProperty] = []

    package init() {}

    package var isEmpty: Bool { list.isEmpty && userProperties.isEmpty }

    /// The length of all properties, without the length field before them.
    var byteCount: Int {
        var count = 0
        for property in list { count += property.byteCount }
        for property in userProperties {
            count += 5 + property.name.utf8.count + property.value.utf8.count
        }
        return count
    }

    /// Whether a property is present; its value is not read.
    func contains(_ identifier: MQTTPropertyIdentifier) -> Bool {
        for property in list where property.identifier == identifier { return true }
        return false
    }

    /// The subscription identifier, if there is no other property; 0 without any property; otherwise nil.
    var onlySubscriptionIdentifier: UInt32? {
        guard userProperties.isEmpty, list.count < 2 else { return nil }
        guard let property = list.first else { return 0 }
        guard property.identifier == .subscriptionIdentifier,
            case .integer(let number) = property.value
        else { return nil }
        return number
    }

    private func value(_ identifier: MQTTPropertyIdentifier) -> MQTTProperty.Value? {
        list.first { $0.identifier == identifier }?.value
    }

    private mutating func set(
        _ identifier: MQTTPropertyIdentifier,
        _ value: MQTTProperty.Value?
    ) {
        let index = list.firstIndex { $0.identifier == identifier }
        switch (index, value) {
        case (let index?, let value?): list[index].value = value
        case (let index?, nil): list.remove(at: index)
        case (nil, let value?): list.append(MQTTProperty(identifier: identifier, value: value))
        case (nil, nil): break
        }
    }

    private func integer(_ identifier: MQTTPropertyIdentifier) -> UInt32? {
        guard case .integer(let number) = value(identifier) else { return nil }
        return number
    }

    private func string(_ identifier: MQTTPropertyIdentifier) -> String? {
        guard case .string(let string) = value(identifier) else { return nil }
        return string
    }

    private func binary(_ identifier: MQTTPropertyIdentifier) -> [UInt8]? {
        guard case .binary(let bytes) = value(identifier) else { return nil }
        return bytes
    }
}

// MARK: By name

extension MQTTProperties {
    package var payloadFormatIndicator: UInt8? {
        get { integer(.payloadFormatIndicator).map { UInt8(truncatingIfNeeded: $0) } }
        set { set(.payloadFormatIndicator, newValue.map { .integer(UInt32($0)) }) }
    }

    package var messageExpiryInterval: UInt32? {
        get { integer(.messageExpiryInterval).map { UInt32(truncatingIfNeeded: $0) } }
        set { set(.messageExpiryInterval, newValue.map { .integer(UInt32($0)) }) }
    }

    package var contentType: String? {
        get { string(.contentType) }
        set { set(.contentType, newValue.map { .string($0) }) }
    }

    package var responseTopic: String? {
        get { string(.responseTopic) }
        set { set(.responseTopic, newValue.map { .string($0) }) }
    }

    package var correlationData: [UInt8]? {
        get { binary(.correlationData) }
        set { set(.correlationData, newValue.map { .binary($0) }) }
    }

    package var sessionExpiryInterval: UInt32? {
        get { integer(.sessionExpiryInterval).map { UInt32(truncatingIfNeeded: $0) } }
        set { set(.sessionExpiryInterval, newValue.map { .integer(UInt32($0)) }) }
    }

    package var assignedClientIdentifier: String? {
        get { string(.assignedClientIdentifier) }
        set { set(.assignedClientIdentifier, newValue.map { .string($0) }) }
    }

    package var serverKeepAlive: UInt16? {
        get { integer(.serverKeepAlive).map { UInt16(truncatingIfNeeded: $0) } }
        set { set(.serverKeepAlive, newValue.map { .integer(UInt32($0)) }) }
    }

    package var authenticationMethod: String? {
        get { string(.authenticationMethod) }
        set { set(.authenticationMethod, newValue.map { .string($0) }) }
    }

    package var authenticationData: [UInt8]? {
        get { binary(.authenticationData) }
        set { set(.authenticationData, newValue.map { .binary($0) }) }
    }

    package var requestProblemInformation: Bool? {
        get { integer(.requestProblemInformation).map { $0 != 0 } }
        set { set(.requestProblemInformation, newValue.map { .integer($0 ? 1 : 0) }) }
    }

    package var willDelayInterval: UInt32? {
        get { integer(.willDelayInterval).map { UInt32(truncatingIfNeeded: $0) } }
        set { set(.willDelayInterval, newValue.map { .integer(UInt32($0)) }) }
    }

    package var requestResponseInformation: Bool? {
        get { integer(.requestResponseInformation).map { $0 != 0 } }
        set { set(.requestResponseInformation, newValue.map { .integer($0 ? 1 : 0) }) }
    }

    package var responseInformation: String? {
        get { string(.responseInformation) }
        set { set(.responseInformation, newValue.map { .string($0) }) }
    }

    package var serverReference: String? {
        get { string(.serverReference) }
        set { set(.serverReference, newValue.map { .string($0) }) }
    }

    package var reasonString: String? {
        get { string(.reasonString) }
        set { set(.reasonString, newValue.map { .string($0) }) }
    }

    package var receiveMaximum: UInt16? {
        get { integer(.receiveMaximum).map { UInt16(truncatingIfNeeded: $0) } }
        set { set(.receiveMaximum, newValue.map { .integer(UInt32($0)) }) }
    }

    package var topicAliasMaximum: UInt16? {
        get { integer(.topicAliasMaximum).map { UInt16(truncatingIfNeeded: $0) } }
        set { set(.topicAliasMaximum, newValue.map { .integer(UInt32($0)) }) }
    }

    package var topicAlias: UInt16? {
        get { integer(.topicAlias).map { UInt16(truncatingIfNeeded: $0) } }
        set { set(.topicAlias, newValue.map { .integer(UInt32($0)) }) }
    }

    package var retainAvailable: Bool? {
        get { integer(.retainAvailable).map { $0 != 0 } }
        set { set(.retainAvailable, newValue.map { .integer($0 ? 1 : 0) }) }
    }

    package var maximumPacketSize: UInt32? {
        get { integer(.maximumPacketSize).map { UInt32(truncatingIfNeeded: $0) } }
        set { set(.maximumPacketSize, newValue.map { .integer(UInt32($0)) }) }
    }

    package var wildcardSubscriptionAvailable: Bool? {
        get { integer(.wildcardSubscriptionAvailable).map { $0 != 0 } }
        set { set(.wildcardSubscriptionAvailable, newValue.map { .integer($0 ? 1 : 0) }) }
    }

    package var subscriptionIdentifiersAvailable: Bool? {
        get { integer(.subscriptionIdentifiersAvailable).map { $0 != 0 } }
        set { set(.subscriptionIdentifiersAvailable, newValue.map { .integer($0 ? 1 : 0) }) }
    }

    package var sharedSubscriptionAvailable: Bool? {
        get { integer(.sharedSubscriptionAvailable).map { $0 != 0 } }
        set { set(.sharedSubscriptionAvailable, newValue.map { .integer($0 ? 1 : 0) }) }
    }

    /// The highest quality of service that a server supports; nil means all.
    package var maximumQoS: MQTTQoS? {
        get {
            integer(.maximumQoS) == 0 ? .atMostOnce : integer(.maximumQoS).map { _ in .atLeastOnce }
        }
        set { set(.maximumQoS, newValue.map { .integer(UInt32($0.rawValue)) }) }
    }

    /// The number of different subscription identifiers that are kept of a received message.
    ///
    /// A message with more counts as one without any: its topic determines the matching filters.
    package static let subscriptionIdentifierLimit = 64

    /// The subscriptions that a message matched, or the single identifier in SUBSCRIBE; duplicates are removed on
    /// receipt.
    package var subscriptionIdentifiers: [UInt32] {
        get {
            list.compactMap { property in
                guard property.identifier == .subscriptionIdentifier,
                    case .integer(let number) = property.value
                else { return nil }
                return number
            }
        }
        set {
            list.removeAll { $0.identifier == .subscriptionIdentifier }
            list += newValue.map {
                MQTTProperty(identifier: .subscriptionIdentifier, value: .integer($0))
            }
        }
    }
}
