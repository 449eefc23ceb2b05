import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One request that waits for its receipt.
typealias STOMPPendingCall = PendingCall<STOMPReceivedHeaders>

extension PendingCall: STOMPCall where Answer == STOMPReceivedHeaders {}

/// What names a message that is to be acknowledged.
struct STOMPDeliveryName: Sendable {
    let token: STOMPAckToken
    /// Which message of its subscription it is, from 1.
    let number: UInt64
    /// The length of its body.
    let byteCount: UInt64
    /// The length of all bodies of its subscription up to its own.
    let totalByteCount: UInt64
}

/// One connection from its stream to its end: the core, its driver, and who listens.
final class STOMPSession: ConnectionSession, DeliverySettler {
    struct Subscription: Sendable {
        let destination: String
        let listener: MessageListener
        let policy: BufferPolicy
        /// Whether an acknowledgement covers all messages before its own.
        let isCumulative: Bool
        /// Whether the server is held back when too many messages wait; else the subscription fails.
        let holdsBack: Bool
        /// How many messages came that are to be acknowledged, and the length of their bodies.
        private(set) var received = (messages: UInt64(0), bytes: UInt64(0))
        /// How many of them were, one way or the other.
        private var settled = (messages: UInt64(0), bytes: UInt64(0))

        init(
            destination: String,
            listener: MessageListener,
            policy: BufferPolicy,
            isCumulative: Bool,
            holdsBack: Bool
        ) {
            self.destination = destination
            self.listener = listener
            self.policy = policy
            self.isCumulative = isCumulative
            self.holdsBack = holdsBack
        }

        mutating func noteReceived(byteCount: Int) {
            received.messages &+= 1
            received.bytes &+= UInt64(clamping: byteCount)
        }

        mutating func noteSettled(_ name: STOMPDeliveryName) {
            if isCumulative {
                settled.messages = max(settled.messages, name.number)
                settled.bytes = max(settled.bytes, name.totalByteCount)
            } else {
                settled.messages &+= 1
                settled.bytes &+= name.byteCount
            }
        }

        /// Whether more waits to be acknowledged than may; one message may, whatever its length.
        var isTooSlow: Bool {
            let waiting = received.messages &- settled.messages
            return waiting > 1
                && (waiting > UInt64(clamping: policy.messageLimit)
                    || received.bytes &- settled.bytes > UInt64(clamping: policy.byteLimit))
        }
    }

    /// A message that is settled in a transaction, for the time until that ends.
    struct Held: Sendable {
        let id: Message.ID
        let delivery: Delivery<STOMPSession>
    }

    struct State: Sendable {
        var subscriptions: [String: Subscription] = [:]
        var lastSubscription: UInt64 = 0
        var version = STOMPVersion.v1_2
        /// What was settled in transactions that are open.
        var transactions: [String: [Held]] = [:]
        var closure: STOMPClosure?
        /// Calls that fail when the connection is over, with their errors; nil for those of the end.
        var failing: [(call: STOMPPendingCall, error: WaybillError?)] = []
        /// What calls fail with that the end leaves unanswered, if not with its cause.
        var abandonment: WaybillError?
    }

    let state = Locked(State())
    let configuration: STOMPConfiguration
    private let timers: any TimerSource
    /// The host that the connection leads to.
    private let host: String
    let driver: Driver<STOMPClientConnection>
    /// Stops reading while at least one subscription wants it.
    let pressure: ReadingPressure
    private let tls: NegotiatedTLS?

    let manual = ManualDeliveries<STOMPSession>()
    /// Resolves with the server's CONNECTED.
    private let connected = Promise<STOMPConnected>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(link: OpenedLink, configuration: STOMPConfiguration) {
        self.configuration = configuration
        timers = link.timers
        host = link.endpoint.host
        tls = link.tls
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
        pressure = ReadingPressure { [driver] isReading in
            driver.withCore { core, now in core.holdReading(!isReading, at: now) }
            driver.setReading(isReading)
        }
    }

