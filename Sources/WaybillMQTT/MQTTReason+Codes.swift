extension MQTTReason {
    /// A reason code (MQTT 5, 2.4); codes of 0x80 and above are failures.
    ///
    /// A number can be used directly, as in `.disconnect(.reasonCode(0x98))`.
    public struct Code: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
        /// The number on the wire.
        public let rawValue: UInt8

        /// Any number, also one that the specification does not define.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Any number, as a literal.
        public init(integerLiteral value: UInt8) {
            rawValue = value
        }

        /// Whether the code is a failure: 0x80 and above.
        public var isFailure: Bool { rawValue >= 0x80 }

        /// 0x00: Normal disconnection, the same number as ``success``.
        public static let normalDisconnection = Code(rawValue: 0x00)
        /// 0x00: Granted QoS 0, the same number as ``success``.
        public static let grantedQoS0 = Code(rawValue: 0x00)
        /// 0x00: Success.
        public static let success = Code(rawValue: 0x00)
        /// 0x01: Granted QoS 1.
        public static let grantedQoS1 = Code(rawValue: 0x01)
        /// 0x02: Granted QoS 2.
        public static let grantedQoS2 = Code(rawValue: 0x02)
        /// 0x04: Disconnect with Will Message.
        public static let disconnectWithWillMessage = Code(rawValue: 0x04)
        /// 0x10: No matching subscribers.
        public static let noMatchingSubscribers = Code(rawValue: 0x10)
        /// 0x11: No subscription existed.
        public static let noSubscriptionExisted = Code(rawValue: 0x11)
        /// 0x18: Continue authentication.
        public static let continueAuthentication = Code(rawValue: 0x18)
        /// 0x19: Re-authenticate.
        public static let reauthenticate = Code(rawValue: 0x19)
        /// 0x80: Unspecified error.
        public static let unspecifiedError = Code(rawValue: 0x80)
        /// 0x81: Malformed Packet.
        public static let malformedPacket = Code(rawValue: 0x81)
        /// 0x82: Protocol Error.
        public static let protocolError = Code(rawValue: 0x82)
        /// 0x83: Implementation specific error.
        public static let implementationSpecificError = Code(rawValue: 0x83)
        /// 0x84: Unsupported Protocol Version.
        public static let unsupportedProtocolVersion = Code(rawValue: 0x84)
        /// 0x85: Client Identifier not valid.
        public static let clientIdentifierNotValid = Code(rawValue: 0x85)
        /// 0x86: Bad User Name or Password.
        public static let badUserNameOrPassword = Code(rawValue: 0x86)
        /// 0x87: Not authorized.
        public static let notAuthorized = Code(rawValue: 0x87)
        /// 0x88: Server unavailable.
        public static let serverUnavailable = Code(rawValue: 0x88)
        /// 0x89: Server busy.
        public static let serverBusy = Code(rawValue: 0x89)
        /// 0x8A: Banned.
        public static let banned = Code(rawValue: 0x8A)
        /// 0x8B: Server shutting down.
        public static let serverShuttingDown = Code(rawValue: 0x8B)
        /// 0x8C: Bad authentication method.
        public static let badAuthenticationMethod = Code(rawValue: 0x8C)
        /// 0x8D: Keep Alive timeout.
        public static let keepAliveTimeout = Code(rawValue: 0x8D)
        /// 0x8E: Session taken over.
        public static let sessionTakenOver = Code(rawValue: 0x8E)
        /// 0x8F: Topic Filter invalid.
        public static let topicFilterInvalid = Code(rawValue: 0x8F)
        /// 0x90: Topic Name invalid.
        public static let topicNameInvalid = Code(rawValue: 0x90)
        /// 0x91: Packet Identifier in use.
        public static let packetIdentifierInUse = Code(rawValue: 0x91)
        /// 0x92: Packet Identifier not found.
        public static let packetIdentifierNotFound = Code(rawValue: 0x92)
        /// 0x93: Receive Maximum exceeded.
        public static let receiveMaximumExceeded = Code(rawValue: 0x93)
        /// 0x94: Topic Alias invalid.
        public static let topicAliasInvalid = Code(rawValue: 0x94)
        /// 0x95: Packet too large.
        public static let packetTooLarge = Code(rawValue: 0x95)
        /// 0x96: Message rate too high.
        public static let messageRateTooHigh = Code(rawValue: 0x96)
        /// 0x97: Quota exceeded.
        public static let quotaExceeded = Code(rawValue: 0x97)
        /// 0x98: Administrative action.
        public static let administrativeAction = Code(rawValue: 0x98)
        /// 0x99: Payload format invalid.
        public static let payloadFormatInvalid = Code(rawValue: 0x99)
        /// 0x9A: Retain not supported.
        public static let retainNotSupported = Code(rawValue: 0x9A)
        /// 0x9B: QoS not supported.
        public static let qualityOfServiceNotSupported = Code(rawValue: 0x9B)
        /// 0x9C: Use another server.
        public static let useAnotherServer = Code(rawValue: 0x9C)
        /// 0x9D: Server moved.
        public static let serverMoved = Code(rawValue: 0x9D)
        /// 0x9E: Shared Subscriptions not supported.
        public static let sharedSubscriptionsNotSupported = Code(rawValue: 0x9E)
        /// 0x9F: Connection rate exceeded.
        public static let connectionRateExceeded = Code(rawValue: 0x9F)
        /// 0xA0: Maximum connect time.
        public static let maximumConnectTime = Code(rawValue: 0xA0)
        /// 0xA1: Subscription Identifiers not supported.
        public static let subscriptionIdentifiersNotSupported = Code(rawValue: 0xA1)
        /// 0xA2: Wildcard Subscriptions not supported.
        public static let wildcardSubscriptionsNotSupported = Code(rawValue: 0xA2)
    }
}

