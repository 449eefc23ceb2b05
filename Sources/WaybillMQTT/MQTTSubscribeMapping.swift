import MQTTWire
import Waybill
import WaybillSession

/// Converts subscriptions into the filters of SUBSCRIBE packets, and checks requests to unsubscribe.
enum MQTTSubscribeMapping {
    /// A request of the transport's own, for errors and for packets without properties.
    static func request(_ filter: String?) -> Request {
        Request(topic: filter, command: .subscribe)
    }

    /// Returns the filters of a subscribe request, without duplicates.
    static func subscriptions(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) -> [MQTTSubscription] {
        guard request.body.isEmpty else {
            throw MQTTMapping.unsupported("body of a subscription", request)
        }
        if version != .v5 {
            try MQTTMapping.refuse([.headers: request.statesHeaders], request, version)
        }
        try checkOptions(request, version: version)
        var all: [MQTTSubscription] = []
        for part in request.partsByTopic { all.append(try subscription(part)) }
        try checkEncoding(all, request, version: version)
        return all
    }

    /// Returns the properties of a subscribe request.
    static func properties(_ request: Request) -> MQTTSubscribeProperties {
        MQTTSubscribeProperties(
            identifier: request.command[.subscriptionIdentifier] ?? .automatic,
            userProperties: request.headers.pairs
        )
    }

    /// Refuses properties that cannot be sent.
    private static func checkEncoding(
        _ all: [MQTTSubscription],
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        if case .number(let number) = request.command[.subscriptionIdentifier] {
            guard (1...MQTTRouter.maximumIdentifier).contains(number) else {
                throw WaybillError(
                    .invalidEntry,
                    "a subscription identifier is a number from 1 to 268,435,455"
                )
                .about(request)
            }
        }
        guard !request.headers.isEmpty else { return }
        var packet = MQTTSubscribe(packetIdentifier: 1, subscriptions: all)
        packet.properties.userProperties = request.headers.pairs
        try MQTTMapping.checkEncoding(request) { (scratch) throws(MQTTEncodingError) in
            try packet.encode(into: &scratch, version: version)
        }
    }

    /// Returns the filter of a shared subscription (MQTT 5, 4.8.2); without a share name, the filter itself.
    ///
    /// - Throws: `invalidEntry` for a name that is empty, has `/`, `+` or `#`, or belongs to a filter that has a share name
    ///   of its own.
    private static func filter(_ request: Request) throws(WaybillError) -> String {
        let filter = request.topic ?? ""
        guard let shareName = request.command[.shareName] else { return filter }
        let forbidden = [UInt8(ascii: "/"), UInt8(ascii: "+"), UInt8(ascii: "#")]
        guard !shareName.utf8.isEmpty, !shareName.utf8.contains(where: forbidden.contains) else {
            throw WaybillError(.invalidEntry, "a share name is not empty and has no /, + or #")
                .about(request)
        }
        guard !filter.utf8.starts(with: "$share/".utf8) else {
            throw WaybillError(.invalidEntry, "the topic has a share name already").about(request)
        }
        return "$share/\(shareName)/\(filter)"
    }

    /// Refuses options that this version of MQTT does not support.
    private static func checkOptions(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        let command = request.command
        guard !command.isPlain else { return }
        var options = OptionReader(request)
        // Read where the filters are made, and where the listener is.
        _ = options.take(.timeout)
        _ = options.take(.buffering)
        _ = options.take(.manualAcknowledgement)
        _ = options.take(.waitsForConnection)
        switch version {
        case .v5:
            _ = options.take(.noLocal)
            _ = options.take(.retainAsPublished)
            _ = options.take(.retainHandling)
            _ = options.take(.subscriptionIdentifier)
            _ = options.take(.shareName)
        case .v3_1_1:
            // These values state what is always so there.
            if command[.retainHandling] == .send { _ = options.take(.retainHandling) }
            if command[.subscriptionIdentifier]?.isNumber == false {
                _ = options.take(.subscriptionIdentifier)
            }
        }
        try options.finish(for: MQTTMapping.name(of: version))
    }

    private static func subscription(_ request: Request) throws(WaybillError) -> MQTTSubscription {
        let command = request.command
        let subscription = MQTTSubscription(
            filter: try filter(request),
            qos: MQTTMapping.quality(command.qos),
            noLocal: command.isSet(.noLocal),
            retainAsPublished: command.isSet(.retainAsPublished),
            retainHandling: retainHandling(command[.retainHandling] ?? .send)
        )
        do throws(MQTTEncodingError) {
            let filter = try MQTTTopicFilter(subscription.filter)
            if filter.shareName != nil, subscription.noLocal {
                throw MQTTEncodingError.noLocalOnSharedSubscription
            }
        } catch {
            throw MQTTErrorMapping.error(.encoding(error), request)
        }
        return subscription
    }

    private static func retainHandling(_ handling: RetainHandling) -> MQTTRetainHandling {
        switch handling {
        case .send: .send
        case .sendIfNew: .sendIfNew
        case .doNotSend: .doNotSend
        }
    }

    /// Returns the filters of an unsubscribe request, without duplicates; its headers become user properties.
    ///
    /// - Throws: `unsupported`, `invalidEntry`.
    static func unsubscription(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) -> [String] {
        guard request.body.isEmpty else {
            throw MQTTMapping.unsupported("body of an unsubscribe", request)
        }
        if version != .v5 {
            try MQTTMapping.refuse([.headers: request.statesHeaders], request, version)
        }
        var options = OptionReader(request)
        if version == .v5 { _ = options.take(.shareName) }
        try options.finish(for: MQTTMapping.name(of: version))
        var filters: [String] = []
        for part in request.partsByTopic {
            let filter = try filter(part)
            var packet = MQTTUnsubscribe(packetIdentifier: 1, filters: [filter])
            packet.properties.userProperties = request.headers.pairs
            try MQTTMapping.checkEncoding(part) { (scratch) throws(MQTTEncodingError) in
                try packet.encode(into: &scratch, version: version)
            }
            filters.append(filter)
        }
        return filters
    }
}
