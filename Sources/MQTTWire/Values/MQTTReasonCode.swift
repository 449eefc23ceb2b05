/// A reason code of a server or a client (MQTT 5, 2.4).
///
/// Codes of 0x80 and above are failures.
package struct MQTTReasonCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt8

    @inlinable
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Whether the code is a failure.
    @inlinable
    package var isFailure: Bool { rawValue >= 0x80 }

    /// The same value as ``success``; used in DISCONNECT.
    package static let normalDisconnection = MQTTReasonCode(rawValue: 0x00)
    /// The same value as ``success``; used in SUBACK.
    package static let grantedQoS0 = MQTTReasonCode(rawValue: 0x00)
    package static let success = MQTTReasonCode(rawValue: 0x00)
    package static let grantedQoS1 = MQTTReasonCode(rawValue: 0x01)
    package static let grantedQoS2 = MQTTReasonCode(rawValue: 0x02)
    package static let disconnectWithWillMessage = MQTTReasonCode(rawValue: 0x04)
    package static let noMatchingSubscribers = MQTTReasonCode(rawValue: 0x10)
    package static let noSubscriptionExisted = MQTTReasonCode(rawValue: 0x11)
    package static let continueAuthentication = MQTTReasonCode(rawValue: 0x18)
    package static let reauthenticate = MQTTReasonCode(rawValue: 0x19)
    package static let unspecifiedError = MQTTReasonCode(rawValue: 0x80)
    package static let malformedPacket = MQTTReasonCode(rawValue: 0x81)
    package static let protocolError = MQTTReasonCode(rawValue: 0x82)
    package static let implementationSpecificError = MQTTReasonCode(rawValue: 0x83)
    package static let unsupportedProtocolVersion = MQTTReasonCode(rawValue: 0x84)
    package static let clientIdentifierNotValid = MQTTReasonCode(rawValue: 0x85)
    package static let badUserNameOrPassword = MQTTReasonCode(rawValue: 0x86)
    package static let notAuthorized = MQTTReasonCode(rawValue: 0x87)
    package static let serverUnavailable = MQTTReasonCode(rawValue: 0x88)
    package static let serverBusy = MQTTReasonCode(rawValue: 0x89)
    package static let banned = MQTTReasonCode(rawValue: 0x8A)
    package static let serverShuttingDown = MQTTReasonCode(rawValue: 0x8B)
    package static let badAuthenticationMethod = MQTTReasonCode(rawValue: 0x8C)
    package static let keepAliveTimeout = MQTTReasonCode(rawValue: 0x8D)
    package static let sessionTakenOver = MQTTReasonCode(rawValue: 0x8E)
    package static let topicFilterInvalid = MQTTReasonCode(rawValue: 0x8F)
    package static let topicNameInvalid = MQTTReasonCode(rawValue: 0x90)
    package static let packetIdentifierInUse = MQTTReasonCode(rawValue: 0x91)
    package static let packetIdentifierNotFound = MQTTReasonCode(rawValue: 0x92)
    package static let receiveMaximumExceeded = MQTTReasonCode(rawValue: 0x93)
    package static let topicAliasInvalid = MQTTReasonCode(rawValue: 0x94)
    package static let packetTooLarge = MQTTReasonCode(rawValue: 0x95)
    package static let messageRateTooHigh = MQTTReasonCode(rawValue: 0x96)
    package static let quotaExceeded = MQTTReasonCode(rawValue: 0x97)
    package static let administrativeAction = MQTTReasonCode(rawValue: 0x98)
    package static let payloadFormatInvalid = MQTTReasonCode(rawValue: 0x99)
    package static let retainNotSupported = MQTTReasonCode(rawValue: 0x9A)
    package static let qualityOfServiceNotSupported = MQTTReasonCode(rawValue: 0x9B)
    package static let useAnotherServer = MQTTReasonCode(rawValue: 0x9C)
    package static let serverMoved = MQTTReasonCode(rawValue: 0x9D)
    package static let sharedSubscriptionsNotSupported = MQTTReasonCode(rawValue: 0x9E)
    package static let connectionRateExceeded = MQTTReasonCode(rawValue: 0x9F)
    package static let maximumConnectTime = MQTTReasonCode(rawValue: 0xA0)
    package static let subscriptionIdentifiersNotSupported = MQTTReasonCode(rawValue: 0xA1)
    package static let wildcardSubscriptionsNotSupported = MQTTReasonCode(rawValue: 0xA2)

    /// Every code of the specification with its name.
    package static let names: [(code: MQTTReasonCode, name: String)] = [
        (.success, "Success"),
        (.grantedQoS1, "Granted QoS 1"),
        (.grantedQoS2, "Granted QoS 2"),
        (.disconnectWithWillMessage, "Disconnect with Will Message"),
        (.noMatchingSubscribers, "No matching subscribers"),
        (.noSubscriptionExisted, "No subscription existed"),
        (.continueAuthentication, "Continue authentication"),
        (.reauthenticate, "Re-authenticate"),
        (.unspecifiedError, "Unspecified error"),
        (.malformedPacket, "Malformed Packet"),
        (.protocolError, "Protocol Error"),
        (.implementationSpecificError, "Implementation specific error"),
        (.unsupportedProtocolVersion, "Unsupported Protocol Version"),
        (.clientIdentifierNotValid, "Client Identifier not valid"),
        (.badUserNameOrPassword, "Bad User Name or Password"),
        (.notAuthorized, "Not authorized"),
        (.serverUnavailable, "Server unavailable"),
        (.serverBusy, "Server busy"),
        (.banned, "Banned"),
        (.serverShuttingDown, "Server shutting down"),
        (.badAuthenticationMethod, "Bad authentication method"),
        (.keepAliveTimeout, "Keep Alive timeout"),
        (.sessionTakenOver, "Session taken over"),
        (.topicFilterInvalid, "Topic Filter invalid"),
        (.topicNameInvalid, "Topic Name invalid"),
        (.packetIdentifierInUse, "Packet Identifier in use"),
        (.packetIdentifierNotFound, "Packet Identifier not found"),
        (.receiveMaximumExceeded, "Receive Maximum exceeded"),
        (.topicAliasInvalid, "Topic Alias invalid"),
        (.packetTooLarge, "Packet too large"),
        (.messageRateTooHigh, "Message rate too high"),
        (.quotaExceeded, "Quota exceeded"),
        (.administrativeAction, "Administrative action"),
        (.payloadFormatInvalid, "Payload format invalid"),
        (.retainNotSupported, "Retain not supported"),
        (.qualityOfServiceNotSupported, "QoS not supported"),
        (.useAnotherServer, "Use another server"),
        (.serverMoved, "Server moved"),
        (.sharedSubscriptionsNotSupported, "Shared Subscriptions not supported"),
        (.connectionRateExceeded, "Connection rate exceeded"),
        (.maximumConnectTime, "Maximum connect time"),
        (.subscriptionIdentifiersNotSupported, "Subscription Identifiers not supported"),
        (.wildcardSubscriptionsNotSupported, "Wildcard Subscriptions not supported"),
    ]
}

