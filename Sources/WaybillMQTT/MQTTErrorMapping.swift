package import MQTTWire
package import Waybill
import WaybillSession

/// Converts reason codes and the core's errors into receipts and errors.
package enum MQTTErrorMapping {
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
            case .unsupportedProtocolVersion: .unsupported
            default: .rejected
            }
        var error = WaybillError(
            kind,
            code == .unsupportedProtocolVersion
                ? "the server lacks this version of MQTT: set version to the other one"
                : "the server refused",
            topic: request?.topic,
            command: request?.command.name,
            peerReason: reason(code, properties),
            underlying: MQTTReason(code, properties)
        )
        // The refusal of a server that has moved is permanent.
        error.isServerBusy = busyCodes.contains(code) && code != .serverMoved
        // Another host may have it.
        error.isLimitOfServer = code == .unsupportedProtocolVersion
        return error
    }

    /// The codes of a server that asks its clients to wait (MQTT 5, 4.13.2 and table 2-6).
    private static let busyCodes: Set<MQTTReasonCode> = [
        .serverBusy, .quotaExceeded, .connectionRateExceeded, .useAnotherServer, .serverMoved,
    ]

    /// The error of a request that was unanswered when the connection ended and no other followed.
    ///
    /// It has the code of a DISCONNECT that refuses.
    static func unanswered(_ cause: WaybillError?) -> WaybillError {
        let reason = cause?.mqttReason?.code
        let isRefusal = reason != nil && reason != .sessionTakenOver && cause?.isRetryable == false
        return WaybillError(
            isRefusal ? cause?.code ?? .connectionLost : .connectionLost,
            "the connection ended before the server answered",
            restating: cause
        ).arriving(true)
    }

    /// The error of a call that waited for the end of a received message's exchange.
    static var exchangeLost: WaybillError {
        WaybillError(
            .connectionLost,
            "the server has lost its session, and with it the exchange of the message"
        )
    }

    /// The error of a message that was not sent again over a new connection; it may have arrived over an earlier one.
    ///
    /// The caller adds the request.
    static func error(_ cause: MQTTDroppedMessage.Cause) -> WaybillError {
        let error =
            switch cause {
            case .sessionLost:
                WaybillError(
                    .connectionLost,
                    "the server has lost its session: the message may have arrived or not"
                )
            case .refused(let refusal): Self.refusal(refusal)
            case .endedConnections(let count):
                WaybillError.rejectedMessage(afterEnds: count)
            }
        return error.arriving(true)
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
            case .authenticationNotDue: (.rejected, "no authentication is due")
            case .noPacketIdentifierLeft: (.limitExceeded, "65,535 requests wait for the server")
            }
        var refusal = WaybillError(code, message)
        switch error {
        case .qualityOfServiceNotSupported(let maximum):
            refusal.option = .qos
            refusal.supportedQoS = MQTTMapping.quality(maximum)
            refusal.isLimitOfServer = true
        case .retainNotSupported:
            refusal.option = .retained
            refusal.isLimitOfServer = true
        case .sharedSubscriptionsNotSupported:
            refusal.option = .shareName
            refusal.isLimitOfServer = true
        default: break
        }
        return refusal
    }

    /// The error code for a DISCONNECT of the server (MQTT 5, 3.14.2.1), which decides whether to connect again.
    private static func kind(ofEnd code: MQTTReasonCode) -> WaybillError.Code {
        switch code {
        case .notAuthorized, .badUserNameOrPassword, .badAuthenticationMethod, .banned:
            .unauthorized
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

    /// The error of a re-authentication without an authenticator, or in MQTT 3.1.1.
    static var noAuthenticator: WaybillError {
        var error = WaybillError(
            .unsupported,
            "only MQTT 5 with an authenticator authenticates a connection anew"
        )
        error.option = .authenticator
        return error
    }

    /// The error for a subscription identifier that cannot be told apart from that of another subscription.
    static var identifierTaken: WaybillError {
        WaybillError(
            .invalidEntry,
            "another subscription has this identifier, or this one has another identifier"
        )
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
        case .authenticationAbandoned:
            WaybillError(.connectionLost, "the authentication was given up")
        case .authenticationTimedOut:
            WaybillError(.timedOut, "the server did not complete the re-authentication in time")
        case .connectTimedOut: WaybillError(.timedOut, "no CONNACK within the time allowed")
        case .keepAliveTimedOut:
            WaybillError(.connectionLost, "no sign of life after a PINGREQ")
        case .endOfStream: WaybillError(.connectionLost, "the server closed the connection")
        }
    }
}

extension WaybillError {
    /// The same error; one of the app's code becomes retryable, so that another attempt follows.
    var retryableIfForeign: WaybillError {
        guard code == .interceptorFailed || mayPass else { return self }
        return WaybillError(.notConnected, message, restating: self)
    }
}
