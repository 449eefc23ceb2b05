extension MQTTPacketKind {
    /// The name of the packet in upper case, as in the specification.
    package var name: String {
        switch self {
        case .connect: "CONNECT"
        case .connack: "CONNACK"
        case .publish: "PUBLISH"
        case .puback: "PUBACK"
        case .pubrec: "PUBREC"
        case .pubrel: "PUBREL"
        case .pubcomp: "PUBCOMP"
        case .subscribe: "SUBSCRIBE"
        case .suback: "SUBACK"
        case .unsubscribe: "UNSUBSCRIBE"
        case .unsuback: "UNSUBACK"
        case .pingreq: "PINGREQ"
        case .pingresp: "PINGRESP"
        case .disconnect: "DISCONNECT"
        case .auth: "AUTH"
        }
    }
}

extension MQTTViolation {
    /// The violation in words; data of the peer is not repeated.
    package var text: String {
        switch self {
        case .reservedPacketKind: "a packet of the reserved kind 0"
        case .reservedFlags(let kind): "\(kind.name) with the wrong flags in its first byte"
        case .variableByteIntegerInvalid:
            "a length of more than four bytes, or in more bytes than it needs"
        case .fieldTruncated(let kind): "\(kind.name) ends in the middle of a field"
        case .trailingBytes(let kind): "\(kind.name) has bytes after its last field"
        case .invalidUTF8: "a string that is not UTF-8"
        case .nullCharacter: "a string with a null character"
        case .qualityOfServiceInvalid: "PUBLISH with QoS 3, or marked as repeated with QoS 0"
        case .packetIdentifierZero(let kind): "\(kind.name) with the packet identifier 0"
        case .reservedBits(let kind): "\(kind.name) with reserved bits that are not zero"
        case .protocolNameInvalid: "CONNECT for a protocol other than MQTT"
        case .propertyUnknown: "a property that the specification does not define"
        case .protocolVersionUnsupported: "a protocol version other than 3.1.1 and 5"
        case .packetTooLarge(let count, let maximum):
            "a packet of \(count) bytes, more than \(maximum)"
        case .unexpectedPacket(let kind): "\(kind.name) that was not due"
        case .topicNameInvalid: "a topic name that is empty or has a wildcard"
        case .topicNameMissing: "PUBLISH without a topic and without a topic alias"
        case .topicFilterInvalid: "a topic filter that breaks the rules for wildcards"
        case .listEmpty(let kind): "\(kind.name) with an empty list"
        case .propertyNotAllowed(let kind): "\(kind.name) with a property that it may not have"
        case .propertyRepeated(let kind): "\(kind.name) with the same property twice"
        case .propertyOutOfRange(let kind):
            "\(kind.name) with a property whose value is out of range"
        case .reasonCodeNotAllowed(let kind): "\(kind.name) with a reason code that it may not have"
        case .passwordWithoutUserName: "a password without a user name"
        case .packetBeforeConnack(let kind): "\(kind.name) before CONNACK"
        case .secondConnack: "a second CONNACK"
        case .unexpectedSessionPresent: "CONNACK with a session that was not asked for"
        case .receiveMaximumExceeded: "more unacknowledged messages than the receive maximum"
        case .topicAliasInvalid: "a topic alias that is 0 or above the maximum"
        case .topicAliasUnknown: "PUBLISH without a topic, whose topic alias stands for none"
        case .topicAliasesTooLong: "topics with aliases that are together too long"
        case .reasonCodeCountWrong(let kind):
            "\(kind.name) with a number of reason codes that is not the number of filters"
        case .authenticationMethodMissing(let kind):
            "\(kind.name) with Authentication Data and without an Authentication Method"
        case .unexpectedAuthentication: "AUTH that was not asked for"
        case .authenticationMethodChanged:
            "AUTH or CONNACK without the authentication method of CONNECT"
        case .authenticationTooLong: "too many steps, or too much data, of an authentication"
        case .unrequestedProblemInformation:
            "a reason string or user property, although none was asked for"
        case .unrequestedResponseInformation: "response information that was not asked for"
        }
    }
}

