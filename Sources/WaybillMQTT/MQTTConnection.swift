import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// How an MQTT client opens a connection.
struct MQTTGreeting: Sendable {
    /// The request that asks for the connection.
    var request: Request
    var packet: MQTTConnect
    /// Further fields of the request for a WebSocket.
    var upgradeHeaders: Headers = [:]
}

/// One connection from its stream to its end: the core, its driver, and who waits for answers.
final class MQTTConnection: TransportConnection {
    struct State: Sendable {
        var closure: MQTTClosure?
        /// What the server says that topics for answers should begin with.
        var responseInformation: String?
        /// Resolves when no message is under way, if somebody waits for that.
        var drained: Promise<Void>?
        /// What hears of a SUBACK before the messages that follow it, by call.
        var notes: [ObjectIdentifier: @Sendable (Bool) -> Void] = [:]
        /// What the server is told at the end.
        var farewell = MQTTDisconnect()
        /// Calls that the end leaves unanswered.
        var abandoned: [MQTTPendingCall] = []
        /// What they fail with.
        var abandonment = WaybillError(
            .connectionLost,
            "the connection ended before the server answered"
        )
    }

    let state = Locked(State())
    private let shared: Shared<MQTTConfiguration>
    var configuration: MQTTConfiguration { shared.value }
    private let timers: any TimerSource
    let driver: Driver<MQTTClientConnection>
    private let subscriptions: MQTTSubscriptions
    private let session: MQTTSession
    /// Has other hosts be tried first from now on; false when there are none.
    private let onRedirect: @Sendable () -> Bool
    private let tls: NegotiatedTLS?
    /// What the packets go through.
    private let stream: any ByteStream

    /// Resolves with the server's CONNACK.
    private let connack = Promise<MQTTConnack>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(
        link: OpenedLink,
        configuration shared: Shared<MQTTConfiguration>,
        subscriptions: MQTTSubscriptions,
        session: MQTTSession,
        onRedirect: @escaping @Sendable () -> Bool
    ) {
        self.onRedirect = onRedirect
        self.shared = shared
        let configuration = shared.value
        self.subscriptions = subscriptions
        self.session = session
        timers = link.timers
        tls = link.tls
        stream = link.stream
        var core = MQTTClientConnection.Configuration()
        core.version = configuration.version == .v5 ? .v5 : .v3_1_1
        core.maximumPacketSize = configuration.maximumPacketSize
        core.inflightWindow = min(max(configuration.inflightWindow, 1), 65_535)
        core.connectTimeout = link.timeLeft
        core.acknowledgementTimeout = configuration.acknowledgementTimeout
        core.isTracing = configuration.wireLogger != nil
        // Also where nothing is connected again by itself: a pause does that, too.
        core.keepsSession = true
        driver = Driver(
            core: MQTTClientConnection(configuration: core),
            stream: link.stream,
            timers: link.timers,
            account: subscriptions.account,
            isOpening: true
        )
    }

    static let hasServerSessions = true

    var now: WireInstant { timers.now }

    /// What the server says that topics for answers should begin with (MQTT 5, 3.2.2.3.15).
    var responseInformation: String? { state.withLock { $0.responseInformation } }

    /// Notes that every subscription has been made again.
    func endOpening() { driver.endOpening() }

    /// What stops or resumes reading; does not keep the session beyond its end.
    var reading: @Sendable (Bool) -> Void {
        { [driver] isReading in driver.setReading(isReading) }
    }

