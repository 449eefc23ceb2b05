/// A client's request other than PUBLISH; the server answers with a code for each filter.
package enum MQTTClientRequest: Sendable {
    /// SUBSCRIBE: the filters and their options, at least one, a subscription identifier, and user properties for the
    /// server (MQTT 5, 3.8.2.1.3).
    ///
    /// The identifier is left out if the server does not support it.
    case subscribe(
        [MQTTSubscription],
        identifier: UInt32? = nil,
        userProperties: [MQTTUserProperty] = []
    )
    /// UNSUBSCRIBE: the filters, at least one, and user properties for the server (MQTT 5, 3.10.2.1.2).
    case unsubscribe([String], userProperties: [MQTTUserProperty] = [])

    /// The exchange that the request begins.
    var exchange: MQTTInflight.Exchange {
        switch self {
        case .subscribe(let subscriptions, _, _): .subscribe(count: subscriptions.count)
        case .unsubscribe(let filters, _): .unsubscribe(count: filters.count)
        }
    }

    /// The packet of the request.
    func packet(_ packetIdentifier: UInt16, within limits: MQTTServerLimits) -> MQTTPacket {
        var properties = MQTTProperties()
        switch self {
        case .subscribe(let subscriptions, let identifier, let userProperties):
            properties.userProperties = userProperties
            if let identifier, limits.subscriptionIdentifiersAvailable {
                properties.subscriptionIdentifiers = [identifier]
            }
            return .subscribe(
                MQTTSubscribe(
                    packetIdentifier: packetIdentifier,
                    subscriptions: subscriptions,
                    properties: properties
                )
            )
        case .unsubscribe(let filters, let userProperties):
            properties.userProperties = userProperties
            return .unsubscribe(
                MQTTUnsubscribe(
                    packetIdentifier: packetIdentifier,
                    filters: filters,
                    properties: properties
                )
            )
        }
    }
}
