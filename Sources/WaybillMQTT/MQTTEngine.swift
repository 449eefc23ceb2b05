import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Makes the parts of an MQTT transport, and gives each request to the part that performs it.
final class MQTTEngine: Sendable {
    let connector: MQTTConnector
    let sender: MQTTSender
    /// The listeners for all messages.
    let catchAll: CatchAll
    private let subscriptions: MQTTSubscriptions
    private let keepAliveLearning: MQTTKeepAliveLearning?
    private let hints = HintListener()

    init(
        failover: Failover,
        configuration shared: Shared<MQTTConfiguration>,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        let configuration = shared.value
        let events = TransportEventSource(label: configuration.label)
        let version: MQTTVersion = configuration.version == .v5 ? .v5 : .v3_1_1
        let clientIdentifier =
            configuration.clientIdentifier ?? MQTTGreeter.makeIdentifier(environment.random)
        let greeter = MQTTGreeter(
            configuration: shared,
            version: version,
            clientIdentifier: clientIdentifier,
            addresses: ServiceAddresses.mqtt.knowing(failover.routes.map(\.address))
        )
        let settings = ConnectionSettings(
            connectsOnDemand: configuration.connectsOnDemand,
            connectTimeout: configuration.timeouts.connect,
            closeTimeout: configuration.timeouts.close,
            drainTimeout: configuration.timeouts.drain,
            waitsForConnection: configuration.offline.waits(with: configuration.session.store)
        )
        var restored: MQTTSessionState?
        var outbox: Outbox?
        var leftMessages: MQTTLeftMessages?
        if let store = configuration.session.store {
            // Without an identifier of its own the client could not ask for the session again.
            let keepsSession = configuration.keepsSession && !configuration.session.cleanStart
            let (left, session) = try MQTTLeftMessages.read(
                store,
                of: keepsSession ? configuration.clientIdentifier : nil,
                version,
                reportingTo: events
            )
            restored = session
            leftMessages = left
            outbox = Outbox(
                StoreClient(store, by: environment.clock, configuration.offline)
            )
        }
        let session = MQTTSession(
            environment: environment,
            acknowledgementTimeout: configuration.timeouts.confirmation,
            messages: outbox?.client,
            leftMessages: leftMessages,
            store: restored == nil ? nil : configuration.session.store,
            restored: restored ?? MQTTSessionState(),
            of: restored == nil ? nil : configuration.clientIdentifier
        )
        let account = MemoryAccount(limit: configuration.limits.memory)
        let catchAll = CatchAll(reportingTo: events, account: account)
        self.catchAll = catchAll
        let subscriptions = try MQTTSubscriptions(
            configuration: shared,
            session: session,
            events: events,
            catchAll: catchAll,
            account: account,
            environment: environment
        )
        let replies = MQTTReplies(
            configuration: configuration,
            clientIdentifier: clientIdentifier,
            subscriptions: subscriptions,
            environment: environment
        )
        keepAliveLearning = configuration.keepAlive.adaptive.map { MQTTKeepAliveLearning($0) }
        self.subscriptions = subscriptions
        let lifecycle = ConnectionLifecycle(
            settings,
            reconnecting: configuration.reconnection,
            offlineQueue: configuration.offline,
            failover,
            in: environment,
            reportingTo: events,
            MQTTDialect(
                configuration: shared,
                greeter: greeter,
                credentials: configuration.credentials.map {
                    CredentialProvider($0, in: environment)
                },
                failover: failover,
                session: session,
                subscriptions: subscriptions,
                replies: replies,
                catchAll: catchAll,
                keepAliveLearning: keepAliveLearning
            )
        )
        connector = MQTTConnector(greeter: greeter, session: session, lifecycle: lifecycle)
        sender = MQTTSender(
            connector: connector,
            outbox: outbox,
            replies: replies,
            events: events
        )
        hints.start(configuration.hints, in: environment) { [weak lifecycle] in lifecycle?.heed($0)
        }
    }

    private var lifecycle: ConnectionLifecycle<MQTTConnection> { connector.lifecycle }
    private var version: MQTTVersion { connector.version }
    private var outbox: Outbox? { sender.outbox }

    /// The events of the transport.
    var events: TransportEventSource { sender.events }

    /// What the server of the current connection states; nil without one.
    var connack: MQTTConnack? { lifecycle.connected?.connack }

    var states: ConnectionStates { lifecycle.states.states }

    /// What was learned of silence, with the present connection.
    var learnedKeepAlive: LearnedKeepAlive {
        lifecycle.connected?.rememberKeepAlive()
        return keepAliveLearning?.memory ?? LearnedKeepAlive()
    }

