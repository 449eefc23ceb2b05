import MQTTWire
import Waybill
import WaybillSession

/// The properties of a SUBSCRIBE (MQTT 5, 3.8.2.1), which hold for all its filters.
package struct MQTTSubscribeProperties: Sendable {
    var identifier = SubscriptionIdentifier.automatic
    var userProperties: [MQTTUserProperty] = []

    package init(identifier: SubscriptionIdentifier = .automatic) {
        self.identifier = identifier
    }

    init(identifier: SubscriptionIdentifier, userProperties: [MQTTUserProperty]) {
        self.identifier = identifier
        self.userProperties = userProperties
    }

    /// Refuses an identifier of the app's choice that the server does not support.
    func check(_ request: Request, hasIdentifiers: Bool) throws(WaybillError) {
        guard case .number = identifier, !hasIdentifiers else { return }
        var error = WaybillError.unsupported(
            .subscriptionIdentifier,
            "the server takes no subscription identifiers",
            in: request
        )
        error.isLimitOfServer = true
        throw error
    }
}

/// The identifiers of the filters that one call adds.
///
/// Filters without a common topic share an identifier, so that one SUBSCRIBE has them all: a message then matches one of
/// them at most. Filters that overlap get different identifiers, because a server may send a copy for each of them.
struct MQTTIdentifierGroups {
    private var identifier: UInt32?
    private var filters: [MQTTTopicFilter] = []

    /// Returns the identifier of a further filter.
    ///
    /// - Parameters:
    ///   - filter: The filter.
    ///   - next: Makes an identifier that no filter has.
    /// - Returns: The identifier of the filters before it, or a new one.
    mutating func identifier(of filter: String, _ next: () -> UInt32) -> UInt32 {
        guard let parsed = try? MQTTTopicFilter(filter) else { return next() }
        let isFull = filters.count >= MQTTFilterRequest.maximumBatchSize
        if let identifier, !isFull, !filters.contains(where: parsed.overlaps) {
            filters.append(parsed)
            return identifier
        }
        let identifier = next()
        self.identifier = identifier
        filters = [parsed]
        return identifier
    }
}

/// What the filters of one SUBSCRIBE have in common.
private struct MQTTPacketProperties: Hashable {
    var identifier: UInt32?
    var userProperties: [MQTTUserProperty]
    /// The app's call; nil where calls may share a packet.
    var call: UInt64?
}

extension Array<MQTTFilterRequest> {
    /// Divides requests among SUBSCRIBE packets, in the order of their first filters.
    ///
    /// Identifier and user properties belong to a whole packet. Unless the app states a number of filters, a packet has
    /// those of one call: a server that accepted the calls accepts these packets, too.
    ///
    /// - Parameters:
    ///   - limits: The limits of the server.
    ///   - stated: The number of filters in a packet that the app has stated.
    /// - Returns: The requests of each packet.
    func packets(within limits: MQTTServerLimits, stated: Int?) -> [[MQTTFilterRequest]] {
        var order: [MQTTPacketProperties] = []
        var groups: [MQTTPacketProperties: [MQTTFilterRequest]] = [:]
        for request in self {
            let key = MQTTPacketProperties(
                identifier: limits.subscriptionIdentifiersAvailable ? request.identifier : nil,
                userProperties: request.userProperties,
                call: stated == nil ? request.call : nil
            )
            if groups[key] == nil { order.append(key) }
            groups[key, default: []].append(request)
        }
        return order.flatMap { key in
            (groups[key] ?? [])
                .batches(of: stated, within: limits, beside: key.userProperties, \.filter)
        }
    }
}
