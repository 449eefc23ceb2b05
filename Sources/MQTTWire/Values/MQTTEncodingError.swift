/// The reason why a packet cannot be encoded; nothing was written.
package enum MQTTEncodingError: Error, Hashable, Sendable {
    /// A string or a binary field is longer than 65,535 bytes (MQTT 5, 1.5.4 and 1.5.6).
    case fieldTooLong(String)
    /// A string holds U+0000 (MQTT 5, 1.5.4-2).
    case nullCharacter(String)
    /// An empty topic name without a topic alias (MQTT 5, 4.7.3-1).
    case topicNameEmpty
    /// A topic name with `+` or `#` (MQTT 5, 3.3.2-2).
    case topicNameHasWildcard
    /// A topic filter that violates the rules of 4.7 and 4.8.
    case topicFilterInvalid(MQTTTopicFilter.Fault)
    /// A packet identifier of zero where one is required (MQTT 5, 2.2.1).
    case packetIdentifierMissing
    /// A packet identifier at QoS 0 (MQTT 5, 2.2.1-2).
    case packetIdentifierNotAllowed
    /// A DUP flag at QoS 0 (MQTT 5, 3.3.1-2).
    case duplicateNotAllowed
    /// A property that is not allowed in this packet, or appears twice (MQTT 5, 2.2.2.2).
    case propertyNotAllowed(MQTTPropertyIdentifier)
    /// A property's value out of its range.
    case propertyOutOfRange(MQTTPropertyIdentifier)
    /// Properties or reasons in 3.1.1, which has neither.
    case needsVersion5
    /// SUBSCRIBE or UNSUBSCRIBE without a filter (MQTT 5, 3.8.3-2 and 3.10.3-2).
    case noFilter
    /// No Local on a shared subscription (MQTT 5, 3.8.3-4).
    case noLocalOnSharedSubscription
    /// A password without a user name, which 3.1.1 does not allow (3.1.2-22).
    case passwordWithoutUserName
    /// An empty client identifier without a clean session, which 3.1.1 does not allow (3.1.3-7).
    case clientIdentifierMissing
    /// A reason code that is not allowed in this packet.
    case reasonCodeNotAllowed(MQTTReasonCode)
    /// A packet above the largest remaining length of 268,435,455 bytes.
    case packetTooLarge(byteCount: Int)
}
