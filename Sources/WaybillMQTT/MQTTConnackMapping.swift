import MQTTWire
import Waybill

/// Converts the properties of a CONNACK for the app.
enum MQTTConnackMapping {
    /// Converts a CONNACK of MQTT 5.
    static func properties(_ connack: MQTTConnackPacket) -> MQTTConnack {
        let stated = connack.properties
        let limits = MQTTServerLimits(connack, version: .v5)
        var properties = MQTTConnack()
        properties.sessionExpiry = stated.sessionExpiryInterval.map { .seconds(Int64($0)) }
        properties.receiveMaximum = limits.receiveMaximum
        properties.maximumQoS = MQTTMapping.quality(limits.maximumQoS)
        properties.retainAvailable = limits.retainAvailable
        properties.maximumPacketSize = stated.maximumPacketSize.map { Int($0) }
        properties.assignedClientIdentifier = stated.assignedClientIdentifier
        properties.topicAliasMaximum = Int(limits.topicAliasMaximum)
        properties.reasonString = stated.reasonString
        properties.userProperties = Headers(stated.userProperties)
        properties.wildcardSubscriptionAvailable = limits.wildcardSubscriptionAvailable
        properties.subscriptionIdentifiersAvailable = limits.subscriptionIdentifiersAvailable
        properties.sharedSubscriptionAvailable = limits.sharedSubscriptionAvailable
        properties.serverKeepAlive = stated.serverKeepAlive.map { .seconds(Int64($0)) }
        properties.responseInformation = stated.responseInformation
        properties.serverReference = stated.serverReference
        return properties
    }
}
