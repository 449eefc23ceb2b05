import MQTTWire
import Waybill
import WaybillSession

/// Converts subscriptions into the filters of SUBSCRIBE packets, and checks requests to unsubscribe.
enum MQTTSubscribeMapping {
    /// A request of the transport's own, for errors and for packets without properties.
    static func request(_ filter: String?) -> Request {
        Request(topic: filter, command: .subscribe(SubscribeOptions()))
    }

    /// Returns the filters of a subscribe request, without duplicates.
    static func subscriptions(
        _ request: Request,
        _ options: SubscribeOptions,
        version: MQTTVersion
    ) throws(WaybillError) -> [MQTTSubscription] {
        var all: [MQTTSubscription] = []
        for part in request.partsByTopic {
            all.append(try subscription(part, options, version: version))
        }
        try checkEncoding(all, request, options, version: version)
        return all
    }

    /// Returns the properties of a subscribe request.
    static func properties(
        _ request: Request,
        _ options: SubscribeOptions
    ) -> MQTTSubscribeProperties {
        MQTTSubscribeProperties(
            identifier: options.subscriptionIdentifier,
            userProperties: request.headers.pairs
        )
    }

    /// Refuses properties that cannot be sent.
    private static func checkEncoding(
        _ all: [MQTTSubscription],
        _ request: Request,
        _ options: SubscribeOptions,
        version: MQTTVersion
    ) throws(WaybillError) {
        if case .number(let number) = options.subscriptionIdentifier {
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
    /// - Throws: `unsupported` in 3.1.1, which has no shared subscriptions; `invalidEntry` for a name that is empty, has
    ///   `/`, `+` or `#`, or belongs to a filter that has a share name of its own.
    private static func filter(
        _ request: Request,
        shareName: String?,
        version: MQTTVersion
    ) throws(WaybillError) -> String {
        let filter = request.topic ?? ""
        guard let shareName else { return filter }
        try MQTTMapping.refuse([.shareName: version != .v5], request, version)
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

    private static func subscription(
        _ request: Request,
        _ options: SubscribeOptions,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTSubscription {
        guard request.body.isEmpty else {
            throw MQTTMapping.unsupported("body of a subscription", request)
        }
        try MQTTMapping.refuse(
            [
                .ackMode: options.ackMode != nil,
                .receipt: options.asksForReceipt != nil, .method: options.method != nil,
                .eventTypes: options.eventTypes != nil, .lastEventID: options.lastEventID != nil,
            ],
            request
        )
        if version != .v5 {
            try MQTTMapping.refuse(
                [
                    .headers: request.statesHeaders,
                    .noLocal: options.noLocal, .retainAsPublished: options.retainAsPublished,
                    .retainHandling: options.retainHandling != .send,
                    .subscriptionIdentifier: options.subscriptionIdentifier.isNumber,
                ],
                request,
                version
            )
        }
        let subscription = MQTTSubscription(
            filter: try filter(request, shareName: options.shareName, version: version),
            qos: MQTTMapping.quality(options.qos),
            noLocal: options.noLocal,
            retainAsPublished: options.retainAsPublished,
            retainHandling: retainHandling(options.retainHandling)
        )
        do throws(MQTTEncodingError) {
            let filter = try MQTTTopicFilter(subscription.filter)
            if filter.shareName != nil, options.noLocal {
                throw MQTTEncodingError.noLocalOnSharedSubscription
            }
        } catch {
            throw MQTTErrorMapping.error(.encoding(error), request)
        }
        return subscription
    }

    private static func retainHandling(
        _ handling: SubscribeOptions.RetainHandling
    ) -> MQTTRetainHandling {
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
        _ options: UnsubscribeOptions,
        version: MQTTVersion
    ) throws(WaybillError) -> [String] {
        guard request.body.isEmpty else {
            throw MQTTMapping.unsupported("body of an unsubscribe", request)
        }
        if version != .v5 {
            try MQTTMapping.refuse([.headers: request.statesHeaders], request, version)
        }
        var filters: [String] = []
        for part in request.partsByTopic {
            let filter = try filter(part, shareName: options.shareName, version: version)
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