    var statistics: TransportStatistics {
        var statistics = lifecycle.statistics
        statistics.inFlightCount =
            lifecycle.connected?.driver.withCore { core, _ in core.unansweredCount }
            ?? connector.session.parkedCount
        statistics.waitingByteCount = subscriptions.account.byteCount
        statistics.unacknowledgedCount = subscriptions.deliveries.manual.count
        sender.replies.pending.note(in: &statistics)
        return statistics
    }

    // MARK: Requests

    func perform(_ request: Request) async throws -> Receipt {
        switch request.command.code {
        case .send:
            // The fast path of most sends, with as few calls as possible between the caller and the packet.
            guard outbox == nil, !request.expectsReply, !events.isObserved,
                let connection = lifecycle.connected
            else { return try await sender.send(request) }
            do {
                let limits = request.command.sendLimits
                return try await connection.publish(
                    MQTTPublishMapping.packet(request, version: version),
                    request,
                    timeout: limits.timeout,
                    isObserved: false,
                    isSentOnce: limits.isSentOnce
                )
            } catch let error as WaybillError where error.code == .notConnected {
                return try await sender.send(request)
            }
        case .connect:
            return try await connector.connect(request)
        case .disconnect:
            try await connector.disconnect(request)
            return Receipt()
        case .unsubscribe:
            let request = fitting(request)
            let filters = try MQTTSubscribeMapping.unsubscription(request, version: version)
            try lifecycle.requests.check(request)
            // User properties need a connection: without one, the next connection only gets the filter.
            if !request.headers.isEmpty {
                _ = try lifecycle.requests.current(for: request)
            }
            return try await subscriptions.unsubscribe(filters, request)
        case .ack, .nack:
            return try await acknowledge(request)
        case .other:
            throw MQTTMapping.unsupported("command \(request.command.name)", request)
        case .subscribe:
            throw WaybillError(.invalidEntry, "use subscribe(_:) for a subscription")
        }
    }

    private func acknowledge(_ request: Request) async throws -> Receipt {
        let (id, answer) = try MQTTAcknowledgementMapping.answer(request, version: version)
        let deliveries = subscriptions.deliveries
        // A message of QoS 2 does not come again after a lost connection: its acknowledgement waits for the next one.
        // A message may also come while subscriptions are being restored, over a first connection, too.
        if !lifecycle.isUnderWay || !deliveries.manual.isWaiting(id) {
            _ = try lifecycle.requests.current(for: request)
        }
        return try await deliveries.perform(id, answer, request)
    }

    /// The request without the headers of interceptors, for which MQTT 3.1.1 has no place.
    private func fitting(_ request: Request) -> Request {
        guard version != .v5, !request.headers.isEmpty, !request.statesHeaders else {
            return request
        }
        var request = request
        request.headers = [:]
        return request
    }

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        guard request.command.code == .subscribe else {
            throw WaybillError(.invalidEntry, "subscribe(_:) accepts only subscriptions")
        }
        let request = fitting(request)
        let all = try MQTTSubscribeMapping.subscriptions(request, version: version)
        return try await lifecycle.requests.subscribe(
            request,
            later: { [subscriptions] () throws(WaybillError) in
                try subscriptions.subscribeLater(all, request)
            },
            greeting: { () throws(WaybillError) in try connector.greeting(for: request) },
            connection: { try await connector.connection(for: request) },
            now: { connection in
                try await subscriptions.subscribe(all, request, over: connection)
            }
        )
    }

    // MARK: The end

    func pause() async {
        await lifecycle.pause()
    }

    func resume() {
        lifecycle.resume()
    }

    func shutdown() async {
        hints.stop()
        outbox?.shutDown()
        await lifecycle.shutdown()
    }

    /// Shuts down, and discards the session and the store.
    func destroy() async {
        hints.stop()
        outbox?.shutDown()
        let version = version
        await lifecycle.shutdown { connection in
            // The server discards the session, too (MQTT 5, 3.14.2.2.2). MQTT 3.1.1 has no such field.
            if version == .v5 { connection.disconnectPacket.properties.sessionExpiryInterval = 0 }
        }
        // First, for a message that is just being stored.
        connector.session.discard()
        await outbox?.removeAll(within: connector.configuration.timeouts.close)
    }

    /// Closes without waiting, when the transport was released.
    func abandon() {
        hints.stop()
        outbox?.shutDown()
        lifecycle.abandon()
    }
}