    /// Sends CONNECT, to the host of the connection unless another is named, and waits for CONNECTED.
    func begin(
        _ connect: STOMPConnect,
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
        var connect = connect
        connect.host = connect.host ?? host
        do {
            try driver.withCore(.immediate) { [connect] (core, now) throws(STOMPSendError) in
                try core.connect(connect, at: now)
            }
        } catch {
            let request = Request(topic: nil, command: .connect)
            connected.resolve(.failure(STOMPMapping.error(error, request)))
            driver.close()
        }
        let answer = try await connected.value()
        state.withLock { $0.version = answer.version }
        return STOMPMapping.receipt(answer, tls)
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
        // The RECEIPT comes behind what the server had to say before.
        pressure.release()
    }

    /// Why it is over; nil when this side ended it.
    private func cause(of error: LinkError?) -> WaybillError? {
        switch (state.withLock { $0.closure }, error) {
        case (.endOfStream?, let error?), (nil, let error?): WaybillError(error)
        case (let closure?, _): STOMPMapping.error(closure)
        case (nil, nil): nil
        }
    }

    private func handleEnd(_ cause: WaybillError?) {
        let (subscriptions, failing, abandonment) = state.withLock { state in
            defer {
                state.subscriptions = [:]
                state.transactions = [:]
                state.failing = []
            }
            return (state.subscriptions, state.failing, state.abandonment)
        }
        timers.invalidate()
        connected.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        manual.removeAll()
        for subscription in subscriptions.values {
            subscription.listener.source.finish(throwing: cause)
        }
        let lost = WaybillError(
            .connectionLost,
            "the connection ended before the server answered",
            peerReason: cause?.peerReason,
            underlying: cause?.underlying
        )
        for (call, error) in failing { call.fail(error ?? abandonment ?? lost) }
    }

    // MARK: Events

    private func handle(_ events: [STOMPClientEvent]) {
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
        case .failed(let call, let frame): fail(call, STOMPMapping.refusal(frame))
        case .timedOut(let call):
            (call as? STOMPPendingCall)?.fail(
                WaybillError(.timedOut, "the server sent no receipt in time")
            )
        case .abandoned(let call): fail(call, nil)
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
            // Calls wait for the end of the stream, which is not left to a server that has failed.
            if closure != .disconnected { driver.close() }
        }
    }

    /// Lets a call fail once the connection is over: whoever tries again then makes a new one.
    private func fail(_ call: any STOMPCall, _ error: WaybillError?) {
        guard let call = call as? STOMPPendingCall else { return }
        state.withLock { $0.failing.append((call, error)) }
    }

    private func collect(
        _ frame: STOMPFrame,
        _ token: STOMPAckToken?,
        of id: String,
        into batch: inout MessageBatch
    ) {
        let subscription = state.withLock { state in
            if token != nil {
                state.subscriptions[id]?.noteReceived(byteCount: frame.body.count)
            }
            return state.subscriptions[id]
        }
        guard let subscription else { return }
        let listener = subscription.listener
        let message = STOMPMapping.message(frame, isAcknowledged: token != nil)
        guard let token else { return batch.add(message, to: [listener]) }
        if subscription.isTooSlow {
            guard subscription.holdsBack else {
                batch.deliver()
                return failSlow(id, subscription, message.topic)
            }
            updatePressure(of: id)
        }
        let name = STOMPDeliveryName(
            token: token,
            number: subscription.received.messages,
            byteCount: UInt64(clamping: frame.body.count),
            totalByteCount: subscription.received.bytes
        )
        batch.add(message, to: [listener], settling: name, by: self, manual: manual)
    }

    /// Ends a subscription whose messages are not acknowledged; the server delivers them again.
    private func failSlow(_ id: String, _ subscription: Subscription, _ topic: String) {
        let policy = subscription.policy
        subscription.listener.source.finish(
            throwing: WaybillError(
                .slowConsumer,
                "more than \(policy.messageLimit) messages or \(policy.byteLimit) bytes wait to be acknowledged",
                topic: topic
            )
        )
        listenerLeft(id)
    }

    /// Holds the server back while too many messages of a subscription wait to be acknowledged.
    func updatePressure(of id: String) {
        pressure.update(id) { state.withLock { $0.subscriptions[id]?.isTooSlow ?? false } }
    }
}
