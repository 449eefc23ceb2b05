import STOMPWire
import Waybill
import WaybillSession
import WireCore

/// The greeting of a STOMP client: CONNECT, with the request that led to it.
struct STOMPGreeting: Sendable {
    /// The connect request.
    var request: Request
    var connect: STOMPConnect
    /// Further header fields of the WebSocket's upgrade request.
    var upgradeHeaders: Headers = [:]
}

/// The part of a connection's life that is specific to STOMP.
struct STOMPDialect: ConnectionDialect {
    let configuration: Shared<STOMPConfiguration>
    let addresses: ServiceAddresses
    let credentials: CredentialProvider?
    let subscriptions: STOMPSubscriptions
    let replies: STOMPReplies
    /// The messages of an earlier process; nil without a store.
    let left: STOMPLeftMessages?
    let store: StoreClient?
    let catchAll: CatchAll

    var canReplaceCredentials: Bool { credentials != nil }

    /// Returns the greeting of a request.
    ///
    /// - Throws: `unsupported` and `invalidEntry` for a request that cannot be sent.
    func greeting(_ request: Request) throws(WaybillError) -> STOMPGreeting {
        STOMPGreeting(
            request: request,
            connect: try STOMPMapping.connect(request, configuration.value, addresses)
        )
    }

    func prepare(
        _ greeting: STOMPGreeting,
        _ occasion: inout ConnectOccasion
    ) async throws -> STOMPGreeting {
        let adapted = try await occasion.adapted(
            greeting.request,
            askingAt: credentials,
            in: addresses
        )
        let connect = try STOMPMapping.connect(adapted, configuration.value, addresses)
        var prepared = STOMPGreeting(request: greeting.request, connect: connect)
        prepared.upgradeHeaders = adapted.command[.upgradeHeaders] ?? [:]
        return prepared
    }

    func open(
        _ route: Failover.Route,
        within timeout: Duration,
        _ greeting: STOMPGreeting
    ) async throws -> STOMPConnection {
        STOMPConnection(
            link: try await route.open(within: timeout, requesting: greeting.upgradeHeaders),
            configuration: configuration,
            subscriptions: subscriptions,
            replies: replies,
            left: left.map { ($0, greeting.request.chain) }
        )
    }

    func flush(within timeout: Duration) async {
        await store?.flush(within: timeout, reportingTo: subscriptions.events)
    }

    func conclude(_ cause: WaybillError?, isForGood: Bool) {
        subscriptions.conclude(cause)
        replies.pending.fail(isForGood ? .shutDown.arriving(true) : STOMPMapping.unanswered(cause))
        if isForGood { catchAll.end() }
    }
}
