import MQTTWire
import Waybill
import WaybillLink
import WireCore

/// One connection from its stream to its end: the core, its driver, and who listens.
final class MQTTSession: Sendable {
    private struct State: Sendable {
        var router = MQTTRouter()
        /// Deliveries that the app settles by hand.
        var manual: [UInt64: MQTTDelivery] = [:]
        var lastManual: UInt64 = 0
        var closure: MQTTClosure?
        /// What calls fail with that the end leaves unanswered.
        var abandonment = WaybillError(
            .connectionLost,
            "the connection ended before the server answered"
        )
    }

    private let state = Locked(State())
    private let configuration: MQTTConfiguration
    private let timers: any TimerSource
    private let driver: Driver<MQTTClientConnection>

    /// Resolves with the server's CONNACK.
    let connack = Promise<MQTTConnack>()
    /// Resolves when the stream is closed.
    let ended = Promise<Void>()

    init(
        stream: any ByteStream,
        timers: any TimerSource,
        configuration: MQTTConfiguration,
        core: MQTTClientConnection.Configuration
    ) {
        self.configuration = configuration
        self.timers = timers
        driver = Driver(
            core: MQTTClientConnection(configuration: core),
            stream: stream,
            timers: timers
        )
    }

    /// Sends CONNECT; ``connack`` follows.
    ///
    /// - Parameters:
    ///   - packet: The request.
    ///   - onEnd: Called once when the connection is over, with the cause unless this side ended it.
    func start(
        _ packet: MQTTConnect,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) {
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
            try driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
                try core.connect(packet, hasSessionState: !packet.cleanStart, at: now)
            }
        } catch {
            let request = Request(topic: nil, command: .connect)
            connack.resolve(.failure(MQTTMapping.error(error, request)))
            driver.close()
        }
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
        let source = makeSource(filter, options.buffering ?? configuration.buffering)
        let messages = source.messages
        let listener = MQTTSubscriptionEntry.Listener(
            source: source,
            isManual: options.acknowledgement == .manual
        )
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
            source.grantedQualityOfService = try await answer.value()
            return messages
        } catch {
            source.terminate()
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

    private func makeSource(_ filter: String, _ policy: BufferPolicy) -> MessageSource {
        let source = Locked<MessageSource?>(nil)
        let made = MessageSource(
            policy: policy,
            callbacks: .init(
                onTermination: { [weak self] in
                    guard let ended = source.withLock({ $0.take() }) else { return }
                    self?.listenerLeft(ended, filter)
                },
                onPressure: { [weak self] isHeld in self?.driver.setReading(!isHeld) }
            )
        )
        source.withLock { $0 = made }
        return made
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
        for source in state.withLock({ $0.router.remove(filter) }) { source.finish() }
        guard case .unsubscribed(let unsuback) = answer else { throw Self.confusion }
        let code = unsuback.reasonCodes.first ?? .success
        return try MQTTMapping.receipt(request, code, unsuback.properties)
    }

    /// Settles a message that was subscribed to with manual acknowledgement.
    func settle(_ id: Message.ID, _ request: Request, reason: MQTTReasonCode) throws -> Receipt {
        guard case .number(let identifier) = id.storage, settleManually(identifier, reason) else {
            throw WaybillError(
                .invalidEntry,
                "no message of that name waits to be acknowledged",
                command: request.command.name
            )
        }
        return Receipt()
    }

    func settleManually(_ identifier: UInt64, _ reason: MQTTReasonCode) -> Bool {
        guard let delivery = state.withLock({ $0.manual.removeValue(forKey: identifier) }) else {
            return false
        }
        delivery.settle(reason)
        return true
    }

    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ reason: MQTTReasonCode) {
        driver.withCore { core, now in core.acknowledge(receipt, reason, at: now) }
    }

    private func answer(
        _ request: Request,
        _ send: (inout MQTTClientConnection, WireInstant, MQTTPendingCall)
            throws(MQTTSendError) -> Void
    ) async throws -> MQTTPendingCall.Answer {
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
        } catch var error as WaybillError {
            error.topic = error.topic ?? request.topic
            error.command = error.command ?? request.command.name
            throw error
        }
    }

    private static let confusion = WaybillError(
        .protocolViolation,
        "the answer belongs to another request"
    )

    // MARK: The end

    /// Sends DISCONNECT and waits until the stream is closed, or by force after a time.
    ///
    /// - Parameters:
    ///   - timeout: The time.
    ///   - abandonment: What unanswered calls fail with; nil for `connectionLost`.
    func disconnect(within timeout: Duration, abandonment: WaybillError? = nil) async {
        if let abandonment { state.withLock { $0.abandonment = abandonment } }
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
        let timer = timers.scheduleTimer(at: timers.now.advanced(by: timeout)) { [driver] in
            driver.close()
        }
        // Not to be cut short: what follows relies on the stream being closed.
        await Task { @concurrent [ended] in try? await ended.value() }.value
        timers.cancelTimer(timer)
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
    }

    private func handleEnd(_ error: LinkError?) -> WaybillError? {
        let (closure, sources, manual) = state.withLock { state in
            let sources = state.router.sources
            state.router = MQTTRouter()
            defer { state.manual = [:] }
            return (state.closure, sources, state.manual)
        }
        timers.invalidate()
        let cause: WaybillError? =
            switch (closure, error) {
            case (.endOfStream?, let error?), (nil, let error?): MQTTMapping.error(error)
            case (let closure?, _): MQTTMapping.error(closure)
            case (nil, nil): nil
            }
        connack.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        withExtendedLifetime(manual) {}
        for source in sources { source.finish(throwing: cause) }
        return cause
    }

    // MARK: Events

    private func handle(_ events: [MQTTClientEvent]) {
        var batch = MQTTBatch()
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
            (call as? MQTTPendingCall)?.fail(state.withLock { $0.abandonment })
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
        into batch: inout MQTTBatch
    ) {
        let listeners = state.withLock { $0.router.listeners(for: publish) }
        guard !listeners.isEmpty else {
            // Nobody listens any longer; the server is told all the same (MQTT 5, 4.5.0-2).
            if let receipt { acknowledge(receipt, .success) }
            return
        }
        var message = MQTTMapping.message(publish)
        guard let receipt else {
            for listener in listeners { batch.add(message, to: listener.source) }
            return
        }
        let delivery = MQTTDelivery(receipt, session: self, listeners: listeners.count)
        for listener in listeners {
            message.delivery = delivery
            if listener.isManual {
                let identifier = state.withLock { state in
                    state.lastManual += 1
                    state.manual[state.lastManual] = delivery
                    return state.lastManual
                }
                message.id = Message.ID(.number(identifier))
                message.delivery = MQTTManualDelivery(identifier: identifier, session: self)
            }
            batch.add(message, to: listener.source)
            message.id = nil
        }
    }
}

/// Messages on their way to their sources, gathered so that each consumer is woken once.
private struct MQTTBatch {
    private var lists: [(source: MessageSource, messages: [Message])] = []

    mutating func add(_ message: Message, to source: MessageSource) {
        if let index = lists.firstIndex(where: { $0.source === source }) {
            lists[index].messages.append(message)
        } else {
            lists.append((source, [message]))
        }
    }

    mutating func deliver() {
        for (source, messages) in lists { source.deliver(messages) }
        lists.removeAll(keepingCapacity: true)
    }
}
