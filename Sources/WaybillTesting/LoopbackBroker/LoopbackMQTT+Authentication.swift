import MQTTWire
import WaybillLink
import WireCore

/// The authentication of one client.
struct LoopbackAuthenticating: Sendable {
    /// The exchange that is under way.
    var exchange: LoopbackAuthenticationExchange
    /// The CONNECT that waits for the exchange; nil once the client is connected.
    var connect: MQTTConnect?
    /// The data for CONNACK.
    var lastData: [UInt8]?
}

/// Enhanced authentication, as ``LoopbackAuthentication`` requires it.
extension LoopbackMQTT {
    /// Begins the exchange of a CONNECT.
    ///
    /// - Returns: The reason to refuse it at once; nil if the exchange goes on.
    func authenticate(
        _ connect: MQTTConnect,
        _ required: LoopbackAuthentication,
        _ client: MQTTLoopbackClient
    ) -> MQTTReasonCode? {
        guard connect.version == .v5 else { return .notAuthorized }
        guard connect.properties.authenticationMethod?.hasSameBytes(as: required.method) == true
        else { return .badAuthenticationMethod }
        let exchange = required.makeExchange(hub.environment.random)
        hub.withState { state in
            state.authentications[client.identifier] = .init(exchange: exchange, connect: connect)
        }
        answer(connect.properties.authenticationData, client)
        return nil
    }

    /// Handles AUTH, which continues an exchange or begins a re-authentication.
    func handle(_ auth: MQTTAuth, of client: MQTTLoopbackClient) {
        if auth.reasonCode == .reauthenticate {
            guard let required = hub.configuration.authentication else {
                return client.disconnect(.notAuthorized)
            }
            let exchange = required.makeExchange(hub.environment.random)
            hub.withState { $0.authentications[client.identifier] = .init(exchange: exchange) }
        }
        answer(auth.properties.authenticationData, client)
    }

    /// Gives data of the client to its exchange, and carries out the answer.
    private func answer(_ data: [UInt8]?, _ client: MQTTLoopbackClient) {
        let identifier = client.identifier
        // One thread at a time handles the events of a client. The script runs without the lock.
        guard var authenticating = hub.withState({ $0.authentications[identifier] }) else { return }
        let answer = authenticating.exchange.receive(data)
        switch answer {
        case .challenge(let data):
            hub.withState { $0.authentications[identifier] = authenticating }
            client.withCore { core, _ in core.challenge(data) }
        case .success(let data):
            if let connect = authenticating.connect {
                authenticating.connect = nil
                authenticating.lastData = data
                hub.withState { $0.authentications[identifier] = authenticating }
                enter(connect, client)
            } else {
                hub.observe(.reauthenticated(client: identifier))
                client.withCore { core, _ in core.acceptAgain(data) }
            }
        case .refusal:
            if authenticating.connect == nil { return client.disconnect(.notAuthorized) }
            hub.observe(.refused(client: identifier))
            client.withCore { core, _ in core.refuse(.notAuthorized) }
        case .silence: hub.withState { $0.authentications[identifier] = authenticating }
        }
    }
}
