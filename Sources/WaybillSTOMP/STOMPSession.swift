import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One request that waits for its receipt.
typealias STOMPPendingCall = PendingCall<STOMPReceivedHeaders>

extension PendingCall: STOMPCall where Answer == STOMPReceivedHeaders {}

/// One connection from its stream to its end: the core, its driver, and who listens.
final class STOMPSession: ConnectionSession, DeliverySettler {
    private struct Subscription: Sendable {
        let destination: String
        let listener: MessageListener
        let limit: Int
        /// How many of its messages wait to be acknowledged.
        var unsettled = 0
    }

    private struct State: Sendable {
        var subscriptions: [String: Subscription] = [:]
        var lastSubscription: UInt64 = 0
        var version = STOMPVersion.v1_2
        var closure: STOMPClosure?
        /// What calls fail with that the end leaves unanswered.
        var abandonment = WaybillError(
            .connectionLost,
            "the connection ended before the server answered"
        )
    }

    private let state = Locked(State())
    private let configuration: STOMPConfiguration
    private let timers: any TimerSource
    private let driver: Driver<STOMPClientConnection>
    private let pressure: ReadingPressure

    private let manual = ManualDeliveries<STOMPSession>()
    /// Resolves with the server's CONNECTED.
    private let connected = Promise<STOMPConnected>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(link: OpenedLink, configuration: STOMPConfiguration) {
        self.configuration = configuration
        timers = link.timers
        var core = STOMPClientConnection.Configuration()
        core.limits = configuration.limits
        core.connectTimeout = link.timeLeft
        core.receiptTimeout = configuration.receiptTimeout
        core.closeTimeout = configuration.closeTimeout
        core.isTracing = configuration.wireLogger != nil
        driver = Driver(
            core: STOMPClientConnection(configuration: core),
            stream: link.stream,
            timers: link.timers
        )
        pressure = ReadingPressure { [driver] in driver.setReading($0) }
    }