extension MQTTReasonCode: CustomStringConvertible {
    /// The specification's name and the code in hexadecimal.
    package var description: String {
        let hex = String(rawValue, radix: 16, uppercase: true)
        let code = "0x" + (rawValue < 16 ? "0" : "") + hex
        guard let name = Self.names.first(where: { $0.code == self })?.name else { return code }
        return "\(name) (\(code))"
    }
}

extension MQTTReasonCode {
    /// Whether the code is allowed in a packet of a kind.
    ///
    /// In CONNACK of 3.1.1 the five return codes correspond to codes of MQTT 5.
    package static func isAllowed(
        _ code: MQTTReasonCode,
        in kind: MQTTPacketKind,
        version: MQTTVersion
    ) -> Bool {
        switch (kind, version) {
        case (.connack, .v3_1_1):
            code == .success || connectReturnCodes.contains { $0.code == code }
        case (.suback, .v3_1_1): [0x00, 0x01, 0x02, 0x80].contains(code.rawValue)
        case (_, .v3_1_1): code == .success
        case (_, .v5): table(for: kind).contains(code.rawValue)
        }
    }

    /// Whether the peer of a role may send DISCONNECT with a code (MQTT 5, table 3-10).
    package static func mayDisconnect(_ code: MQTTReasonCode, heardBy role: MQTTRole) -> Bool {
        switch role {
        case .client: code != .disconnectWithWillMessage
        case .server: clientDisconnectTable.contains(code.rawValue)
        }
    }

    private static let clientDisconnectTable: [UInt8] = [
        0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    ]

    /// The return codes of CONNACK in 3.1.1 (3.2.2.3) and the corresponding codes of MQTT 5.
    package static let connectReturnCodes: [(returnCode: UInt8, code: MQTTReasonCode)] = [
        (1, .unsupportedProtocolVersion),
        (2, .clientIdentifierNotValid),
        (3, .serverUnavailable),
        (4, .badUserNameOrPassword),
        (5, .notAuthorized),
    ]

    private static func table(for kind: MQTTPacketKind) -> [UInt8] {
        switch kind {
        case .connack: connackTable
        case .puback, .pubrec: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
        case .pubrel, .pubcomp: [0x00, 0x92]
        case .suback: subackTable
        case .unsuback: [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]
        case .disconnect: disconnectTable
        case .auth: [0x00, 0x18, 0x19]
        default: []
        }
    }

    private static let connackTable: [UInt8] = [
        0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95,
        0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
    ]

    private static let subackTable: [UInt8] = [
        0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2,
    ]

    private static let disconnectTable: [UInt8] = [
        0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94,
        0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
    ]
}