extension MQTTReason.Code: CustomStringConvertible {
    /// The specification's name and the number in hexadecimal, such as `Quota exceeded (0x97)`.
    public var description: String {
        let hex = String(rawValue, radix: 16, uppercase: true)
        let code = "0x" + (rawValue < 16 ? "0" : "") + hex
        return Self.names[self].map { "\($0) (\(code))" } ?? code
    }

    private static let names: [MQTTReason.Code: String] = [
        .success: "Success",
        .grantedQoS1: "Granted QoS 1",
        .grantedQoS2: "Granted QoS 2",
        .disconnectWithWillMessage: "Disconnect with Will Message",
        .noMatchingSubscribers: "No matching subscribers",
        .noSubscriptionExisted: "No subscription existed",
        .continueAuthentication: "Continue authentication",
        .reauthenticate: "Re-authenticate",
        .unspecifiedError: "Unspecified error",
        .malformedPacket: "Malformed Packet",
        .protocolError: "Protocol Error",
        .implementationSpecificError: "Implementation specific error",
        .unsupportedProtocolVersion: "Unsupported Protocol Version",
        .clientIdentifierNotValid: "Client Identifier not valid",
        .badUserNameOrPassword: "Bad User Name or Password",
        .notAuthorized: "Not authorized",
        .serverUnavailable: "Server unavailable",
        .serverBusy: "Server busy",
        .banned: "Banned",
        .serverShuttingDown: "Server shutting down",
        .badAuthenticationMethod: "Bad authentication method",
        .keepAliveTimeout: "Keep Alive timeout",
        .sessionTakenOver: "Session taken over",
        .topicFilterInvalid: "Topic Filter invalid",
        .topicNameInvalid: "Topic Name invalid",
        .packetIdentifierInUse: "Packet Identifier in use",
        .packetIdentifierNotFound: "Packet Identifier not found",
        .receiveMaximumExceeded: "Receive Maximum exceeded",
        .topicAliasInvalid: "Topic Alias invalid",
        .packetTooLarge: "Packet too large",
        .messageRateTooHigh: "Message rate too high",
        .quotaExceeded: "Quota exceeded",
        .administrativeAction: "Administrative action",
        .payloadFormatInvalid: "Payload format invalid",
        .retainNotSupported: "Retain not supported",
        .qualityOfServiceNotSupported: "QoS not supported",
        .useAnotherServer: "Use another server",
        .serverMoved: "Server moved",
        .sharedSubscriptionsNotSupported: "Shared Subscriptions not supported",
        .connectionRateExceeded: "Connection rate exceeded",
        .maximumConnectTime: "Maximum connect time",
        .subscriptionIdentifiersNotSupported: "Subscription Identifiers not supported",
        .wildcardSubscriptionsNotSupported: "Wildcard Subscriptions not supported",
    ]
}