    /// Sends CONNECT and waits for CONNECTED.
    func begin(
        _ connect: STOMPConnect,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt {
        // The driver lets go of the handler after the end, and of this session with it.
        driver.start(
            .init(
                receive: { self.handle($0) },
                end: { error in
                    let cause = self.handleEnd(error)
                    onEnd(cause)
                    self.ended.resolve(.success(()))
                }
            )
        )
        do {
            try driver.withCore(.immediate) { (core, now) throws(STOMPSendError) in
                try core.connect(connect, at: now)
            }
        } catch {
            let request = Request(topic: nil, command: .connect)
            connected.resolve(.failure(STOMPMapping.error(error, request)))
            driver.close()
        }
        let answer = try await connected.value()
        state.withLock { $0.version = answer.version }
        return STOMPMapping.receipt(answer)
    }

    // MARK: Requests

    /// Sends a message, and waits for the receipt if one is asked for.
    func send(
        _ headers: STOMPHeaders,
        _ request: Request,
        _ options: SendOptions
    ) async throws -> Receipt {
        let asks = STOMPMapping.asksForReceipt(options, headers, configuration)
        return try await perform(request, asksForReceipt: asks) {
            (core, now, call) throws(STOMPSendError) in
            try core.send(
                headers,
                body: request.body,
                call: call,
                timeout: options.timeout,
                at: now
            )
        }
    }

    /// Makes a subscription with an id of its own.
    func subscribe(
        _ subscription: STOMPMapping.Subscription,
        _ request: Request,
        _ options: SubscribeOptions
    ) async throws -> Messages<Message> {
        let (id, version) = state.withLock { state in
            state.lastSubscription += 1
            return (String(state.lastSubscription), state.version)
        }
        let policy = options.buffering ?? configuration.buffering
        let listener = MessageListener(
            options,
            buffering: policy,
            onLeave: { [weak self] _ in self?.listenerLeft(id) },
            pressure: pressure
        )
        let messages = listener.source.messages
        state.withLock { state in
            state.subscriptions[id] = Subscription(
                destination: subscription.destination,
                listener: listener,
                limit: policy.messageLimit
            )
        }
        // 1.0 knows no acknowledgement of single messages; in order, the cumulative one amounts to it.
        let isOld = version == .v1_0 && subscription.isModeImplied
        let mode =
            isOld && subscription.ackMode == .clientIndividual ? .client : subscription.ackMode
        do {
            let asks = options.asksForReceipt ?? configuration.asksForReceipts
            _ = try await perform(request, asksForReceipt: asks) {
                (core, now, call) throws(STOMPSendError) in
                try core.subscribe(
                    id: id,
                    destination: subscription.destination,
                    ackMode: mode,
                    headers: subscription.headers,
                    call: call,
                    timeout: options.timeout,
                    at: now
                )
            }
            return messages
        } catch {
            listener.source.terminate()
            throw error
        }
    }

    private func listenerLeft(_ id: String) {
        guard state.withLock({ $0.subscriptions.removeValue(forKey: id) }) != nil else { return }
        try? driver.withCore(.immediate) { (core, now) throws(STOMPSendError) in
            try core.unsubscribe(id: id, at: now)
        }
    }

    /// Ends every subscription to a destination.
    func unsubscribe(_ request: Request) async throws -> Receipt {
        let found = state.withLock { state in
            let found = state.subscriptions.filter { $0.value.destination == request.topic }
            for id in found.keys { state.subscriptions[id] = nil }
            return found.sorted { (UInt64($0.key) ?? 0) < (UInt64($1.key) ?? 0) }
        }
        guard !found.isEmpty else {
            throw WaybillError(.invalidEntry, "nothing subscribes to this destination")
                .about(request)
        }
        defer { for (_, subscription) in found { subscription.listener.source.finish() } }
        for (id, _) in found {
            _ = try await perform(request, asksForReceipt: configuration.asksForReceipts) {
                (core, now, call) throws(STOMPSendError) in
                try core.unsubscribe(
                    id: id,
                    headers: STOMPMapping.wire(request.headers),
                    call: call,
                    at: now
                )
            }
        }
        return Receipt(topic: request.topic)
    }

    /// What is done to a transaction.
    enum TransactionStep: Sendable {
        case begin, commit, abort
    }

    func transact(
        _ step: TransactionStep,
        _ transaction: String,
        _ request: Request
    ) async throws -> Receipt {
        let headers = STOMPMapping.wire(request.headers)
        return try await perform(request, asksForReceipt: configuration.asksForReceipts) {
            (core, now, call) throws(STOMPSendError) in
            switch step {
            case .begin:
                try core.begin(transaction: transaction, headers: headers, call: call, at: now)
            case .commit:
                try core.commit(transaction: transaction, headers: headers, call: call, at: now)
            case .abort:
                try core.abort(transaction: transaction, headers: headers, call: call, at: now)
            }
        }
    }

    /// Sends, and waits for the receipt if one is asked for, or for the link to have room.
    private func perform(
        _ request: Request,
        asksForReceipt: Bool,
        _ send: (inout STOMPClientConnection, WireInstant, STOMPPendingCall?)
            throws(STOMPSendError) -> Void
    ) async throws -> Receipt {
        guard asksForReceipt else {
            let isCongested: Bool
            do throws(STOMPSendError) {
                isCongested = try driver.send { (core, now) throws(STOMPSendError) in
                    try send(&core, now, nil)
                }.isCongested
            } catch {
                throw STOMPMapping.error(error, request)
            }
            if isCongested { try await driver.waitUntilDrained() }
            return Receipt(topic: request.topic)
        }
        let call = STOMPPendingCall()
        do {
            let headers = try await call.answer(
                sending: { () throws(WaybillError) in
                    do throws(STOMPSendError) {
                        try driver.withCore { (core, now) throws(STOMPSendError) in
                            try send(&core, now, call)
                        }
                    } catch {
                        throw STOMPMapping.error(error, request)
                    }
                },
                withdrawing: { call in driver.withCore { core, _ in core.cancel(call) } }
            )
            return Receipt(topic: request.topic, headers: STOMPMapping.headers(headers.list))
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    // MARK: Acknowledging

    /// Settles a message that was subscribed to with manual acknowledgement.
    func settle(
        _ id: Message.ID,
        _ settlement: Settlement,
        _ request: Request
    ) async throws -> Receipt {
        let delivery = try manual.take(id, for: request)
        let token = delivery.name
        let transaction = settlement.transaction
        let headers = STOMPMapping.wire(request.headers)
        do {
            let receipt = try await perform(
                request,
                // In a transaction, as with a send.
                asksForReceipt: configuration.asksForReceipts && transaction == nil
            ) { (core, now, call) throws(STOMPSendError) in
                if settlement.isAccepted {
                    try core.acknowledge(
                        token,
                        transaction: transaction,
                        headers: headers,
                        call: call,
                        at: now
                    )
                } else {
                    try core.refuse(
                        token,
                        transaction: transaction,
                        headers: headers,
                        call: call,
                        at: now
                    )
                }
            }
            if transaction == nil {
                noteSettled(token)
            } else {
                // Should the transaction be aborted, the message waits again.
                manual.putBack(delivery, as: id)
            }
            return receipt
        } catch let error as WaybillError where error.code == .invalidEntry {
            manual.putBack(delivery, as: id)
            throw error
        }
    }

    /// Settles a message that the consumer has taken; one that nobody took is the server's to deliver again.
    func settle(_ token: STOMPAckToken, _ settlement: Settlement) {
        noteSettled(token)
        guard settlement.isTaken else { return }
        try? driver.withCore { (core, now) throws(STOMPSendError) in
            try core.acknowledge(token, at: now)
        }
    }

    private func noteSettled(_ token: STOMPAckToken) {
        state.withLock { $0.subscriptions[token.subscriptionID]?.unsettled -= 1 }
    }

    // MARK: The end

    /// Sends DISCONNECT and waits until the stream is closed, or by force after a time.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        if let abandonment { state.withLock { $0.abandonment = abandonment } }
        disconnectNow()
        await ended.settled(within: timeout, by: timers) { [driver] in driver.close() }
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
    }

    private func handleEnd(_ error: LinkError?) -> WaybillError? {
        let (closure, subscriptions) = state.withLock { state in
            defer { state.subscriptions = [:] }
            return (state.closure, state.subscriptions)
        }
        timers.invalidate()
        let cause: WaybillError? =
            switch (closure, error) {
            case (.endOfStream?, let error?), (nil, let error?): WaybillError(error)
            case (let closure?, _): STOMPMapping.error(closure)
            case (nil, nil): nil
            }
        connected.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        manual.removeAll()
        for subscription in subscriptions.values {
            subscription.listener.source.finish(throwing: cause)
        }
        return cause
    }

    // MARK: Events

    private func handle(_ events: [STOMPClientEvent]) {
        // The end comes last, and those whom it leaves without an answer want to know why.
        if case .closed(let closure)? = events.last { noteClosure(closure) }
        var batch = MessageBatch()
        for event in events {
            if case .message(let id, let frame, let token) = event {
                collect(frame, token, of: id, into: &batch)
                continue
            }
            batch.deliver()
            handle(event)
        }
        batch.deliver()
    }

    private func handle(_ event: STOMPClientEvent) {
        switch event {
        case .connected(let connected): self.connected.resolve(.success(connected))
        case .message: break
        case .receipt(let call, let headers): (call as? STOMPPendingCall)?.succeed(headers)
        case .failed(let call, let frame):
            (call as? STOMPPendingCall)?.fail(STOMPMapping.refusal(frame))
        case .timedOut(let call):
            (call as? STOMPPendingCall)?.fail(
                WaybillError(.timedOut, "the server sent no receipt in time")
            )
        case .abandoned(let call):
            (call as? STOMPPendingCall)?.fail(state.withLock { $0.abandonment })
        case .trace(let trace):
            configuration.wireLogger?.log(
                WireRecord(
                    kind: .frame,
                    direction: trace.isOutbound ? .outbound : .inbound,
                    text: trace.text,
                    byteCount: trace.byteCount
                )
            )
        case .closed: break
        }
    }

    private func noteClosure(_ closure: STOMPClosure) {
        state.withLock { state in
            state.closure = closure
            if case .error = closure, let error = STOMPMapping.error(closure) {
                state.abandonment = error
            }
        }
    }

    private func collect(
        _ frame: STOMPFrame,
        _ token: STOMPAckToken?,
        of id: String,
        into batch: inout MessageBatch
    ) {
        let (listener, isTooSlow) = state.withLock { state in
            guard let subscription = state.subscriptions[id] else {
                return (nil as MessageListener?, false)
            }
            if token != nil { state.subscriptions[id]?.unsettled += 1 }
            return (subscription.listener, subscription.unsettled >= subscription.limit)
        }
        guard let listener else { return }
        let message = STOMPMapping.message(frame, isAcknowledged: token != nil)
        guard let token else { return batch.add(message, to: [listener]) }
        guard !isTooSlow else {
            batch.deliver()
            return failSlow(id, listener, message.topic)
        }
        batch.add(message, to: [listener], settling: token, by: self, manual: manual)
    }

    /// Ends a subscription whose messages are not acknowledged; the server delivers them again.
    private func failSlow(_ id: String, _ listener: MessageListener, _ topic: String) {
        listener.source.finish(
            throwing: WaybillError(
                .slowConsumer,
                "too many messages wait to be acknowledged",
                topic: topic
            )
        )
        listenerLeft(id)
    }
}
