import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One connection from its stream to its end: the core, its driver, and who listens.
final class MQTTSession: ConnectionSession, DeliverySettler {
    private struct State: Sendable {
        var router = MQTTRouter()
        var closure: MQTTClosure?
        /// Calls that the end leaves unanswered.
        var abandoned: [MQTTPendingCall] = []
        /// What they fail with.
        var abandonment = WaybillError(
            .connectionLost,
            "the connection ended before the server answered"
        )
    }

    private let state = Locked(State())
    private let configuration: MQTTConfiguration
    private let timers: any TimerSource
    private let driver: Driver<MQTTClientConnection>
    private let pressure: ReadingPressure
    private let tls: NegotiatedTLS?

    private let manual = ManualDeliveries<MQTTSession>()
    /// Resolves with the server's CONNACK.
    private let connack = Promise<MQTTConnack>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(link: OpenedLink, configuration: MQTTConfiguration) {
        self.configuration = configuration
        timers = link.timers
        tls = link.tls
        var core = MQTTClientConnection.Configuration()
        core.version = configuration.version == .v5 ? .v5 : .v3_1_1
        core.maximumPacketSize = configuration.maximumPacketSize
        core.receiveMaximum = max(configuration.receiveMaximum, 1)
        core.inflightWindow = min(max(configuration.inflightWindow, 1), 65_535)
        core.connectTimeout = link.timeLeft
        core.acknowledgementTimeout = configuration.acknowledgementTimeout
        core.isTracing = configuration.wireLogger != nil
        driver = Driver(
            core: MQTTClientConnection(configuration: core),
            stream: link.stream,
            timers: link.timers
        )
        pressure = ReadingPressure { [driver] isReading in
            driver.withCore { core, now in core.holdReading(!isReading, at: now) }
            driver.setReading(isReading)
        }
    }

    /// Sends CONNECT and waits for CONNACK.
    func begin(
        _ packet: MQTTConnect,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt {
        // The driver lets go of the handler after the end, and of this session with it.
        driver.start(
            .init(
                receive: { self.handle($0) },
                end: { error in
                    let cause = self.cause(of: error)
                    // First, so that whoever hears of the end from a call or a stream finds no trace of
                    // this connection.
                    onEnd(cause)
                    self.handleEnd(cause)
                    self.ended.resolve(.success(()))
                }
            )
        )
        let request = Request(topic: nil, command: .connect)
        do {
            try driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
                try core.connect(packet, hasSessionState: !packet.cleanStart, at: now)
            }
        } catch {
            connack.resolve(.failure(MQTTMapping.error(error, request)))
            driver.close()
        }
        let connack = try await connack.value()
        var receipt = try MQTTMapping.receipt(request, connack.reasonCode, connack.properties)
        receipt.isSessionPresent = connack.sessionPresent
        receipt.tls = tls
        return receipt
    }

    // MARK: Requests

    /// Publishes, and waits as long as the quality of service says.
    func publish(
        _ publish: MQTTPublish,
        _ request: Request,
        timeout: Duration?
    ) async throws -> Receipt {
        guard publish.qualityOfService != .atMostOnce else {
            let isCongested: Bool
            do {
                isCongested = try driver.send { (core, now) throws(MQTTSendError) in
                    try core.publishAtMostOnce(publish, payload: request.body, at: now)
                }.isCongested
            } catch {
                throw MQTTMapping.error(error, request)
            }
            if isCongested { try await driver.waitUntilDrained() }
            return Receipt(topic: request.topic)
        }
        let answer = try await answer(request) { (core, now, call) throws(MQTTSendError) in
            let message = MQTTOutgoingMessage(publish: publish, payload: request.body)
            try core.publish(message, call: call, timeout: timeout, at: now)
        }
        guard case .published(let code, let properties) = answer else { throw Self.confusion }
        return try MQTTMapping.receipt(request, code, properties)
    }

