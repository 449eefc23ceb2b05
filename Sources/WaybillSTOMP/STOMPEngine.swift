import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Performs the requests of a STOMP transport over its connections.
///
/// The shared ``ConnectionLifecycle`` decides when to connect and when to end.
final class STOMPEngine: Sendable {
    /// The events of the transport.
    let events: TransportEventSource
    /// The listeners for all messages.
    let catchAll: CatchAll
    private let shared: Shared<STOMPConfiguration>
    private let subscriptions: STOMPSubscriptions
    let replies: STOMPReplies
    let lifecycle: ConnectionLifecycle<STOMPConnection>
    /// Stores sends until they are answered; nil without a store.
    let outbox: Outbox?
    private let dialect: STOMPDialect
    private let hints = HintListener()

    init(
        failover: Failover,
        configuration: STOMPConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        let shared = Shared(configuration)
        self.shared = shared
        events = TransportEventSource(label: configuration.label)
        let settings = ConnectionSettings(
            connectsOnDemand: configuration.connectsOnDemand,
            connectTimeout: configuration.timeouts.connect,
            closeTimeout: configuration.timeouts.close,
            waitsForConnection: configuration.offline.waits(with: configuration.store)
        )
        let account = MemoryAccount(limit: configuration.limits.memory)
        catchAll = CatchAll(reportingTo: events, account: account)
        subscriptions = STOMPSubscriptions(
            configuration: shared,
            events: events,
            catchAll: catchAll,
            account: account,
            clock: environment.clock
        )
        replies = STOMPReplies(configuration: configuration, environment: environment)
        var left: STOMPLeftMessages?
        if let store = configuration.store {
            left = try STOMPLeftMessages(store, reportingTo: events)
            outbox = Outbox(StoreClient(store, by: environment.clock, configuration.offline))
        } else {
            outbox = nil
        }
        dialect = STOMPDialect(
            configuration: shared,
            addresses: ServiceAddresses.stomp.knowing(failover.routes.map(\.address)),
            credentials: configuration.credentials.map { CredentialProvider($0, in: environment) },
            subscriptions: subscriptions,
            replies: replies,
            left: left,
            store: outbox?.client,
            catchAll: catchAll
        )
        lifecycle = ConnectionLifecycle(
            settings,
            reconnecting: configuration.reconnection,
            offlineQueue: configuration.offline,
            failover,
            in: environment,
            reportingTo: events,
            dialect
        )
        hints.start(configuration.hints, in: environment) { [weak lifecycle] in lifecycle?.heed($0)
        }
    }

    var configuration: STOMPConfiguration { shared.value }

    var statistics: TransportStatistics {
        var statistics = lifecycle.statistics
        statistics.inFlightCount =
            lifecycle.connected?.driver.withCore { core, _ in core.openCallCount } ?? 0
        statistics.waitingByteCount = subscriptions.pressure.account.byteCount
        statistics.unacknowledgedCount = subscriptions.manual.count
        replies.pending.note(in: &statistics)
        return statistics
    }

    // MARK: Requests

    func perform(_ request: Request) async throws -> Receipt {
        try STOMPMapping.checkBody(request)
        if !request.command.isPlain {
            try STOMPMapping.checkIdentifiers(request, configuration)
        }
        switch request.command.code {
        case .send:
            // The fast path of most sends, with as few calls as possible between the caller and the frame.
            guard outbox == nil, !request.expectsReply, !events.isObserved,
                let connection = lifecycle.connected
            else { return try await send(request) }
            let send = try STOMPMapping.send(request, configuration)
            do { return try await connection.send(send, request, isObserved: false) } catch let
                error as WaybillError
                where error.code == .notConnected
            {
                return try await self.send(request)
            }
        case .connect:
            let timeout = request.command[.timeout]
            return try await lifecycle.connect(dialect.greeting(request), timeout: timeout)
        case .disconnect:
            try STOMPMapping.checkDisconnect(request)
            try await lifecycle.disconnect(within: request.command[.timeout])
            return Receipt()
        case .unsubscribe:
            let parts = request.partsByTopic
            for part in parts { _ = try STOMPMapping.unsubscription(part) }
            try lifecycle.requests.check(request)
            var receipt = Receipt(of: request.topic)
            for part in parts {
                let headers = try STOMPMapping.unsubscription(part)
                receipt = try await subscriptions.unsubscribe(headers, part)
            }
            return receipt
        case .ack, .nack:
            let (message, transaction) = try STOMPMapping.acknowledgement(request)
            let isAccepted = request.command.code == .ack
            return try await lifecycle.requests
                .current(for: request, orAccepted: subscriptions.connection)
                .acknowledge(message, isAccepted: isAccepted, in: transaction, request)
        case .other: return try await transact(request)
        case .subscribe:
            throw WaybillError(.invalidEntry, "use subscribe(_:) for a subscription")
        }
    }

