import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One connection, from its stream to its end, with its core, its driver and its pending calls.
final class STOMPConnection: TransportConnection {
    struct State: Sendable {
        var transactions = STOMPTransactions()
        var end = STOMPConnectionEnd()
    }

    let state = Locked(State())
    private let shared: Shared<STOMPConfiguration>
    var configuration: STOMPConfiguration { shared.value }
    private let link: OpenedLink
    let driver: Driver<STOMPClientConnection>
    let subscriptions: STOMPSubscriptions
    private let replies: STOMPReplies
    /// The messages of an earlier process, and the interceptors that run over them; nil without a store.
    private let left: (messages: STOMPLeftMessages, chain: RequestChain?)?

    /// Resolves with the server's CONNECTED.
    private let connected = Promise<STOMPConnected>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(
        link: OpenedLink,
        configuration shared: Shared<STOMPConfiguration>,
        subscriptions: STOMPSubscriptions,
        replies: STOMPReplies,
        left: (messages: STOMPLeftMessages, chain: RequestChain?)?
    ) {
        self.shared = shared
        let configuration = shared.value
        self.subscriptions = subscriptions
        self.replies = replies
        self.left = left
        self.link = link
        var core = STOMPClientConfiguration()
        core.limits = configuration.wireLimits
        core.connectTimeout = link.timeLeft
        core.receiptTimeout = configuration.timeouts.confirmation
        core.closeTimeout = configuration.timeouts.close
        core.maximumInFlight = max(configuration.limits.inFlight, 1)
        core.learnsReceipts = configuration.receipts == .automatic
        core.contentLength = configuration.wireContentLength
        core.isTracing = configuration.wireLogger != nil
        driver = Driver(
            core: STOMPClientConnection(configuration: core),
            stream: link.stream,
            timers: link.timers,
            account: subscriptions.pressure.account,
            isOpening: true
        )
    }

    var timers: any TimerSource { link.timers }
    var now: WireInstant { timers.now }
    var hasProgress: Bool { driver.withCore { core, _ in core.hasProgress } }

    /// Sends CONNECT and waits for CONNECTED.
    ///
    /// Without a virtual host, CONNECT has the host of the connection.
    func begin(
        _ greeting: STOMPGreeting,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt {
        // The driver releases the handler, and with it this connection, after the end.
        driver.start(
            .init(
                receive: { self.handle($0) },
                end: { error in
                    let isAccepted = self.connected.result != nil
                    let cause = self.end.cause(error, isAccepted: isAccepted)
                    let replayEnd = self.end.replayEnd(error)
                    let verdict = self.subscriptions.detach(self, replayEnd)
                    self.left?.messages.detach(self, replayEnd)
                    // Called first, so that code that learns of the end from a call or a stream finds the
                    // connection already removed.
                    onEnd(cause)
                    self.replies.detach(self, self.end.unanswered(cause))
                    self.handleEnd(cause)
                    self.subscriptions.note(verdict, cause)
                    self.ended.resolve(.success(()))
                }
            )
        )
        var connect = greeting.connect
        connect.host = connect.host ?? link.endpoint.host
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
        return STOMPMapping.receipt(answer, link.tls)
    }

    func over() async throws { try await ended.value() }

    func resume(_ receipt: Receipt) async throws {
        try await subscriptions.resume(over: self)
        try await replies.resume(over: self)
        try await left?.messages.send(over: self, left?.chain)
    }

    /// The version that the server has chosen.
    var version: STOMPVersion { answer?.version ?? .v1_2 }

    /// The server's CONNECTED; nil before.
    var answer: STOMPConnected? { try? connected.result?.get() }

    // MARK: The end

    /// Does nothing, because the receipt of DISCONNECT follows the receipts of all earlier frames (STOMP 1.2,
    /// DISCONNECT).
    func drain(within timeout: Duration) async {}

    /// Sends DISCONNECT and waits until the stream is closed; after the timeout it is closed by force.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        if let abandonment { state.withLock { $0.end.abandonment = abandonment } }
        disconnectNow()
        await ended.waitUntilResolved(within: timeout, by: link.timers) { [driver] in
            driver.close()
        }
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
        // The RECEIPT follows the server's earlier frames, so they have to be read.
        subscriptions.pressure.release()
    }

    /// The state of the end.
    var end: STOMPConnectionEnd { state.withLock { $0.end } }

    private func handleEnd(_ cause: WaybillError?) {
        let over = state.withLock { state in
            defer { state = State() }
            return state
        }
        connected.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        // The messages of transactions are released with no lock held.
        over.end.failCalls(cause)
    }

    // MARK: Events

    private func handle(_ events: [STOMPClientEvent]) {
        var batch = MessageBatch(
            reportingTo: subscriptions.events,
            hasQualities: false,
            seenBy: subscriptions.catchAll.sources
        )
        var answered: [Suspension.Continuation] = []
        for event in events {
            switch event {
            case .message(let id, let frame, let token):
                if !subscriptions.collect(frame, token, of: id, into: &batch) {
                    // The receipt of a request is handed out before its reply.
                    Suspension.resume(answered)
                    answered = []
                    if !replies.take(frame, of: id) { handle(.unheard(frame)) }
                }
            case .receipt(let call as STOMPPendingCall, let headers):
                if let caller = call.resolve(.success(headers)) { answered.append(caller) }
            default:
                batch.deliver()
                handle(event)
            }
        }
        batch.deliver()
        Suspension.resume(answered)
    }

    private func handle(_ event: STOMPClientEvent) {
        switch event {
        case .connected(let connected):
            subscriptions.attach(self, connected.version)
            if connected.heartBeat == .none { link.stream.keepAlive() }
            self.connected.resolve(.success(connected))
        case .receipt(let call, _): (call as? STOMPLeftCall)?.end(nil)
        // Those of subscriptions, and the calls of waiting tasks, are handled before.
        case .message: break
        case .unheard(let frame):
            let topic = frame.headers.destination
            subscriptions.unheard.report(topic, byteCount: frame.body.count)
        case .skipped(let id, let message, let token):
            subscriptions.events.report(
                .dropped(
                    1,
                    byteCount: message.byteCount,
                    topic: message.frame.headers.destination,
                    reason: .tooLarge
                )
            )
            replies.take(message.frame, of: id, longerThan: configuration.limits.bodySize)
            if let token { subscriptions.skip(token, over: self) }
        case .failed(let call, let frame):
            let error = STOMPMapping.refusal(frame)
            (call as? STOMPLeftCall)?.end(error)
            state.withLock { $0.end.add(call, error) }
        case .timedOut(let call, let isAnswering):
            (call as? STOMPPendingCall)?.fail(STOMPMapping.noReceipt(isAnswering: isAnswering))
            subscriptions.pressure.noteTimeout(of: configuration.timeouts.confirmation)
        case .receiptsMissing:
            subscriptions.events.report(.unsupported(STOMPMapping.receiptsMissing))
        case .abandoned(let call): state.withLock { $0.end.add(call, nil) }
        case .notSent(let call): state.withLock { $0.end.add(call, STOMPMapping.notSent()) }
        case .trace(let trace):
            configuration.wireLogger?.logFrame(
                trace.isOutbound ? .outbound : .inbound,
                trace.text,
                name: trace.name,
                topic: trace.topic,
                byteCount: trace.byteCount,
                body: Payload(trace.body),
                of: configuration.label
            )
        case .closed(let closure):
            state.withLock { $0.end.closure = closure }
            // Calls wait for the end of the stream. It is closed here, because a failed server may not close it.
            if closure != .disconnected { driver.close() }
        }
    }
}
