package import MQTTWire
package import Waybill
package import WaybillSession

/// The end of a connection by a server that refers its clients to others (MQTT 5, 4.11).
package struct MQTTRedirect: Hashable, Sendable {
    /// The other servers; none if the server named none that can be used.
    package let reference: ServerRedirect
    /// Whether the server has refused the connection with CONNACK, and not ended it with DISCONNECT.
    package let isRefusal: Bool

    /// - Returns: Nil for a code that is no referral.
    package init?(_ code: MQTTReasonCode, _ properties: MQTTProperties, isRefusal: Bool) {
        guard code == .useAnotherServer || code == .serverMoved else { return nil }
        let servers = properties.serverReference.map { MQTTServerReference($0).servers } ?? []
        reference = ServerRedirect(
            isPermanent: code == .serverMoved,
            servers: servers.map { .init(name: $0.name, port: $0.port) }
        )
        self.isRefusal = isRefusal
    }

    /// The cause of the connection's end.
    ///
    /// - Parameters:
    ///   - cause: The cause as the server stated it.
    ///   - outcome: What follows.
    ///   - hasAlternatives: Whether the next connect begins with another server.
    /// - Returns: The cause, with the reason why a referral is not followed.
    package func cause(
        _ cause: WaybillError,
        after outcome: RedirectOutcome,
        _ hasAlternatives: Bool
    ) -> WaybillError {
        if let failure = outcome.failure { return cause.ending(failure) }
        var cause = cause
        // The other servers are not busy. A refusal counts only if every server refuses.
        if hasAlternatives, !isRefusal { cause.isServerBusy = false }
        return cause
    }
}
