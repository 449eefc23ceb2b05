package import WireCore

/// When the server sends retained messages for a subscription (MQTT 5, 3.8.3.1).
package enum MQTTRetainHandling: UInt8, CaseIterable, Hashable, Sendable {
    case send = 0
    case sendIfNew = 1
    case doNotSend = 2
}

/// A topic filter and its options (MQTT 5, 3.8.3.1); 3.1.1 has only the quality of service.
package struct MQTTSubscription: Hashable, Sendable {
    package var filter: String
    package var qos: MQTTQoS
    package var noLocal: Bool
    package var retainAsPublished: Bool
    package var retainHandling: MQTTRetainHandling

    package init(
        filter: String,
        qos: MQTTQoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: MQTTRetainHandling = .send
    ) {
        self.filter = filter
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
    }

    fileprivate var options: UInt8 {
        qos.rawValue | (noLocal ? 0x04 : 0) | (retainAsPublished ? 0x08 : 0)
            | retainHandling.rawValue << 4
    }

    fileprivate init(
        filter: String,
        options: UInt8,
        from reader: inout ByteReader,
        version: MQTTVersion
    )
        throws(MQTTViolation)
    {
        guard options & (version == .v5 ? 0xC0 : 0xFC) == 0 else { throw .reservedBits(.subscribe) }
        guard let retainHandling = MQTTRetainHandling(rawValue: options >> 4 & 0x03) else {
            throw .reservedBits(.subscribe)
        }
        self.init(
            filter: filter,
            qos: try reader.qos(options & 0x03),
            noLocal: options & 0x04 != 0,
            retainAsPublished: options & 0x08 != 0,
            retainHandling: retainHandling
        )
    }
}

/// SUBSCRIBE (MQTT 5, 3.8).
package struct MQTTSubscribe: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var subscriptions: [MQTTSubscription]
    package var properties: MQTTProperties

    package init(
        packetIdentifier: UInt16,
        subscriptions: [MQTTSubscription],
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.packetIdentifier = packetIdentifier
        self.subscriptions = subscriptions
        self.properties = properties
    }

    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        guard !subscriptions.isEmpty else { throw .noFilter }
        try writer.append(packet: .subscribe, flags: 0b0010) { (body) throws(MQTTEncodingError) in
            try body.append(packetIdentifier: packetIdentifier)
            try body.append(properties, .subscribe, version)
            for subscription in subscriptions {
                let filter = try MQTTTopicFilter(subscription.filter)
                guard version == .v5 || subscription.options <= 2 else { throw .needsVersion5 }
                guard filter.shareName == nil || !subscription.noLocal else {
                    throw .noLocalOnSharedSubscription
                }
                try body.append(string: subscription.filter, "topic filter")
                body.append(subscription.options)
            }
        }
    }

    init(from reader: inout ByteReader, version: MQTTVersion) throws(MQTTViolation) {
        packetIdentifier = try reader.packetIdentifier(.subscribe)
        properties = try reader.properties(.subscribe, .subscribe, version)
        subscriptions = []
        while reader.remaining > 0 {
            let filter = try reader.topicFilter(.subscribe)
            let options = try reader.uint8(.subscribe)
            let subscription = try MQTTSubscription(
                filter: filter.string,
                options: options,
                from: &reader,
                version: version
            )
            // A protocol error of the client (MQTT 5, 3.8.3-4).
            guard !subscription.noLocal || !filter.isShared else { throw .topicFilterInvalid }
            subscriptions.append(subscription)
        }
        guard !subscriptions.isEmpty else { throw .listEmpty(.subscribe) }
    }
}

/// UNSUBSCRIBE (MQTT 5, 3.10).
package struct MQTTUnsubscribe: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var filters: [String]
    package var properties: MQTTProperties

    package init(
        packetIdentifier: UInt16,
        filters: [String],
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.packetIdentifier = packetIdentifier
        self.filters = filters
        self.properties = properties
    }

    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        guard !filters.isEmpty else { throw .noFilter }
        try writer.append(packet: .unsubscribe, flags: 0b0010) { (body) throws(MQTTEncodingError) in
            try body.append(packetIdentifier: packetIdentifier)
            try body.append(properties, .unsubscribe, version)
            for filter in filters {
                _ = try MQTTTopicFilter(filter)
                try body.append(string: filter, "topic filter")
            }
        }
    }

    init(from reader: inout ByteReader, version: MQTTVersion) throws(MQTTViolation) {
        packetIdentifier = try reader.packetIdentifier(.unsubscribe)
        properties = try reader.properties(.unsubscribe, .unsubscribe, version)
        filters = []
        while reader.remaining > 0 { filters.append(try reader.topicFilter(.unsubscribe).string) }
        guard !filters.isEmpty else { throw .listEmpty(.unsubscribe) }
    }
}

extension ByteReader {
    fileprivate mutating func topicFilter(
        _ kind: MQTTPacketKind
    ) throws(MQTTViolation) -> (string: String, isShared: Bool) {
        let string = try string(kind)
        do {
            return (string, try MQTTTopicFilter(string).shareName != nil)
        } catch {
            throw .topicFilterInvalid
        }
    }
}

extension MQTTSubscribe: CustomStringConvertible {
    package var description: String {
        let list = subscriptions.map { "\($0.filter) qos=\($0.qos.rawValue)" }
        return "SUBSCRIBE id=\(packetIdentifier) " + list.joined(separator: ", ")
    }
}

extension MQTTUnsubscribe: CustomStringConvertible {
    package var description: String {
        "UNSUBSCRIBE id=\(packetIdentifier) " + filters.joined(separator: ", ")
    }
}
