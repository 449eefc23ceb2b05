package import MQTTWire
package import Waybill
import WaybillSession
import WireCore

/// Converts requests into packets, and received packets into receipts, messages and errors.
///
/// `Documentation/Mapping.md` has the same rules as a table.
package enum MQTTMapping {
    // MARK: Requests

    static func publish(
        _ request: Request,
        _ options: SendOptions,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTPublish {
        if request.expectsReply { try checkReply(request, options, version: version) }
        if options.asksForReceipt != nil || options.method != nil {
            try refuse(
                [.receipt: options.asksForReceipt != nil, .method: options.method != nil],
                request
            )
        }
        let isPlain =
            request.headers.isEmpty && request.contentType == nil && options.expiry == nil
            && options.responseTopic == nil && options.correlationData == nil
        let properties =
            isPlain ? MQTTProperties() : try properties(request, options, version: version)
        // Assembled at the end, because the compiler copies a value that a later error may discard.
        return MQTTPublish(
            topic: request.topic ?? "",
            qos: quality(options.qos),
            isRetained: options.retain,
            properties: properties
        )
    }

    private static func properties(
        _ request: Request,
        _ options: SendOptions,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTProperties {
        var properties = MQTTProperties()
        guard version == .v5 else {
            let hasContentTypeAlone =
                request.headers.isEmpty && options.expiry == nil && options.responseTopic == nil
                && options.correlationData == nil
            if hasContentTypeAlone { return properties }
            try refuse(
                [
                    .headers: !request.headers.isEmpty, .expiry: options.expiry != nil,
                    .responseTopic: options.responseTopic != nil,
                    .correlationData: options.correlationData != nil,
                ],
                request,
                version
            )
            return properties
        }
        // Each value is checked first, because setting nil searches the properties.
        if let contentType = request.contentType { properties.contentType = contentType }
        if let expiry = options.expiry {
            properties.messageExpiryInterval = seconds(expiry)
        }
        if let topic = options.responseTopic { properties.responseTopic = topic }
        if let data = options.correlationData { properties.correlationData = data }
        properties.userProperties = request.headers.pairs
        return properties
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
        return all
    }

    private static func subscription(
        _ request: Request,
        _ options: SubscribeOptions,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTSubscription {
        guard request.body.isEmpty else { throw unsupported("body of a subscription", request) }
        try refuse(
            [
                .headers: !request.headers.isEmpty, .ackMode: options.ackMode != nil,
                .receipt: options.asksForReceipt != nil, .method: options.method != nil,
                .eventTypes: options.eventTypes != nil, .lastEventID: options.lastEventID != nil,
            ],
            request
        )
        if version != .v5 {
            try refuse(
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
            qos: quality(options.qos),
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
            throw self.error(.encoding(error), request)
        }
        return subscription
    }

    /// Checks an unsubscribe request; its headers become user properties.
    ///
    /// - Throws: `unsupported`, `invalidEntry`.
    static func checkUnsubscription(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        guard request.body.isEmpty else {
            throw unsupported("the body of an unsubscribe", request)
        }
        if version != .v5 {
            try refuse([.headers: !request.headers.isEmpty], request, version)
        }
        var properties = MQTTProperties()
        properties.userProperties = request.headers.pairs
        let packet = MQTTUnsubscribe(
            packetIdentifier: 1,
            filters: [request.topic ?? ""],
            properties: properties
        )
        var scratch = ByteWriter()
        do {
            try packet.encode(into: &scratch, version: version)
        } catch {
            throw self.error(.encoding(error), request)
        }
    }

    /// Checks a request that acknowledges or refuses a message.
    ///
    /// It may only name the message.
    ///
    /// - Throws: `unsupported`.
    static func checkAcknowledgement(
        _ request: Request,
        _ transaction: String?
    ) throws(WaybillError) {
        guard transaction == nil else { throw unsupported("transactions", request) }
        guard request.topic == nil, request.headers.isEmpty, request.body.isEmpty else {
            throw unsupported("topic, headers or body of an \(request.command.name)", request)
        }
    }

    /// Checks a request that refuses a message.
    ///
    /// - Throws: `unsupported`.
    static func checkRefusal(
        _ request: Request,
        _ transaction: String?,
        version: MQTTVersion
    ) throws(WaybillError) {
        try checkAcknowledgement(request, transaction)
        guard version == .v5 else { throw unsupported("nack in 3.1.1", request) }
    }

    /// Checks whether a message can be sent.
    ///
    /// - Throws: `unsupported`, `invalidEntry`, `limitExceeded`.
    static func check(
        _ publish: MQTTPublish,
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        let writer = MQTTPacketWriter(version: version, isTracing: false)
        do {
            try writer.check(MQTTOutgoingMessage(publish: publish, payload: request.body))
        } catch {
            throw Self.error(error, request)
        }
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

    static func unsupported(_ what: String, _ request: Request) -> WaybillError {
        .unsupported(by: "MQTT", what, request)
    }

    /// Refuses options that this version of MQTT does not support.
    static func refuse(
        _ stated: KeyValuePairs<UnsupportedOption, Bool>,
        _ request: Request,
        _ version: MQTTVersion = .v5
    ) throws(WaybillError) {
        let name = version == .v5 ? "MQTT" : "MQTT 3.1.1"
        try WaybillError.refuse(stated, by: name, request)
    }

    static func quality(_ qos: QoS) -> MQTTQoS {
        switch qos {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce
        case .exactlyOnce: .exactlyOnce
        }
    }

    static func quality(_ qos: MQTTQoS) -> QoS {
        switch qos {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce
        case .exactlyOnce: .exactlyOnce
        }
    }

    /// Returns whole seconds, limited to four bytes.
    ///
    /// A fraction is rounded up, because zero has another meaning.
    static func seconds(_ duration: Duration) -> UInt32 {
        let (seconds, rest) = duration.components
        return UInt32(clamping: max(0, rest > 0 ? seconds &+ 1 : seconds))
    }

    // MARK: Messages

    /// Makes a received message, with a copy of its payload.
    static func message(
        _ arrivals: MQTTArrivals,
        _ index: Int,
        _ run: MQTTArrivals.Run,
        _ copier: inout SliceCopier
    ) -> Message {
        guard !run.hasProperties else { return message(arrivals.publish(at: index)) }
        return Message(
            topic: run.topic,
            body: Payload(sharing: arrivals.payload(at: index, copiedBy: &copier)),
            qos: quality(arrivals.qos(at: index)),
            isRetained: run.isRetained,
            isDuplicate: arrivals.isDuplicate(at: index)
        )
    }

    static func message(_ publish: MQTTPublish) -> Message {
        guard !publish.properties.isEmpty else {
            return Message(
                topic: publish.topic,
                body: Payload(publish.payload),
                qos: quality(publish.qos),
                isRetained: publish.isRetained,
                isDuplicate: publish.isDuplicate
            )
        }
        let properties = publish.properties
        var details = Message.Details()
        details.responseTopic = properties.responseTopic
        details.correlationData = properties.correlationData
        details.expiry = properties.messageExpiryInterval.map { .seconds(Int64($0)) }
        details.isText = properties.payloadFormatIndicator.map { $0 == 1 }
        return Message(
            topic: publish.topic,
            body: Payload(publish.payload),
            headers: Headers(properties.userProperties),
            contentType: properties.contentType,
            qos: quality(publish.qos),
            isRetained: publish.isRetained,
            isDuplicate: publish.isDuplicate,
            details: details == Message.Details() ? nil : details
        )
    }

    // MARK: Receipts

    static func receipt(
        _ request: Request,
        _ reasonCode: MQTTReasonCode,
        _ properties: MQTTProperties
    ) throws(WaybillError) -> Receipt {
        guard !reasonCode.isFailure else { throw refusal(reasonCode, properties, request) }
        guard reasonCode != .success || !properties.isEmpty else {
            return Receipt(of: request.topic)
        }
        return Receipt(
            topic: request.topic,
            reason: reasonCode == .success ? nil : reason(reasonCode, properties),
            headers: Headers(properties.userProperties)
        )
    }

    static func reason(_ code: MQTTReasonCode, _ properties: MQTTProperties) -> String {
        guard let words = properties.reasonString else { return code.description }
        return "\(code): \(words)"
    }

    // MARK: Errors

    static func refusal(
        _ code: MQTTReasonCode,
        _ properties: MQTTProperties,
        _ request: Request?
    ) -> WaybillError {
        let kind: WaybillError.Code =
            switch code {
            case .badUserNameOrPassword, .notAuthorized, .badAuthenticationMethod, .banned:
                .unauthorized
            case .packetTooLarge: .limitExceeded
            // A later attempt, or another host, may succeed.
            case .serverUnavailable, .serverBusy, .useAnotherServer, .connectionRateExceeded:
                .connectionRefused
            case .quotaExceeded where request == nil: .connectionRefused
            default: .rejected
            }
        var error = WaybillError(
            kind,
            "the server refused",
            topic: request?.topic,
            command: request?.command.name,
            peerReason: reason(code, properties),
            underlying: MQTTReason(code, properties)
        )
        // The refusal of a server that has moved is permanent.
        error.isServerBusy = busyCodes.contains(code) && code != .serverMoved
        return error
    }

    /// The codes of a server that asks its clients to wait (MQTT 5, 4.13.2 and table 2-6).
    private static let busyCodes: Set<MQTTReasonCode> = [
        .serverBusy, .quotaExceeded, .connectionRateExceeded, .useAnotherServer, .serverMoved,
    ]

    /// Whether the server redirects the client to another server (MQTT 5, 4.11).
    static func isRedirect(_ code: MQTTReasonCode) -> Bool {
        code == .useAnotherServer || code == .serverMoved
    }

    /// The error of a request that was unanswered when the connection ended and no other followed.
    static func unanswered(_ cause: WaybillError?) -> WaybillError {
        WaybillError(
            .connectionLost,
            "the connection ended before the server answered",
            peerReason: cause?.peerReason,
            underlying: cause?.underlying
        )
    }

    /// The error of a message that was not sent again over a new connection.
    ///
    /// The caller adds the request.
    static func error(_ cause: MQTTDroppedMessage.Cause) -> WaybillError {
        switch cause {
        case .sessionLost:
            WaybillError(
                .connectionLost,
                "the server has lost its session: the message may have arrived or not"
            )
        case .refused(let refusal): Self.refusal(refusal)
        }
    }

    package static func error(_ error: MQTTSendError, _ request: Request) -> WaybillError {
        refusal(error).about(request)
    }

    private static func refusal(_ error: MQTTSendError) -> WaybillError {
        let (code, message): (WaybillError.Code, String) =
            switch error {
            case .notConnected: (.notConnected, "there is no connection")
            case .encoding(.packetTooLarge(let count)):
                (.limitExceeded, "\(count) bytes are more than a packet can hold")
            case .encoding(.needsVersion5): (.unsupported, "this needs MQTT 5")
            case .encoding(let fault): (.invalidEntry, "this cannot be sent: \(fault.text)")
            case .packetTooLarge(let count, let maximum):
                (.limitExceeded, "\(count) bytes are more than the server takes, \(maximum)")
            case .qualityOfServiceNotSupported(let maximum):
                (.unsupported, "the server takes QoS \(maximum.rawValue) at the most")
            case .retainNotSupported: (.unsupported, "the server keeps no retained messages")
            case .wildcardSubscriptionsNotSupported: (.unsupported, "the server takes no wildcards")
            case .sharedSubscriptionsNotSupported:
                (.unsupported, "the server takes no shared subscriptions")
            case .subscriptionIdentifierNotAllowed:
                (.invalidEntry, "a send carries no subscription identifier")
            case .noPacketIdentifierLeft: (.limitExceeded, "65,535 requests wait for the server")
            }
        var refusal = WaybillError(code, message)
        switch error {
        case .qualityOfServiceNotSupported(let maximum):
            refusal.unsupportedOption = .qos
            refusal.supportedQoS = quality(maximum)
            refusal.isLimitOfServer = true
        case .retainNotSupported:
            refusal.unsupportedOption = .retain
            refusal.isLimitOfServer = true
        default: break
        }
        return refusal
    }

    /// The error code for a DISCONNECT of the server (MQTT 5, 3.14.2.1), which decides whether to connect again.
    private static func kind(ofEnd code: MQTTReasonCode) -> WaybillError.Code {
        switch code {
        case .notAuthorized, .badUserNameOrPassword, .banned: .unauthorized
        // Another client with the same identifier has connected. Reconnecting would make the two clients disconnect
        // each other forever. The other codes are errors of this side, which it would repeat.
        case .sessionTakenOver, .malformedPacket, .protocolError, .topicFilterInvalid,
            .topicNameInvalid, .topicAliasInvalid, .packetTooLarge, .receiveMaximumExceeded,
            .payloadFormatInvalid, .retainNotSupported, .qualityOfServiceNotSupported,
            .sharedSubscriptionsNotSupported, .subscriptionIdentifiersNotSupported,
            .wildcardSubscriptionsNotSupported:
            .rejected
        default: .connectionLost
        }
    }

    /// The error when a late CONNECT of an abandoned attempt has reached the server and ended the current connection.
    static var takenOverByLateAttempt: WaybillError {
        WaybillError(
            .connectionLost,
            "an earlier attempt of this client to connect arrived late",
            peerReason: reason(.sessionTakenOver, MQTTProperties()),
            underlying: MQTTReason(.sessionTakenOver)
        )
    }

    /// The error for a DISCONNECT of the server.
    private static func end(_ code: MQTTReasonCode, _ properties: MQTTProperties) -> WaybillError {
        var error = WaybillError(
            kind(ofEnd: code),
            code == .sessionTakenOver
                ? "another client has connected with the same client identifier"
                : "the server closed the connection",
            peerReason: reason(code, properties),
            underlying: MQTTReason(code, properties)
        )
        error.isServerBusy = busyCodes.contains(code)
        return error
    }

    /// The cause of a connection's end; nil if this side ended it.
    package static func error(_ closure: MQTTClosure) -> WaybillError? {
        switch closure {
        case .disconnected: nil
        case .refused(let code, let properties): refusal(code, properties, nil)
        case .disconnectedByServer(let code, let properties): end(code, properties)
        case .packetSizeTooSmall(let maximum):
            WaybillError(
                .limitExceeded,
                "the server takes \(maximum) bytes in a packet, too few for an acknowledgement"
            )
        case .violation(.packetTooLarge(let count, let maximum)):
            WaybillError(
                .limitExceeded,
                "the server sent \(count) bytes in a packet, more than \(maximum)"
            )
        case .violation(let violation):
            WaybillError(
                .protocolViolation,
                "the server broke the protocol: \(violation.text)"
            )
        case .connectTimedOut: WaybillError(.timedOut, "no CONNACK within the time allowed")
        case .keepAliveTimedOut:
            WaybillError(.connectionLost, "no sign of life after a PINGREQ")
        case .endOfStream: WaybillError(.connectionLost, "the server closed the connection")
        }
    }
}
