import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The part of a connection's life that is specific to MQTT.
struct MQTTDialect: ConnectionDialect {
    let configuration: Shared<MQTTConfiguration>
    let greeter: MQTTGreeter
    let credentials: CredentialProvider?
    let failover: Failover
    let session: MQTTSession
    let subscriptions: MQTTSubscriptions
    let replies: MQTTReplies
    let catchAll: CatchAll
    let keepAliveLearning: MQTTKeepAliveLearning?

    var canReplaceCredentials: Bool { credentials != nil }

    func prepare(
        _ greeting: MQTTGreeting,
        _ occasion: inout ConnectOccasion
    ) async throws -> MQTTGreeting {
        try await greeter.greeting(greeting.request, &occasion, session, credentials)
    }

    func open(
        _ route: Failover.Route,
        within timeout: Duration,
        _ greeting: MQTTGreeting
    ) async throws -> MQTTConnection {
        let (clock, begun) = (route.environment.clock, route.environment.clock.now)
        var authentication: MQTTAuthentication?
        if let authenticator = configuration.value.authenticator {
            do {
                authentication = try await .begin(
                    authenticator,
                    in: route.environment,
                    to: route.address.endpoint.host,
                    within: timeout
                )
            } catch let error as WaybillError {
                throw greeting.isUnattended ? error.retryableIfForeign : error
            }
        }
        let timeLeft = max(timeout - begun.duration(to: clock.now), .zero)
        return MQTTConnection(
            link: try await route.open(within: timeLeft, requesting: greeting.upgradeHeaders),
            authentication: authentication,
            configuration: configuration,
            subscriptions: subscriptions,
            replies: replies,
            session: session,
            learning: keepAliveLearning,
            onRedirect: { [failover, events = subscriptions.events] redirect, cause in
                let (outcome, hasAlternatives) = failover.note(redirect.reference, by: route)
                let end = redirect.cause(cause, after: outcome, hasAlternatives)
                events.report(
                    .redirected(
                        by: route.address.endpoint.description,
                        to: outcome.candidates.map(\.endpoint.description),
                        error: end
                    )
                )
                return end
            }
        )
    }

    func flush(within timeout: Duration) async {
        await session.flush(within: timeout, reportingTo: subscriptions.events)
    }

    func conclude(_ cause: WaybillError?, isForGood: Bool) {
        let unanswered =
            isForGood ? WaybillError.shutDown.arriving(true) : MQTTErrorMapping.unanswered(cause)
        // The subscription of replies ends next. Its error would not contain the cause.
        replies.leaveTopic()
        // The app may have asked for another session expiry than that of the configuration.
        let keepsSession = session.lifetime?.isKept ?? configuration.value.keepsSession
        let abandoned = subscriptions.conclude(cause, keepsSession: keepsSession)
        replies.conclude(unanswered)
        if isForGood { catchAll.end() }
        // Stored messages wait for the next connection even if the server grants no session.
        let isStored = configuration.value.keepsSession && configuration.value.session.store != nil
        session.conclude(
            unanswered,
            keepsSession: (keepsSession || isStored) && !isForGood,
            abandoning: abandoned
        )
    }
}
