/// How the messages of a subscription are acknowledged (STOMP 1.2, SUBSCRIBE ack Header).
package enum STOMPAckMode: String, CaseIterable, Hashable, Sendable {
    /// Not at all: a message counts as taken once it is sent.
    case auto
    /// Each acknowledgement covers all messages of the subscription before it.
    case client
    /// Each message by itself; not in 1.0.
    case clientIndividual = "client-individual"
}

/// Names a message that can be acknowledged, in whichever way the version does it.
package struct STOMPAckToken: Hashable, Sendable {
    /// The `ack` header in 1.2, else the `message-id`.
    package let identifier: String
    /// The id of the subscription.
    package let subscriptionID: String

    package init(identifier: String, subscriptionID: String) {
        self.identifier = identifier
        self.subscriptionID = subscriptionID
    }
}