extension MQTTEncodingError {
    /// The reason in words; values of the app are not repeated.
    package var text: String {
        switch self {
        case .fieldTooLong(let field): "the \(field) is longer than 65,535 bytes"
        case .nullCharacter(let field): "the \(field) has a null character"
        case .topicNameEmpty: "the topic is empty"
        case .topicNameHasWildcard:
            "the topic has a wildcard (+ or #), which only a subscription may have"
        case .topicFilterInvalid(let fault): "the topic filter \(fault)"
        case .packetIdentifierMissing: "the packet identifier is missing"
        case .packetIdentifierNotAllowed: "a message of QoS 0 has no packet identifier"
        case .duplicateNotAllowed: "a message of QoS 0 is never sent again"
        case .propertyNotAllowed(let property):
            "the property \(property) is not allowed here, or not twice"
        case .propertyOutOfRange(let property):
            "the value of the property \(property) is out of range"
        case .needsVersion5: "this needs MQTT 5"
        case .noFilter: "there is no topic filter"
        case .noLocalOnSharedSubscription:
            "a shared subscription cannot leave out this client's own messages"
        case .passwordWithoutUserName: "MQTT 3.1.1 takes no password without a user name"
        case .clientIdentifierMissing:
            "MQTT 3.1.1 takes an empty client identifier with a clean session only"
        case .reasonCodeNotAllowed(let code): "the reason code \(code) is not allowed here"
        case .packetTooLarge(let count): "\(count) bytes are more than a packet can hold"
        }
    }
}

extension MQTTTopicFilter.Fault: CustomStringConvertible {
    /// The fault, in words that follow "the topic filter".
    package var description: String {
        switch self {
        case .empty: "is empty"
        case .tooLong: "is longer than 65,535 bytes"
        case .nullCharacter: "has a null character"
        case .multiLevelWildcard: "has a # that is not alone in the last level"
        case .singleLevelWildcard: "has a + that is not alone in its level"
        case .shareName:
            "begins with $share, and the group or the filter behind it is wrong"
        }
    }
}

extension MQTTPropertyIdentifier: CustomStringConvertible {
    /// The specification's name of the property (MQTT 5, 2.2.2.2).
    package var description: String {
        switch self {
        case .payloadFormatIndicator: "Payload Format Indicator"
        case .messageExpiryInterval: "Message Expiry Interval"
        case .contentType: "Content Type"
        case .responseTopic: "Response Topic"
        case .correlationData: "Correlation Data"
        case .subscriptionIdentifier: "Subscription Identifier"
        case .sessionExpiryInterval: "Session Expiry Interval"
        case .assignedClientIdentifier: "Assigned Client Identifier"
        case .serverKeepAlive: "Server Keep Alive"
        case .authenticationMethod: "Authentication Method"
        case .authenticationData: "Authentication Data"
        case .requestProblemInformation: "Request Problem Information"
        case .willDelayInterval: "Will Delay Interval"
        case .requestResponseInformation: "Request Response Information"
        case .responseInformation: "Response Information"
        case .serverReference: "Server Reference"
        case .reasonString: "Reason String"
        case .receiveMaximum: "Receive Maximum"
        case .topicAliasMaximum: "Topic Alias Maximum"
        case .topicAlias: "Topic Alias"
        case .maximumQoS: "Maximum QoS"
        case .retainAvailable: "Retain Available"
        case .userProperty: "User Property"
        case .maximumPacketSize: "Maximum Packet Size"
        case .wildcardSubscriptionAvailable: "Wildcard Subscription Available"
        case .subscriptionIdentifiersAvailable: "Subscription Identifier Available"
        case .sharedSubscriptionAvailable: "Shared Subscription Available"
        }
    }
}
