/// The ack mode of a subscription (STOMP 1.2, SUBSCRIBE ack Header).
package enum STOMPAckMode: String, CaseIterable, Hashable, Sendable {
    /// The client acknowledges nothing: a message counts as delivered when it is sent.
    case auto
    /// Each acknowledgement covers all messages of the subscription before it.
    case client
    /// Each message is acknowledged separately; not in 1.0.
    case clientIndividual = "client-individual"
}

/// Identifies a message for an acknowledgement in any version.
package struct STOMPAckToken: Hashable, Sendable {
    /// The `ack` header in 1.2, otherwise the `message-id`.
    package let identifier: String
    package let subscriptionID: String
    /// Which of the connection's subscriptions it is: another one may have the id later.
    package let generation: UInt64

    package init(identifier: String, subscriptionID: String, generation: UInt64) {
        self.identifier = identifier
        self.subscriptionID = subscriptionID
        self.generation = generation
    }
}
