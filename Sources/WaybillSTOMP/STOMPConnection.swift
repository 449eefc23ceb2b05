import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One request that waits for its receipt.
typealias STOMPPendingCall = PendingCall<STOMPReceivedHeaders>

extension PendingCall: STOMPCall where Answer == STOMPReceivedHeaders {}

/// The greeting of a STOMP client: CONNECT, with the request that led to it.
struct STOMPGreeting: Sendable {
    /// The connect request.
    var request: Request
    var connect: STOMPConnect
    /// Further header fields of the WebSocket's upgrade request.
    var upgradeHeaders: Headers = [:]
}

/// One connection, from its stream to its end, with its core, its driver and its pending calls.
final class STOMPConnection: TransportConnection {
    /// A message that was acknowledged in a transaction, until the transaction ends.
    struct Held: Sendable {
        let id: Message.ID
        let delivery: Delivery<STOMPSubscriptions>
    }

    struct State: Sendable {
        var version = STOMPVersion.v1_2
        /// The server's name.
        var server: String?
        /// The messages that were acknowledged in open transactions.
        var transactions: [WireName: [Held]] = [:]
        var closure: STOMPClosure?
        /// The calls that fail when the connection is over, with their errors; nil means the error of the end.
        var failing: [(call: STOMPPendingCall, error: WaybillError?)] = []
        /// The error of calls that are unanswered at the end; nil means its cause.
        var abandonment: WaybillError?
    }

    let state = Locked(State())
    private let shared: Shared<STOMPConfiguration>
    var configuration: STOMPConfiguration { shared.value }
    private let timers: any TimerSource
    /// The host of the connection.
    private let host: String
    let driver: Driver<STOMPClientConnection>
    let subscriptions: STOMPSubscriptions
    private let replies: STOMPReplies
    private let tls: NegotiatedTLS?
    /// The stream of the frames.
    private let stream: any ByteStream

    /// Resolves with the server's CONNECTED.
    private let connected = Promise<STOMPConnected>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(
        link: OpenedLink,
        configuration shared: Shared<STOMPConfiguration>,
        subscriptions: STOMPSubscriptions,
        replies: STOMPReplies
    ) {
        self.shared = shared
        let configuration = shared.value
        self.subscriptions = subscriptions
        self.replies = replies
        timers = link.timers
        host = link.endpoint.host
        tls = link.tls
        stream = link.stream
        var core = STOMPClientConnection.Configuration()
        core.limits = configuration.limits
        core.connectTimeout = link.timeLeft
        core.receiptTimeout = configuration.receiptTimeout
        core.closeTimeout = configuration.closeTimeout
        core.maximumInFlight = max(configuration.maximumInFlight, 1)
        core.isTracing = configuration.wireLogger != nil
        driver = Driver(
            core: STOMPClientConnection(configuration: core),
            stream: link.stream,
            timers: link.timers,
            account: subscriptions.account,
            isOpening: true
        )
    }

    var now: WireInstant { timers.now }

    /// Notes that every subscription is restored.
    func endOpening() { driver.endOpening() }

    /// Stops or resumes reading.
    ///
    /// Does not keep the connection in memory beyond its end.
    var reading: @Sendable (Bool) -> Void {
        { [driver] isReading in driver.setReading(isReading) }
    }

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
                    let cause = self.cause(of: error)
                    self.subscriptions.detach(self)
                    // Called first, so that code that learns of the end from a call or a stream finds the
                    // connection already removed.
                    onEnd(cause)
                    self.replies.detach(self, cause)
                    self.handleEnd(cause)
                    self.ended.resolve(.success(()))
                }
            )
        )
        var connect = greeting.connect
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
        return STOMPMapping.receipt(answer, tls)
    }

    func over() async throws { try await ended.value() }

    func resume(_ receipt: Receipt) async throws {
        try await subscriptions.resume(over: self)
        try await replies.resume(over: self)
    }

    /// The version that the server has chosen.
    var version: STOMPVersion { state.withLock { $0.version } }

    /// The server's name; nil if it has sent none.
    var server: String? { state.withLock { $0.server } }

    // MARK: The end

    /// Does nothing, because the receipt of DISCONNECT follows the receipts of all earlier frames (STOMP 1.2,
    /// DISCONNECT).
    func drain(within timeout: Duration) async {}

    /// Sends DISCONNECT and waits until the stream is closed; after the timeout it is closed by force.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        if let abandonment { state.withLock { $0.abandonment = abandonment } }
        disconnectNow()
        await ended.waitUntilResolved(within: timeout, by: timers) { [driver] in driver.close() }
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        driver.withCore(.immediate) { core, now in core.disconnect(at: now) }
        // The RECEIPT follows the server's earlier frames, so they have to be read.
        subscriptions.releasePressure()
    }

    /// Returns the cause of the end; nil if this side ended the connection.
    private func cause(of error: LinkError?) -> WaybillError? {
        switch (state.withLock { $0.closure }, error) {
        case (.endOfStream?, let error?), (nil, let error?): WaybillError(error)
        case (let closure?, _): STOMPMapping.error(closure)
        case (nil, nil): nil
        }
    }

    /// Returns the error of calls that are unanswered at the end.
    func abandonment(_ cause: WaybillError?) -> WaybillError {
        state.withLock { $0.abandonment } ?? STOMPMapping.unanswered(cause)
    }

    private func handleEnd(_ cause: WaybillError?) {
        let (failing, abandonment, held) = state.withLock { state in
            defer {
                state.transactions = [:]
                state.failing = []
            }
            return (state.failing, state.abandonment, state.transactions)
        }
        connected.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        // Released with no lock held.
        withExtendedLifetime(held) {}
        let lost = STOMPMapping.unanswered(cause)
        for (call, error) in failing {
            // A frame that was never sent fails with this side's reason for the end, if there is one.
            let isUnsent = error?.code == .notConnected
            call.fail(
                isUnsent ? abandonment ?? STOMPMapping.notSent() : error ?? abandonment ?? lost
            )
        }
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
                    replies.take(frame, of: id)
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
            state.withLock { state in
                state.version = connected.version
                state.server = connected.server
            }
            subscriptions.attach(self)
            if connected.heartBeat == .none { stream.keepAlive() }
            self.connected.resolve(.success(connected))
        // The calls of waiting tasks are answered together.
        case .message, .receipt: break
        case .failed(let call, let frame): fail(call, STOMPMapping.refusal(frame))
        case .timedOut(let call):
            (call as? STOMPPendingCall)?.fail(
                WaybillError(.timedOut, "the server sent no receipt in time")
            )
        case .abandoned(let call): fail(call, nil)
        case .notSent(let call): fail(call, STOMPMapping.notSent())
        case .trace(let trace):
            configuration.wireLogger?.logFrame(
                trace.isOutbound ? .outbound : .inbound,
                trace.text,
                byteCount: trace.byteCount,
                body: Payload(trace.body)
            )
        case .closed(let closure):
            state.withLock { $0.closure = closure }
            // Calls wait for the end of the stream. It is closed here, because a failed server may not close it.
            if closure != .disconnected { driver.close() }
        }
    }

    /// Fails a call when the connection is over, so that a retry makes a new connection.
    private func fail(_ call: any STOMPCall, _ error: WaybillError?) {
        guard let call = call as? STOMPPendingCall else { return }
        state.withLock { $0.failing.append((call, error)) }
    }
}