    /// Sends CONNECT and waits for CONNACK.
    func begin(
        _ greeting: MQTTGreeting,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt {
        // The driver lets go of the handler after the end, and of this session with it.
        driver.start(
            .init(
                receive: { self.handle($0) },
                end: { error in
                    let cause = self.cause(of: error)
                    self.noteUnanswered(error)
                    self.handBack()
                    self.subscriptions.detach(self)
                    // First, so that whoever hears of the end from a call or a stream finds no trace of
                    // this connection.
                    onEnd(cause)
                    self.handleEnd(cause)
                    self.ended.resolve(.success(()))
                }
            )
        )
        let request = Request(topic: nil, command: .connect)
        let packet = greeting.packet
        let carried = session.take()
        do {
            try driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
                try core.connect(
                    packet,
                    hasSessionState: !packet.cleanStart,
                    resuming: carried,
                    at: now
                )
            }
            session.follow(self)
        } catch {
            session.park(carried)
            connack.resolve(.failure(MQTTMapping.error(error, request)))
            driver.close()
        }
        let connack = try await connack.value()
        var receipt = try MQTTMapping.receipt(request, connack.reasonCode, connack.properties)
        receipt.isSessionPresent = connack.sessionPresent
        let assigned = connack.properties.assignedClientIdentifier
        if let assigned { session.assignedClientIdentifier = assigned }
        // A 3.1.1 server does not tell the one that it has assigned.
        let identifier = assigned ?? packet.clientIdentifier
        receipt.clientIdentifier = identifier.isEmpty ? nil : identifier
        receipt.tls = tls
        return receipt
    }

    /// Gives the session's state back, if it was taken over at all.
    private func handBack() {
        session.leave(self)
        let carried = driver.withCore { core, _ in
            core.hasBegun ? core.takeSessionState() : nil
        }
        if let carried { session.park(carried) }
    }

    /// Waits until it is over.
    /// - Throws: `CancellationError`.
    func over() async throws { try await ended.value() }

    func resume(_ receipt: Receipt) async throws {
        try await subscriptions.resume(
            over: self,
            hasSession: receipt.isSessionPresent == true,
            isInDoubt: session.takeDoubt()
        )
        let dropped = driver.withCore(.immediate) { core, now in core.resumeSession(at: now) }
        for message in dropped {
            (message.call as? MQTTPendingCall)?.fail(MQTTMapping.error(message.cause))
        }
    }

    // MARK: Requests

    /// Publishes, and waits as long as the quality of service says; reports it if somebody observes.
    func publish(
        _ publish: MQTTPublish,
        _ request: Request,
        timeout: Duration?,
        isObserved: Bool
    ) async throws -> Receipt {
        guard publish.qos != .atMostOnce else {
            let pause: SendPause
            do {
                pause = try driver.send { (core, now) throws(MQTTSendError) in
                    try core.publishAtMostOnce(publish, payload: request.body, at: now)
                    if isObserved { reportSent(publish, request) }
                }.pause
            } catch {
                throw MQTTMapping.error(error, request)
            }
            if pause != .none { try await driver.wait(for: pause) }
            return Receipt(of: request.topic)
        }
        let answer = try await answer(request, withdrawing: { [session] in session.cancel($0) }) {
            (core, now, call) throws(MQTTSendError) in
            let message = MQTTOutgoingMessage(publish: publish, payload: request.body)
            try core.publish(message, call: call, timeout: timeout, at: now)
            if isObserved { reportSent(publish, request) }
        }
        return try Self.receipt(request, answer)
    }

    /// Reports a message with the core's lock held, so that no answer is reported before.
    func reportSent(_ publish: MQTTPublish, _ request: Request) {
        subscriptions.events.report(
            .sent(
                topic: request.topic,
                byteCount: request.body.count,
                qos: MQTTMapping.quality(publish.qos)
            )
        )
    }

    /// What the answer to a publish means.
    static func receipt(_ request: Request, _ answer: MQTTAnswer) throws -> Receipt {
        guard case .published(let code, let properties) = answer else { throw confusion }
        return try MQTTMapping.receipt(request, code, properties)
    }

