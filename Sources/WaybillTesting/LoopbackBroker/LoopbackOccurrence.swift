/// An action of a client, as the broker saw it; clients are numbered in the order of their connections.
package enum LoopbackOccurrence: Hashable, Sendable {
    /// A client was accepted. Only MQTT has client identifiers and sessions. HTTP clients are accepted unasked.
    case connected(
        client: UInt64,
        service: LoopbackBroker.Service,
        clientIdentifier: String? = nil,
        sessionPresent: Bool = false
    )
    /// An MQTT client has authenticated its open connection anew.
    case reauthenticated(client: UInt64)
    /// A CONNECT or HTTP request was refused.
    case refused(client: UInt64)
    /// A message has arrived, each once; `qos` is that of MQTT, nil elsewhere.
    ///
    /// A SEND of a transaction arrives with its COMMIT. Wills are not reported.
    case published(client: UInt64, topic: String, payload: [UInt8], qos: UInt8? = nil)
    /// A subscription was granted, or an event stream begun.
    case subscribed(client: UInt64, topic: String)
    /// A client has ended a subscription; one that goes with its connection or session is not reported.
    case unsubscribed(client: UInt64, topic: String)
    /// A client broke its protocol, which ends the connection.
    case violation(client: UInt64, text: String)
    /// A connection is over.
    case ended(client: UInt64)
}
