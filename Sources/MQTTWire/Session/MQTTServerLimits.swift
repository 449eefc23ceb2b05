import WireCore

/// The limits of a server from its CONNACK (MQTT 5, 3.2.2.3); a 3.1.1 server has no limits.
package struct MQTTServerLimits: Hashable, Sendable {
    /// The longest packet that a client must always be able to send, in bytes: an acknowledgement with a reason.
    package static let smallestPacketSize = 5

    /// The number of messages of QoS 1 and 2 in flight that it accepts.
    package var receiveMaximum = 65_535
    /// The highest quality of service that it supports.
    package var maximumQoS = MQTTQoS.exactlyOnce
    package var retainAvailable = true
    /// The longest packet that it accepts, in bytes.
    package var maximumPacketSize = Int.max
    /// Whether it supports wildcards in filters.
    package var wildcardSubscriptionAvailable = true
    /// Whether it supports subscription identifiers; false for 3.1.1.
    package var subscriptionIdentifiersAvailable = true
    package var sharedSubscriptionAvailable = true
    /// The highest topic alias that it accepts; 0 for none.
    package var topicAliasMaximum: UInt16 = 0

    /// Makes the limits before a CONNACK.
    package init() {}

    /// Checks a message against the limits, except for its length (MQTT 5, 3.2.2-11 and 3.2.2-14).
    ///
    /// - Throws: `MQTTSendError`.
    package func check(_ publish: MQTTPublish) throws(MQTTSendError) {
        guard publish.qos <= maximumQoS else {
            throw .qualityOfServiceNotSupported(maximum: maximumQoS)
        }
        guard !publish.isRetained || retainAvailable else { throw .retainNotSupported }
    }

    /// Checks a subscription against the limits (MQTT 5, 3.2.2.3.11 and 3.2.2.3.13).
    ///
    /// - Throws: `MQTTSendError`, also for an invalid filter.
    package func check(_ subscription: MQTTSubscription) throws(MQTTSendError) {
        let filter: MQTTTopicFilter
        do { filter = try MQTTTopicFilter(subscription.filter) } catch { throw .encoding(error) }
        guard filter.shareName == nil || sharedSubscriptionAvailable else {
            throw .sharedSubscriptionsNotSupported
        }
        let hasWildcard = filter.filter.utf8.contains {
            $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+")
        }
        guard wildcardSubscriptionAvailable || !hasWildcard else {
            throw .wildcardSubscriptionsNotSupported
        }
    }

    /// Tells how long the filters of one SUBSCRIBE or UNSUBSCRIBE may be.
    ///
    /// - Parameter userProperties: The user properties of the packet.
    /// - Returns: The number of bytes, a lower bound.
    package func roomForFilters(beside userProperties: [MQTTUserProperty]) -> Int {
        guard maximumPacketSize < .max else { return .max }
        func lengthByteCount(_ length: Int) -> Int {
            length < 128 ? 1 : length < 16_384 ? 2 : length < 2_097_152 ? 3 : 4
        }
        // A subscription identifier takes up to 5 bytes, and a user property has two strings (MQTT 5, 3.8.2.1).
        let properties = userProperties.reduce(5) { byteCount, property in
            byteCount + 5 + property.name.utf8.count + property.value.utf8.count
        }
        // The first byte, the length of the packet, its identifier, and the properties with their length.
        return maximumPacketSize - 1 - lengthByteCount(maximumPacketSize) - 2
            - lengthByteCount(properties) - properties
    }

    /// The bytes of a filter in a SUBSCRIBE; one less in an UNSUBSCRIBE.
    package static func byteCount(of filter: String) -> Int { 2 + filter.utf8.count + 1 }

    /// Reads the properties of a CONNACK.
    package init(_ connack: MQTTConnackPacket, version: MQTTVersion) {
        let properties = connack.properties
        receiveMaximum = properties.receiveMaximum.map(Int.init) ?? receiveMaximum
        maximumQoS = properties.maximumQoS ?? maximumQoS
        retainAvailable = properties.retainAvailable ?? retainAvailable
        maximumPacketSize = properties.maximumPacketSize.map(Int.init) ?? maximumPacketSize
        wildcardSubscriptionAvailable =
            properties.wildcardSubscriptionAvailable ?? wildcardSubscriptionAvailable
        subscriptionIdentifiersAvailable =
            version == .v5 && (properties.subscriptionIdentifiersAvailable ?? true)
        sharedSubscriptionAvailable =
            properties.sharedSubscriptionAvailable ?? sharedSubscriptionAvailable
        topicAliasMaximum = properties.topicAliasMaximum ?? topicAliasMaximum
    }
}