    /// Publishes without waiting: the call is told.
    ///
    /// - Throws: `WaybillError` when nothing was sent.
    func submit(
        _ publish: MQTTPublish,
        _ request: Request,
        timeout: Duration?,
        _ call: any MQTTCall
    ) throws(WaybillError) {
        do throws(MQTTSendError) {
            try driver.withCore { (core, now) throws(MQTTSendError) in
                if publish.qos == .atMostOnce {
                    try core.publishAtMostOnce(publish, payload: request.body, at: now)
                } else {
                    let message = MQTTOutgoingMessage(publish: publish, payload: request.body)
                    try core.publish(message, call: call, timeout: timeout, at: now)
                }
                reportSent(publish, request)
            }
        } catch {
            throw MQTTMapping.error(error, request)
        }
        if publish.qos == .atMostOnce {
            (call as? MQTTPendingCall)?.succeed(.published(.success, MQTTProperties()))
        }
    }

    /// Withdraws a call.
    func cancel(_ call: MQTTPendingCall) {
        driver.withCore { core, _ in core.cancel(call) }
    }

    /// Acknowledges a message that came over this connection, or over one before within the same session.
    /// - Returns: False for a message that the server sends again; nil when the session was no longer this connection's.
    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ reason: MQTTReasonCode) -> Bool? {
        driver.withCore { core, now in
            let isFirst = core.acknowledge(receipt, reason, at: now)
            return core.isSessionTaken ? nil : isFirst
        }
    }

    /// The QoS 1 messages of earlier connections that the server sends again.
    var repeatedSerials: MQTTRepeatedSerials { driver.withCore { core, _ in core.repeatedSerials } }

    func answer(
        _ request: Request,
        withdrawing withdraw: (@Sendable (MQTTPendingCall) -> Void)? = nil,
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
                withdrawing: { call in
                    if let withdraw { withdraw(call) } else { cancel(call) }
                }
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    static let confusion = WaybillError(
        .protocolViolation,
        "the answer belongs to another request"
    )

    // MARK: The end

    /// Sends DISCONNECT and waits until the stream is closed, or by force after a time.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        if let abandonment { state.withLock { $0.abandonment = abandonment } }
        disconnectNow()
        await ended.settled(within: timeout, by: timers) { [driver] in driver.close() }
    }

    func drain(within timeout: Duration) async {
        guard timeout > .zero else { return }
        let drained = Promise<Void>()
        state.withLock { $0.drained = drained }
        noteDrained()
        await drained.settled(within: timeout, by: timers) { drained.resolve(.success(())) }
    }

    private func noteDrained() {
        guard let drained = state.withLock({ $0.drained }) else { return }
        let isIdle = driver.withCore { core, _ in core.isFinished || !core.hasMessagesUnderWay }
        if isIdle { drained.resolve(.success(())) }
    }

    /// What the server is told at the end; in 3.1.1 there is nothing to tell.
    var farewell: MQTTDisconnect {
        get { state.withLock { $0.farewell } }
        set { state.withLock { $0.farewell = newValue } }
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        let packet = farewell
        driver.withCore(.immediate) { core, now in core.disconnect(packet, at: now) }
    }

    /// Why it is over; nil when this side ended it.
    private func cause(of error: LinkError?) -> WaybillError? {
        switch (state.withLock { $0.closure }, error) {
        case (.endOfStream?, let error?), (nil, let error?): return WaybillError(error)
        case (.disconnectedByServer(.sessionTakenOver, _)?, _)
        where session.takeLateAttempt(at: now):
            return MQTTMapping.takenOverByLateAttempt
        case (.disconnectedByServer(let code, _)?, _) where MQTTMapping.isRedirect(code):
            var error = state.withLock { $0.closure }.flatMap(MQTTMapping.error)
            // Another host is not busy.
            if onRedirect() { error?.isServerBusy = false }
            return error
        case (let closure?, _): return MQTTMapping.error(closure)
        case (nil, nil): return nil
        }
    }

    /// Notes a CONNECT that was never answered and may still reach the server.
    ///
    /// Also one whose stream the peer has ended: a proxy may have done that, and deliver what it still holds. A server
    /// that refuses by closing looks the same; then a session that another client takes over soon is taken back once,
    /// which harms less than a client that gives up for good.
    private func noteUnanswered(_ error: LinkError?) {
        let isUnanswered = driver.withCore { core, _ in core.isUnanswered }
        guard isUnanswered else { return }
        let isGivenUp =
            switch state.withLock({ $0.closure }) {
            case .connectTimedOut?, .disconnected?: true
            // Without an error, this side has closed the stream.
            case .endOfStream?, nil: error == nil
            default: false
            }
        session.noteUnansweredAttempt(
            at: now,
            lasting: configuration.connectTimeout,
            isEndedByPeer: !isGivenUp
        )
    }

    private func handleEnd(_ cause: WaybillError?) {
        let (abandoned, abandonment) = state.withLock { state in
            defer { state.abandoned = [] }
            return (state.abandoned, state.abandonment)
        }
        timers.invalidate()
        connack.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        for call in abandoned { call.fail(abandonment) }
        state.withLock { $0.drained }?.resolve(.success(()))
    }

    // MARK: Events

    private func handle(_ events: [MQTTClientEvent]) {
        var batch = MessageBatch(
            reportingTo: subscriptions.events,
            hasQualities: true,
            seenBy: subscriptions.catchAll.sources
        )
        var answered: [Suspension.Continuation] = []
        for event in events {
            switch event {
            case .message(let publish, let receipt):
                subscriptions.collect(publish, receipt, into: &batch)
            case .published(let call as MQTTPendingCall, let code, let properties):
                let answer = MQTTAnswer.published(code, properties)
                if let caller = call.settle(.success(answer)) { answered.append(caller) }
            default:
                batch.deliver()
                handle(event)
            }
        }
        batch.deliver()
        Suspension.resume(answered)
        noteDrained()
    }

    private func handle(_ event: MQTTClientEvent) {
        switch event {
        case .connected(let connack):
            // First, as messages may follow at once.
            subscriptions.attach(self, hasSession: connack.sessionPresent)
            let keepsAlive = driver.withCore { core, _ in core.keepsAlive }
            if !keepsAlive { stream.keepAlive() }
            state.withLock { $0.responseInformation = connack.properties.responseInformation }
            self.connack.resolve(.success(connack))
        case .message: break
        // Those of callers who wait are answered all at once.
        case .published(let call, _, _): (call as? MQTTStoredCall)?.didEnd()
        case .subscribed(let call, let suback, let hasBacklog):
            guard let call = call as? MQTTPendingCall else { return }
            // Before the retained messages, which follow the SUBACK.
            let note = state.withLock { $0.notes.removeValue(forKey: ObjectIdentifier(call)) }
            note?(hasBacklog)
            call.succeed(.subscribed(suback))
        case .unsubscribed(let call, let unsuback):
            if let call = call as? MQTTPendingCall {
                call.succeed(.unsubscribed(unsuback))
            } else {
                (call as? MQTTStoredCall)?.didEnd()
            }
        case .timedOut(let call):
            (call as? MQTTPendingCall)?.fail(
                WaybillError(.timedOut, "the server did not acknowledge in time")
            )
        case .abandoned(let call):
            // Told once the connection is over: whoever tries again then makes a new one.
            guard let call = call as? MQTTPendingCall else { return }
            state.withLock { $0.abandoned.append(call) }
        case .trace(let trace):
            configuration.wireLogger?.logFrame(
                trace.isOutbound ? .outbound : .inbound,
                trace.text,
                byteCount: trace.byteCount,
                body: Payload(trace.payload)
            )
        case .closed(let closure):
            state.withLock { $0.closure = closure }
            // The end is not left to a peer that is gone: nothing would answer the closing of a WebSocket.
            if case .keepAliveTimedOut = closure { driver.close() }
        }
    }
}
