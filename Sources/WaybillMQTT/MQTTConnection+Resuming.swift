import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// What a connection does between CONNACK and the first request, and the authentication of an open connection.
extension MQTTConnection {
    func resume(_ receipt: Receipt) async throws {
        let continues = receipt.isSessionPresent && !isOfOtherClient
        try await subscriptions.resume(
            over: self,
            hasSession: continues,
            isInDoubt: session.takeDoubt()
        )
        let left = session.leftMessages
        let prepared = try await left?.prepare(session.takeChain()) ?? []
        let (dropped, calls) = driver.withCore(.immediate) { core, now in
            let calls = left?.give(prepared, to: &core, continues: continues, at: now) ?? []
            return (core.resumeSession(at: now), calls)
        }
        for call in calls { call() }
        for message in dropped {
            switch message.call {
            case let call as MQTTPendingCall: call.fail(MQTTErrorMapping.error(message.cause))
            case let call as MQTTStoredCall: call.drop(message)
            default: break
            }
        }
    }

    // MARK: Authentication

    /// Authenticates the connection anew (MQTT 5, 4.12.1).
    ///
    /// - Throws: `unsupported` without an authenticator; the errors of ``MQTTAuthentication``.
    func reauthenticate() async throws {
        guard let authentication else { throw MQTTErrorMapping.noAuthenticator }
        try await authentication.repeatExchange(
            over: self,
            within: configuration.timeouts.confirmation
        )
    }

    /// Closes the connection because this side has given up an authentication.
    func abandonAuthentication(_ error: WaybillError, isRepetition: Bool) {
        state.withLock { $0.end.abandonAuthentication(error, isRepetition: isRepetition) }
        driver.withCore(.immediate) { core, now in core.abandonAuthentication(at: now) }
    }
}