    /// Subscribes a new listener; the filter is sent only if nobody has it yet, or not as good.
    func subscribe(
        _ subscription: MQTTSubscription,
        _ request: Request,
        _ options: SubscribeOptions
    ) async throws -> Messages<Message> {
        let filter = subscription.filter
        let listener = MessageListener(
            options,
            buffering: configuration.buffering,
            onLeave: { [weak self] source in self?.listenerLeft(source, filter) },
            pressure: pressure
        )
        let messages = listener.source.messages
        let matching = (try? MQTTTopicFilter(filter))?.filter ?? filter
        let (answer, identifier) = state.withLock { state -> (Promise<QualityOfService>, UInt32?) in
            guard let entry = state.router[filter] else {
                let entry = state.router.add(subscription, matching: matching, listener: listener)
                return (entry.answer, entry.identifier)
            }
            state.router.add(listener, to: filter)
            // What is there is good enough, unless a better quality of service is wanted.
            guard entry.subscription.qualityOfService < subscription.qualityOfService else {
                return (entry.answer, nil)
            }
            return (state.router.raise(filter, to: subscription), entry.identifier)
        }
        if let identifier {
            Task { @concurrent in
                await self.send(subscription, identifier, request, options.timeout, answer)
            }
        }
        do {
            listener.source.grantedQualityOfService = try await answer.value()
            return messages
        } catch {
            listener.source.terminate()
            throw error
        }
    }

    /// Sends SUBSCRIBE for all who wait for its answer: one of them may be cancelled, the others go on.
    private func send(
        _ subscription: MQTTSubscription,
        _ identifier: UInt32,
        _ request: Request,
        _ timeout: Duration?,
        _ promise: Promise<QualityOfService>
    ) async {
        do {
            let answer = try await answer(request) { (core, now, call) throws(MQTTSendError) in
                try core.subscribe(
                    [subscription],
                    identifier: identifier,
                    call: call,
                    timeout: timeout,
                    at: now
                )
            }
            guard case .subscribed(let suback) = answer, let code = suback.reasonCodes.first else {
                throw Self.confusion
            }
            guard let granted = MQTTQualityOfService(rawValue: code.rawValue) else {
                throw MQTTMapping.refusal(code, suback.properties, request)
            }
            promise.resolve(.success(MQTTMapping.quality(granted)))
        } catch {
            promise.resolve(.failure(error))
        }
    }

