import MQTTWire
import Waybill
import WaybillSession

/// Converts subscriptions into the filters of SUBSCRIBE packets, and checks requests to unsubscribe.
enum MQTTSubscribeMapping {
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
        return all
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
                .headers: !request.headers.isEmpty, .ackMode: options.ackMode != nil,
                .receipt: options.asksForReceipt != nil, .method: options.method != nil,
                .eventTypes: options.eventTypes != nil, .lastEventID: options.lastEventID != nil,
            ],
            request
        )
        if version != .v5 {
            try MQTTMapping.refuse(
                [
                    .noLocal: options.noLocal, .retainAsPublished: options.retainAsPublished,
                    .retainHandling: options.retainHandling != .send,
                ],
                request,
                version
            )
        }
        let subscription = MQTTSubscription(
            filter: request.topic ?? "",
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

    /// Checks an unsubscribe request; its headers become user properties.
    ///
    /// - Throws: `unsupported`, `invalidEntry`.
    static func checkUnsubscription(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        guard request.body.isEmpty else {
            throw MQTTMapping.unsupported("the body of an unsubscribe", request)
        }
        if version != .v5 {
            try MQTTMapping.refuse([.headers: !request.headers.isEmpty], request, version)
        }
        var properties = MQTTProperties()
        properties.userProperties = request.headers.pairs
        let packet = MQTTUnsubscribe(
            packetIdentifier: 1,
            filters: [request.topic ?? ""],
            properties: properties
        )
        try MQTTMapping.checkEncoding(request) { (scratch) throws(MQTTEncodingError) in
            try packet.encode(into: &scratch, version: version)
        }
    }
}