    /// Begins, commits or aborts a transaction.
    private func transact(_ request: Request) async throws -> Receipt {
        let kind = request.command.kind
        let transaction = try STOMPMapping.transaction(request)
        guard kind == .begin else {
            return try await lifecycle.requests.current(for: request)
                .end(transaction, commits: kind == .commit, request)
        }
        let headers = try STOMPMapping.beginning(transaction, request)
        return try await connection(for: request, sending: headers)
            .perform(
                .begin(transaction: transaction, headers: STOMPHeaders(request.headers)),
                request
            )
    }

    /// Sends, and reports the result.
    private func send(_ request: Request) async throws -> Receipt {
        let begun = events.timestamp
        let (topic, byteCount) = (request.topic, request.body.count)
        do {
            let send = try STOMPMapping.send(request, configuration)
            if request.expectsReply {
                let receipt = try await reply(to: send, request)
                events.reportSend(topic, byteCount: byteCount, nil, since: begun)
                return receipt
            }
            let asks = send.asksForReceipt
            var terms = SendTerms(
                isLasting: !send.isInTransaction
                    && lifecycle.requests.waits(request.command, isAcknowledged: asks),
                command: request.command,
                begun: lifecycle.clock.now
            )
            let receipt: Receipt
            if let outbox, asks, !send.isInTransaction {
                try STOMPMapping.check(send.headers, request)
                receipt = try await outbox.keeping(
                    request,
                    within: send.timeout ?? configuration.timeouts.confirmation
                ) { number in
                    terms.storedNumber = number
                    return try await self.send(send, request, terms, isObserved: begun != nil)
                }
            } else {
                receipt = try await self.send(send, request, terms, isObserved: begun != nil)
            }
            // A RECEIPT has a header at least. A server that sends none acknowledges nothing.
            if asks, !receipt.headers.isEmpty {
                events.reportSend(topic, byteCount: byteCount, nil, since: begun)
            }
            return receipt
        } catch {
            events.reportSend(topic, byteCount: byteCount, error, since: begun)
            throw error
        }
    }

    private func send(
        _ send: STOMPSend,
        _ request: Request,
        _ terms: SendTerms,
        isObserved: Bool
    ) async throws -> Receipt {
        let requests = lifecycle.requests
        return try await requests.sending(isLasting: terms.isLasting) {
            let asks = send.asksForReceipt
            guard requests.queues(isAcknowledged: asks, isLasting: terms.isLasting) else {
                return nil
            }
            return try await queued(send, request, terms)
        } connection: {
            try await connection(for: request, sending: send.headers)
        } over: { connection in
            var send = send
            send.timeout = terms.timeLeft(at: lifecycle.clock.now)
            return try await connection.send(
                send,
                request,
                isObserved: isObserved,
                didConfirm: outbox?.client.removal(of: terms.storedNumber)
            )
        }
    }

    /// Sends in the order of the calls, when the connection is back, or there is one at last.
    private func queued(
        _ send: STOMPSend,
        _ request: Request,
        _ terms: SendTerms
    ) async throws -> Receipt {
        try STOMPMapping.check(send.headers, request)
        let clock = lifecycle.clock
        let answer: STOMPReceivedHeaders = try await lifecycle.requests.queued(
            request,
            timeout: terms.queueLimit(
                configuration.offline,
                acknowledgement: configuration.timeouts.confirmation,
                at: clock.now
            ),
            greeting: terms.isLasting ? dialect.greeting(.connecting(for: request)) : nil,
            willSucceed: outbox?.client.removal(of: terms.storedNumber),
            send: { connection, call throws(WaybillError) in
                var send = send
                send.timeout = terms.timeLeft(at: clock.now)
                if try !connection.submit(send, request, call) { call.succeed(.none) }
            },
            withdraw: { [lifecycle] call in lifecycle.connected?.cancel(call) }
        )
        return STOMPMapping.receipt(request, answer)
    }

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        guard request.command.code == .subscribe else {
            throw WaybillError(.invalidEntry, "subscribe(_:) accepts only subscriptions")
        }
        try STOMPMapping.checkBody(request)
        try STOMPMapping.checkIdentifiers(request, configuration)
        let all = try request.partsByTopic.map { try STOMPMapping.subscription($0) }
        return try await lifecycle.requests.subscribe(
            request,
            later: { [subscriptions] () throws(WaybillError) in
                try subscriptions.subscribeLater(all, request)
            },
            greeting: { () throws(WaybillError) in try dialect.greeting(.connecting(for: request))
            },
            connection: { try await connection(for: request) },
            now: { connection in
                try await subscriptions.subscribe(all, request, over: connection)
            }
        )
    }

    /// The connection, made first if need be and if the headers can be sent at all.
    func connection(
        for request: Request,
        sending headers: STOMPHeaders = [:]
    ) async throws -> STOMPConnection {
        if let connection = lifecycle.connected { return connection }
        try STOMPMapping.check(headers, request)
        return try await lifecycle.requests.connection(for: request) { () throws(WaybillError) in
            try dialect.greeting(.connecting(for: request))
        }
    }

    // MARK: The end

    func shutdown() async {
        hints.stop()
        outbox?.shutDown()
        await lifecycle.shutdown()
    }

    /// Closes without waiting, when the transport was released.
    func abandon() {
        hints.stop()
        outbox?.shutDown()
        lifecycle.abandon()
    }
}