    /// When the last listener leaves, the filter goes.
    private func listenerLeft(_ source: MessageSource, _ filter: String) {
        let isLast = state.withLock { $0.router.remove(source, from: filter) }
        guard isLast else { return }
        try? driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
            try core.unsubscribe([filter], call: nil, at: now)
        }
    }

    /// Ends every stream of a filter and tells the server.
    func unsubscribe(_ request: Request) async throws -> Receipt {
        let filter = request.topic ?? ""
        let answer = try await answer(request) { (core, now, call) throws(MQTTSendError) in
            try core.unsubscribe([filter], call: call, at: now)
        }
        for source in state.withLock({ $0.router.remove(filter) }) {
            source.finish()
            pressure.forget(source)
        }
        guard case .unsubscribed(let unsuback) = answer else { throw Self.confusion }
        let code = unsuback.reasonCodes.first ?? .success
        return try MQTTMapping.receipt(request, code, unsuback.properties)
    }

    /// Settles a message that was subscribed to with manual acknowledgement.
    func settle(
        _ id: Message.ID,
        isAccepted: Bool,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try manual.settle(id, Settlement(isAccepted: isAccepted), request)
    }

    func settle(_ receipt: MQTTDeliveryReceipt, _ settlement: Settlement) {
        let reason: MQTTReasonCode = settlement.isAccepted ? .success : .unspecifiedError
        driver.withCore { core, now in core.acknowledge(receipt, reason, at: now) }
    }

    private func answer(
        _ request: Request,
        _ send: (inout MQTTClientConnection, WireInstant, MQTTPendingCall)
            throws(MQTTSendError) -> Void
    ) async throws -> MQTTAnswer {
        let call = MQTTPendingCall()
        do {
            return try await call.answer(
                sending: { () throws(WaybillError) in
                    do throws(MQTTSendError) {
                        try driver.withCore { (core, now) throws(MQTTSendError) in
                            try send(&core, now, call)
                        }
                    } catch {
                        throw MQTTMapping.error(error, request)
                    }
                },
                withdrawing: { call in driver.withCore { core, _ in core.cancel(call) } }
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    private static let confusion = WaybillError(
        .protocolViolation,
        "the answer belongs to another request"
    )

    // MARK: The end

    /// Sends DISCONNECT and waits until the stream is closed, or by force after a time.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        if let abandonment { state.withLock { $0.abandonment = abandonment } }
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
        await ended.settled(within: timeout, by: timers) { [driver] in driver.close() }
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
    }

    /// Why it is over; nil when this side ended it.
    private func cause(of error: LinkError?) -> WaybillError? {
        switch (state.withLock { $0.closure }, error) {
        case (.endOfStream?, let error?), (nil, let error?): WaybillError(error)
        case (let closure?, _): MQTTMapping.error(closure)
        case (nil, nil): nil
        }
    }

    private func handleEnd(_ cause: WaybillError?) {
        let (sources, abandoned, abandonment) = state.withLock { state in
            let sources = state.router.sources
            state.router = MQTTRouter()
            defer { state.abandoned = [] }
            return (sources, state.abandoned, state.abandonment)
        }
        timers.invalidate()
        connack.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        manual.removeAll()
        for source in sources { source.finish(throwing: cause) }
        for call in abandoned { call.fail(abandonment) }
    }

    // MARK: Events

    private func handle(_ events: [MQTTClientEvent]) {
        var batch = MessageBatch()
        for event in events {
            if case .message(let publish, let receipt) = event {
                collect(publish, receipt, into: &batch)
                continue
            }
            batch.deliver()
            handle(event)
        }
        batch.deliver()
    }

    private func handle(_ event: MQTTClientEvent) {
        switch event {
        case .connected(let connack): self.connack.resolve(.success(connack))
        case .message: break
        case .published(let call, let code, let properties):
            (call as? MQTTPendingCall)?.succeed(.published(code, properties))
        case .subscribed(let call, let suback):
            (call as? MQTTPendingCall)?.succeed(.subscribed(suback))
        case .unsubscribed(let call, let unsuback):
            (call as? MQTTPendingCall)?.succeed(.unsubscribed(unsuback))
        case .timedOut(let call):
            (call as? MQTTPendingCall)?.fail(
                WaybillError(.timedOut, "the server did not acknowledge in time")
            )
        case .abandoned(let call):
            // Told once the connection is over: whoever tries again then makes a new one.
            guard let call = call as? MQTTPendingCall else { return }
            state.withLock { $0.abandoned.append(call) }
        case .trace(let trace):
            configuration.wireLogger?.log(
                WireRecord(
                    kind: .frame,
                    direction: trace.isOutbound ? .outbound : .inbound,
                    text: trace.text,
                    byteCount: trace.byteCount
                )
            )
        case .closed(let closure):
            state.withLock { $0.closure = closure }
        }
    }

    private func collect(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        into batch: inout MessageBatch
    ) {
        let listeners = state.withLock { $0.router.listeners(for: publish) }
        guard !listeners.isEmpty else {
            // Nobody listens any longer; the server is told all the same (MQTT 5, 4.5.0-2).
            if let receipt { settle(receipt, Settlement()) }
            return
        }
        let message = MQTTMapping.message(publish)
        guard let receipt else { return batch.add(message, to: listeners) }
        batch.add(message, to: listeners, settling: receipt, by: self, manual: manual)
    }
}
