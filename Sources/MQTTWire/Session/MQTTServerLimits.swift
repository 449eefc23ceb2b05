/// What a server allows, as its CONNACK says (MQTT 5, 3.2.2.3); a 3.1.1 server allows everything.
package struct MQTTServerLimits: Hashable, Sendable {
    /// The longest packet that a client must be able to send at any time, in bytes: an acknowledgement with a reason.
    package static let smallestPacketSize = 5

    /// How many messages of QoS 1 and 2 it takes at once.
    package var receiveMaximum = 65_535
    /// The best quality of service it takes.
    package var maximumQoS = MQTTQoS.exactlyOnce
    /// Whether it keeps retained messages.
    package var retainAvailable = true
    /// The longest packet it takes, in bytes.
    package var maximumPacketSize = Int.max
    /// Whether it takes wildcards in filters.
    package var wildcardSubscriptionAvailable = true
    /// Whether it takes subscription identifiers; no 3.1.1 server does.
    package var subscriptionIdentifiersAvailable = true
    /// Whether it takes shared subscriptions.
    package var sharedSubscriptionAvailable = true

    /// What holds before a CONNACK.
    package init() {}

    /// What a message must not ask for (MQTT 5, 3.2.2-11 and 3.2.2-14); its length is not looked at.
    /// - Throws: `MQTTSendError`.
    package func check(_ publish: MQTTPublish) throws(MQTTSendError) {
        guard publish.qos <= maximumQoS else {
            throw .qualityOfServiceNotSupported(maximum: maximumQoS)
        }
        guard !publish.isRetained || retainAvailable else { throw .retainNotSupported }
    }

    /// Reads the properties of a CONNACK.
    package init(_ connack: MQTTConnack, version: MQTTVersion) {
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
    }
}
