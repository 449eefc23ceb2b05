/// A violation of the protocol by the peer, which ends the connection (MQTT 5, 4.13).
package enum MQTTViolation: Error, Hashable, Sendable {
    // Malformed packets.

    /// A packet kind of zero.
    case reservedPacketKind
    /// Wrong flags in the fixed header (2.1.3).
    case reservedFlags(MQTTPacketKind)
    /// A remaining length or another variable byte integer with more than four bytes, or with more bytes than needed
    /// (1.5.5).
    case variableByteIntegerInvalid
    /// A field that extends beyond the end of its packet.
    case fieldTruncated(MQTTPacketKind)
    /// Bytes after the last field.
    case trailingBytes(MQTTPacketKind)
    /// A string that is not well-formed UTF-8 (1.5.4-1).
    case invalidUTF8
    /// A string with U+0000 (1.5.4-2).
    case nullCharacter
    /// QoS 3, or DUP at QoS 0 (3.3.1-2 and 3.3.1-4).
    case qualityOfServiceInvalid
    /// A packet identifier of zero (2.2.1).
    case packetIdentifierZero(MQTTPacketKind)
    /// Bits that must be zero, in CONNECT, CONNACK or subscription options.
    case reservedBits(MQTTPacketKind)
    /// A protocol name other than MQTT.
    case protocolNameInvalid
    /// An unknown property identifier.
    case propertyUnknown

    // Well-formed packets with invalid content.

    /// A protocol level other than 4 and 5.
    case protocolVersionUnsupported
    /// A packet above this side's limit.
    case packetTooLarge(byteCount: Int, maximum: Int)
    /// A packet that only the other role sends, or that is not expected now.
    case unexpectedPacket(MQTTPacketKind)
    /// A topic name with a wildcard, or an empty one in 3.1.1.
    case topicNameInvalid
    /// An empty topic name without a topic alias (3.3.2.1).
    case topicNameMissing
    /// A topic filter that violates the rules of 4.7 and 4.8.
    case topicFilterInvalid
    /// A SUBSCRIBE, UNSUBSCRIBE or SUBACK with an empty list.
    case listEmpty(MQTTPacketKind)
    /// A property that is not allowed in this packet.
    case propertyNotAllowed(MQTTPacketKind)
    /// A property that appears twice.
    case propertyRepeated(MQTTPacketKind)
    /// A property's value out of its range.
    case propertyOutOfRange(MQTTPacketKind)
    /// A reason code that is not allowed in this packet.
    case reasonCodeNotAllowed(MQTTPacketKind)
    /// A password without a user name in 3.1.1.
    case passwordWithoutUserName
    /// Authentication Data without an Authentication Method (3.1.2.11.10).
    case authenticationMethodMissing(MQTTPacketKind)

    // Packets in the wrong order.

    /// A packet before CONNACK (3.2.0-1).
    case packetBeforeConnack(MQTTPacketKind)
    /// A second CONNACK (3.2.0-2).
    case secondConnack
    /// A session present although the client expects none, or with a refusal (3.2.2-4 and 3.2.2-6).
    case unexpectedSessionPresent
    /// More unacknowledged messages than this side allows (3.3.4-9).
    case receiveMaximumExceeded
    /// A topic alias that is 0 or above this side's limit (3.1.2-26 and 3.1.2-27).
    case topicAliasInvalid
    /// An empty topic name with a topic alias that stands for none (3.3.2.3.4).
    case topicAliasUnknown
    /// Topics with aliases that are together longer than this side allows.
    case topicAliasesTooLong
    /// More or fewer reason codes than filters (3.8.4-6).
    case reasonCodeCountWrong(MQTTPacketKind)
    /// Authentication that the CONNECT did not request (4.12.0-6), or AUTH or CONNACK while the answer of this side is
    /// due.
    case unexpectedAuthentication
    /// AUTH, or a CONNACK that accepts, without the Authentication Method of CONNECT (4.12.0-5).
    case authenticationMethodChanged
    /// More steps or more data in one authentication exchange than this side allows.
    case authenticationTooLong
    /// A Reason String or User Property that the CONNECT did not request (3.1.2-29).
    case unrequestedProblemInformation
    /// Response Information that the CONNECT did not request (3.1.2-28).
    case unrequestedResponseInformation
}

extension MQTTViolation {
    /// The reason code for a DISCONNECT of MQTT 5.
    package var reasonCode: MQTTReasonCode {
        switch self {
        case .reservedPacketKind, .reservedFlags, .variableByteIntegerInvalid, .fieldTruncated,
            .trailingBytes, .invalidUTF8, .nullCharacter, .qualityOfServiceInvalid,
            .packetIdentifierZero, .reservedBits, .protocolNameInvalid, .propertyUnknown:
            .malformedPacket
        case .protocolVersionUnsupported: .unsupportedProtocolVersion
        case .packetTooLarge: .packetTooLarge
        case .topicNameInvalid: .topicNameInvalid
        case .topicFilterInvalid: .topicFilterInvalid
        case .receiveMaximumExceeded: .receiveMaximumExceeded
        case .topicAliasInvalid: .topicAliasInvalid
        case .topicAliasesTooLong, .authenticationTooLong: .quotaExceeded
        default: .protocolError
        }
    }
}
