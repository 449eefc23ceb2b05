import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Performs the requests of an MQTT transport over its connections.
///
/// The shared ``ConnectionLifecycle`` decides when to connect and when to end.
final class MQTTEngine: Sendable {
    /// The events of the transport.
    let events = TransportEventSource()
    /// The listeners for all messages.
    let catchAll: CatchAll
    private let shared: Shared<MQTTConfiguration>
    private let greeter: MQTTGreeter
    let version: MQTTVersion
    let session: MQTTSession
    private let outbox: MQTTOutbox?
    private let subscriptions: MQTTSubscriptions
    let replies: MQTTReplies
    let lifecycle: ConnectionLifecycle<MQTTConnection>
    private let keepAliveLearning: MQTTKeepAliveLearning?
    private let hints = HintListener()

    init(
        failover: Failover,
        configuration: MQTTConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        let shared = Shared(configuration)
        self.shared = shared
        version = configuration.version == .v5 ? .v5 : .v3_1_1
        let clientIdentifier =
            configuration.clientIdentifier ?? MQTTGreeter.makeIdentifier(environment.random)
        let greeter = MQTTGreeter(
            configuration: shared,
            version: version,
            clientIdentifier: clientIdentifier
        )
        self.greeter = greeter
        let settings = ConnectionSettings(
            connectsOnDemand: configuration.connectsOnDemand,
            connectTimeout: configuration.connectTimeout,
            closeTimeout: configuration.closeTimeout,
            drainTimeout: configuration.drainTimeout,
            reconnection: configuration.reconnection,
            offlineQueue: configuration.offlineQueue
        )
        var outbox = configuration.store.map { [version, events] in
            MQTTOutbox($0, version: version, reportingTo: events)
        }
        // Without an identifier of its own the client could not ask for the session again.
        var restored: MQTTSessionState?
        if configuration.keepsSession, !configuration.cleanStart,
            let name = configuration.clientIdentifier
        {
            restored = try outbox?.restoredSession(name)
        }
        let session = MQTTSession(
            environment: environment,
            acknowledgementTimeout: configuration.acknowledgementTimeout,
            store: restored == nil ? nil : configuration.store,
            restored: restored ?? MQTTSessionState()
        )
        let account = MemoryAccount(limit: configuration.memoryLimit)
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
        keepAliveLearning = configuration.adaptiveKeepAlive.map { MQTTKeepAliveLearning($0) }
        self.subscriptions = subscriptions
        self.replies = replies
        self.session = session
        self.outbox = outbox
        lifecycle = ConnectionLifecycle(
            settings,
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
        if let outbox, !outbox.keepsExchanges {
            lifecycle.requests.preload(try outbox.leftovers())
        }
        hints.start(configuration.hints, in: environment) { [weak lifecycle] in lifecycle?.heed($0)
        }
    }

    var configuration: MQTTConfiguration { shared.value }

    /// What the server of the current connection states; nil without one.
    var connackProperties: MQTTConnackProperties? { lifecycle.connected?.connackProperties }

    /// Whether messages are stored until they are acknowledged.
    var keepsMessages: Bool { outbox != nil }

    var states: ConnectionStates { lifecycle.states.states }

    /// What was learned of silence, with the present connection.
    var keepAliveMemory: KeepAliveMemory {
        lifecycle.connected?.rememberKeepAlive()
        return keepAliveLearning?.memory ?? KeepAliveMemory()
    }

    // MARK: Requests

    func perform(_ request: Request) async throws -> Receipt {
        switch request.command {
        case .send(let options):
            // The fast path of most sends, with as few calls as possible between the caller and the packet.
            guard outbox == nil, !request.expectsReply, !events.isObserved,
                let connection = lifecycle.connected
            else { return try await send(request, options) }
            do {
                return try await connection.publish(
                    MQTTPublishMapping.packet(request, options, version: version),
                    request,
                    timeout: options.timeout,
                    isObserved: false,
                    isSentOnce: options.isSentOnce
                )
            } catch let error as WaybillError where error.code == .notConnected {
                return try await send(request, options)
            }
        case .connect(let options):
            return try await lifecycle.connect(greeter.greeting(request), timeout: options.timeout)
        case .disconnect(let options):
            let configured = configuration.sessionExpiry.map(MQTTMapping.seconds)
            let disconnectPacket = try MQTTDisconnectMapping.packet(
                request,
                options,
                version,
                sessionExpiry: session.lifetime?.requested ?? configured
            )
            try await lifecycle.disconnect(options) { $0.disconnectPacket = disconnectPacket }
            return Receipt()
        case .unsubscribe(let options):
            let filters = try MQTTSubscribeMapping.unsubscription(
                request,
                options,
                version: version
            )
            try lifecycle.requests.check(request)
            // Headers need a connection: without one, the next connection only gets the filter.
            if !request.headers.isEmpty { _ = try lifecycle.requests.current(for: request) }
            return try await subscriptions.unsubscribe(filters, request)
        case .ack(let id, let options):
            return try await acknowledge(id, options, isAccepted: true, request)
        case .nack(let id, let options):
            return try await acknowledge(id, options, isAccepted: false, request)
        case .begin, .commit, .abort: throw MQTTMapping.unsupported("transactions", request)
        case .subscribe:
            throw WaybillError(.invalidEntry, "use subscribe(_:) for a subscription")
        }
    }

    private func acknowledge(
        _ id: Message.ID,
        _ options: AcknowledgementOptions,
        isAccepted: Bool,
        _ request: Request
    ) async throws -> Receipt {
        let answer = try MQTTAcknowledgementMapping.answer(
            request,
            options,
            isAccepted: isAccepted,
            version: version
        )
        _ = try lifecycle.requests.current(for: request)
        let deliveries = subscriptions.deliveries
        let isPlain = answer.properties.isEmpty && options.reasonCode == nil
        guard !isPlain || options.awaitsCompletion else {
            return try deliveries.acknowledge(id, isAccepted: isAccepted, request)
        }
        guard options.awaitsCompletion else {
            try deliveries.acknowledge(id, answer, awaitedBy: nil, request)
            return Receipt()
        }
        do {
            let call = MQTTPendingCall()
            _ = try await call.answer(
                sending: { () throws(WaybillError) in
                    try deliveries.acknowledge(id, answer, awaitedBy: call, request)
                },
                withdrawing: { [session] in session.cancel($0) }
            )
            return Receipt()
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    /// Sends, and reports the result.
    private func send(_ request: Request, _ options: SendOptions) async throws -> Receipt {
        let begun = events.timestamp
        let (topic, byteCount) = (request.topic, request.body.count)
        do {
            let publish = try MQTTPublishMapping.packet(request, options, version: version)
            if request.expectsReply { return try await reply(to: publish, request, options) }
            let isObserved = begun != nil
            let receipt: Receipt
            if let outbox, options.qos != .atMostOnce, !options.isSentOnce {
                receipt = try await outbox.keeping(request, options, in: session) { number in
                    try await send(publish, request, options, isObserved, storedNumber: number)
                }
            } else {
                receipt = try await send(publish, request, options, isObserved)
            }
            guard options.qos != .atMostOnce else { return receipt }
            events.reportSend(topic, byteCount: byteCount, qos: options.qos, nil, since: begun)
            return receipt
        } catch {
            events.reportSend(topic, byteCount: byteCount, qos: options.qos, error, since: begun)
            throw error
        }
    }

    private func send(
        _ publish: MQTTPublish,
        _ request: Request,
        _ options: SendOptions,
        _ isObserved: Bool,
        storedNumber: UInt64? = nil
    ) async throws -> Receipt {
        let isAcknowledged = publish.qos != .atMostOnce
        return try await lifecycle.requests.sending {
            guard !options.isSentOnce,
                lifecycle.requests.queues(isAcknowledged: isAcknowledged)
            else { return nil }
            return try await queued(publish, request, options, storedNumber)
        } connection: {
            try await connection(for: request) { () throws(WaybillError) in
                try check(publish, request)
            }
        } over: { connection in
            try await connection.publish(
                publish,
                request,
                timeout: options.timeout,
                isObserved: isObserved,
                storedNumber: storedNumber,
                isSentOnce: options.isSentOnce
            )
        }
    }

    /// Publishes in the order of the calls, when the connection is back.
    private func queued(
        _ publish: MQTTPublish,
        _ request: Request,
        _ options: SendOptions,
        _ storedNumber: UInt64?
    ) async throws -> Receipt {
        try check(publish, request)
        let stated =
            configuration.offlineQueue.timeToLive ?? options.timeout
            ?? configuration.acknowledgementTimeout
        let answer: MQTTAnswer = try await lifecycle.requests.queued(
            request,
            timeout: min(stated, options.expiry ?? stated),
            send: { connection, call throws(WaybillError) in
                try connection.submit(
                    publish,
                    request,
                    timeout: options.timeout,
                    call,
                    storedNumber: storedNumber
                )
            },
            withdraw: { [session] call in session.cancel(call) }
        )
        return try answer.receipt(of: request)
    }

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        guard case .subscribe(let options) = request.command else {
            throw WaybillError(.invalidEntry, "subscribe(_:) accepts only subscriptions")
        }
        let all = try MQTTSubscribeMapping.subscriptions(request, options, version: version)
        return try await lifecycle.requests.subscribe(
            request,
            options,
            later: { [subscriptions] () throws(WaybillError) in
                try subscriptions.subscribeLater(all, request, options)
            },
            greeting: { () throws(WaybillError) in try onDemand(for: request) },
            connection: { try await connection(for: request) },
            now: { connection in
                try await subscriptions.subscribe(all, request, options, over: connection)
            }
        )
    }

    /// Refuses a message that cannot be sent, before a connection is made for it.
    func check(_ publish: MQTTPublish, _ request: Request) throws(WaybillError) {
        try MQTTPublishMapping.check(publish, request, version: version)
    }

    /// Returns the connection for a request, and makes one if needed.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - check: Refuses an invalid request before a connection is made for it.
    /// - Returns: The connection.
    /// - Throws: The errors of `check` and of ``RequestPath/connection(for:greeting:)``.
    func connection(
        for request: Request,
        check: () throws(WaybillError) -> Void = { () throws(WaybillError) in }
    ) async throws -> MQTTConnection {
        if let connection = lifecycle.connected { return connection }
        try check()
        return try await lifecycle.requests.connection(for: request) { () throws(WaybillError) in
            try onDemand(for: request)
        }
    }

    /// Returns the greeting of a connection that is made for a request.
    private func onDemand(for request: Request) throws(WaybillError) -> MQTTGreeting {
        try greeter.greeting(.connecting(for: request))
    }

    /// Authenticates the connection anew.
    func reauthenticate() async throws {
        guard version == .v5, configuration.authenticator != nil else {
            throw MQTTErrorMapping.noAuthenticator
        }
        guard let connection = lifecycle.connected else { throw WaybillError.noConnection }
        try await connection.reauthenticate()
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
        await lifecycle.shutdown()
    }

    /// Shuts down, and discards the session and the store.
    func destroy() async {
        hints.stop()
        let version = version
        await lifecycle.shutdown { connection in
            // The server discards the session, too (MQTT 5, 3.14.2.2.2). MQTT 3.1.1 has no such field.
            if version == .v5 { connection.disconnectPacket.properties.sessionExpiryInterval = 0 }
        }
        // First, for a message that is just being stored.
        session.discard()
        outbox?.removeAll()
    }

    /// Closes without waiting, when the transport was released.
    func abandon() {
        hints.stop()
        lifecycle.abandon()
    }
}
