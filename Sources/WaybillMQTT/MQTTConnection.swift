import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One connection, from its stream to its end, with its core, its driver and its pending calls.
final class MQTTConnection: TransportConnection {
    struct State: Sendable {
        var end = MQTTConnectionEnd()
        /// Resolves when no sent message is unacknowledged; nil without a waiting task.
        var drained: Promise<Void>?
        /// Whether the session state is that of another client identifier.
        var isOfOtherClient = false
    }

    let state = Locked(State())
    private let shared: Shared<MQTTConfiguration>
    var configuration: MQTTConfiguration { shared.value }
    private let stream: any ByteStream
    /// The exchanges of enhanced authentication; nil without an authenticator.
    let authentication: MQTTAuthentication?
    let driver: Driver<MQTTClientConnection>
    let subscriptions: MQTTSubscriptions
    private let replies: MQTTReplies
    let session: MQTTSession
    private let learning: MQTTKeepAliveLearning?
    /// The network of the connection, for what is learned of its silence.
    private let network: String?
    /// Called when the server refers the client to others; returns the cause of the end.
    private let onRedirect: @Sendable (MQTTRedirect, WaybillError) -> WaybillError

    /// Resolves with the server's CONNACK.
    private let acceptance = Promise<MQTTConnackPacket>()
    /// Resolves when the stream is closed.
    private let ended = Promise<Void>()

    init(
        link: OpenedLink,
        authentication: MQTTAuthentication?,
        configuration shared: Shared<MQTTConfiguration>,
        subscriptions: MQTTSubscriptions,
        replies: MQTTReplies,
        session: MQTTSession,
        learning: MQTTKeepAliveLearning?,
        onRedirect: @escaping @Sendable (MQTTRedirect, WaybillError) -> WaybillError
    ) {
        self.onRedirect = onRedirect
        self.learning = learning
        let course = learning?.begin()
        network = course?.network
        self.shared = shared
        self.subscriptions = subscriptions
        self.replies = replies
        self.session = session
        stream = link.stream
        self.authentication = authentication
        let core = MQTTClientConfiguration(shared.value, within: link.timeLeft, course?.probe)
        driver = Driver(
            core: MQTTClientConnection(configuration: core),
            stream: link.stream,
            timers: link.timers,
            account: subscriptions.account,
            isOpening: true
        )
    }

    static let hasServerSessions = true

    /// Whether the session state is that of another client identifier, so that the server's session is another one.
    var isOfOtherClient: Bool { state.withLock { $0.isOfOtherClient } }

    var now: WireInstant { driver.timers.now }
    var hasProgress: Bool { driver.withCore { core, _ in core.hasProgress } }

    var violationMark: [UInt8] { driver.withCore { core, _ in core.violationMark } }
    var clock: any TimerSource { driver.timers }

    /// The server's prefix for response topics (MQTT 5, 3.2.2.3.15).
    var responseInformation: String? {
        (try? acceptance.result?.get())?.properties.responseInformation
    }

    /// What the server stated in CONNACK; nil before it, and in 3.1.1.
    var connack: MQTTConnack? {
        guard configuration.version == .v5 else { return nil }
        return (try? acceptance.result?.get()).map(MQTTConnackMapping.properties)
    }

    /// Stops or resumes reading.
    ///
    /// Does not keep the connection in memory beyond its end.
    var reading: @Sendable (Bool) -> Void {
        { [driver] isReading in driver.setReading(isReading) }
    }

    /// Sends CONNECT and waits for CONNACK.
    func begin(
        _ greeting: MQTTGreeting,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt {
        // The driver releases the handler, and with it this connection, after the end.
        driver.start(
            .init(
                receive: { self.handle($0) },
                end: { error in
                    let end = self.state.withLock { $0.end }
                    let finding = self.driver.noteEnd(end.replayEnd(error))
                    let verdict = self.subscriptions.noteEnd(of: self, end.restoringEnd(error))
                    self.noteDoubt()
                    let blame = end.blame(finding, verdict)
                    let cause = self.cause(of: end, error, blame)
                    self.noteLateAttempt(end, error)
                    self.rememberKeepAlive()
                    self.handBack()
                    self.subscriptions.detach(self)
                    // Called first, so that code that learns of the end from a call or a stream finds the
                    // connection already removed.
                    onEnd(cause)
                    self.authentication?.end(cause ?? end.statedAbandonment?.value)
                    self.handleEnd(cause, refusesFirst: blame == .request)
                    self.session.note(finding, cause, reportingTo: self.subscriptions.events)
                    self.subscriptions.note(verdict, cause)
                    self.ended.resolve(.success(()))
                }
            )
        )
        let request = Request(topic: nil, command: .connect)
        let packet = authentication?.complete(greeting.packet) ?? greeting.packet
        let isOfOtherClient = session.isOfOtherClient(packet)
        state.withLock { state in
            state.end.isUnattended = greeting.isUnattended
            state.isOfOtherClient = isOfOtherClient
        }
        let carried = session.take()
        session.noteRequested(packet, greeting.request.chain)
        do {
            let actions = try driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
                try core.connect(
                    packet,
                    hasSessionState: !packet.cleanStart,
                    resuming: carried,
                    isOfOtherClient: isOfOtherClient,
                    at: now
                )
                return session.follow(self)
            }
            session.carryOut(actions)
        } catch {
            session.park(carried)
            acceptance.resolve(.failure(MQTTErrorMapping.error(error, request)))
            driver.close()
        }
        let connack = try await acceptance.value()
        var receipt = try MQTTErrorMapping.receipt(request, connack.reasonCode, connack.properties)
        receipt.isSessionPresent = connack.sessionPresent
        // A 3.1.1 server does not tell the client which identifier it has assigned.
        let identifier = connack.properties.assignedClientIdentifier ?? packet.clientIdentifier
        receipt.clientIdentifier = identifier.isEmpty ? nil : identifier
        receipt.tls = stream.negotiatedTLS
        receipt.connack = self.connack
        return receipt
    }

    /// Returns the session state, if the connection had taken it.
    private func handBack() {
        session.leave(self)
        let carried = driver.withCore { core, _ in
            core.hasBegun ? core.takeSessionState() : nil
        }
        if let carried { session.park(carried) }
    }

    func over() async throws { try await ended.value() }

    // MARK: The end

    /// Sends DISCONNECT and waits until the stream is closed; after the timeout it is closed by force.
    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        if let abandonment { state.withLock { $0.end.abandonment = abandonment } }
        disconnectNow()
        await ended.waitUntilResolved(within: timeout, by: driver.timers) { [driver] in
            driver.close()
        }
    }

    func drain(within timeout: Duration) async {
        guard timeout > .zero else { return }
        let drained = state.withLock { state in
            let drained = state.drained ?? Promise<Void>()
            state.drained = drained
            return drained
        }
        noteDrained()
        await drained.waitUntilResolved(within: timeout, by: driver.timers) {
            drained.resolve(.success(()))
        }
    }

    private func noteDrained() {
        guard let drained = state.withLock({ $0.drained }) else { return }
        let isIdle = driver.withCore { core, _ in core.isFinished || !core.hasMessagesUnderWay }
        if isIdle { drained.resolve(.success(())) }
    }

    /// The DISCONNECT packet of the end; in MQTT 3.1.1 it has no fields.
    var disconnectPacket: MQTTDisconnect {
        get { state.withLock { $0.end.disconnectPacket } }
        set { state.withLock { $0.end.disconnectPacket = newValue } }
    }

    /// Sends DISCONNECT without waiting.
    func disconnectNow() {
        let packet = disconnectPacket
        driver.withCore(.immediate) { core, now in core.disconnect(packet, at: now) }
    }

    /// Ends the connection so that another one follows, over which the server sends its messages again.
    func makeAgain() {
        state.withLock { $0.end.isMadeAgain = true }
        disconnectNow()
    }

    /// Returns the cause of the end; nil if this side ended the connection.
    private func cause(
        of end: MQTTConnectionEnd,
        _ error: LinkError?,
        _ blame: MQTTConnectionEnd.Blame
    ) -> WaybillError? {
        var cause = end.cause(error, blame, isAccepted: acceptance.result != nil)
        if end.reasonCode == .sessionTakenOver, session.takeLateAttempt(at: now) {
            cause = MQTTErrorMapping.takenOverByLateAttempt
        }
        guard let redirect = end.redirect, let cause else { return cause }
        return onRedirect(redirect, cause)
    }

    /// Notes that the server may have begun another session without this side knowing.
    ///
    /// It may have accepted this CONNECT; with an authenticator, until the app has verified the server. Or an earlier
    /// CONNECT arrives late: it may end this connection, or arrive before the next one.
    private func noteDoubt() {
        guard !isOfOtherClient else { return }
        let isInDoubt = driver.withCore { core, _ in core.isInDoubt }
        if isInDoubt || session.hasLateAttempt(at: now) { session.noteDoubt() }
    }

    /// Notes a CONNECT that the server may yet accept.
    private func noteLateAttempt(_ end: MQTTConnectionEnd, _ error: LinkError?) {
        let mayBeLate = driver.withCore { core, _ in core.mayBeAcceptedLate }
        guard mayBeLate else { return }
        session.noteLateAttempt(
            at: now,
            lasting: configuration.timeouts.connect,
            isEndedByPeer: !end.isGivenUp(error)
        )
    }

    /// Remembers what the connection has learned of the silence that its network bears.
    func rememberKeepAlive() {
        guard let learning, let network else { return }
        let probe = driver.withCore { core, _ in core.keepAliveProbe }
        if let probe { learning.remember(probe, of: network) }
    }

    private func handleEnd(_ cause: WaybillError?, refusesFirst: Bool) {
        let end = state.withLock { state in
            defer { state.end = MQTTConnectionEnd() }
            return state.end
        }
        acceptance.resolve(
            .failure(cause ?? WaybillError(.notConnected, "disconnected while connecting"))
        )
        end.failCalls(cause, refusesFirst: refusesFirst)
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
            case .messages(let arrivals): subscriptions.collect(arrivals, into: &batch)
            case .published(let call as MQTTPendingCall, let code, let properties):
                let answer = MQTTAnswer.published(code, properties)
                if let caller = call.resolve(.success(answer)) { answered.append(caller) }
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
        case .challenged(let properties): authentication?.respond(to: properties, over: self)
        case .mustVerify(let properties): authentication?.verify(properties, over: self)
        case .reauthenticated(let properties): authentication?.finish(properties, over: self)
        case .connected(let connack):
            // Reading had stopped until the server was verified.
            if authentication != nil { driver.setReading(true) }
            let continues = connack.sessionPresent && !isOfOtherClient
            session.noteConnected(connack, continues: continues)
            // Attached first, because messages may follow at once.
            subscriptions.attach(
                self,
                hasSession: connack.sessionPresent,
                isOfOtherClient: isOfOtherClient
            )
            let keepsAlive = driver.withCore { core, _ in core.keepsAlive }
            if !keepsAlive { stream.keepAlive() }
            self.acceptance.resolve(.success(connack))
        case .messages: break
        case .skipped(let message):
            subscriptions.events.report(
                .dropped(
                    1,
                    byteCount: message.byteCount,
                    topic: message.publish.topic,
                    reason: .tooLarge
                )
            )
            replies.noteSkipped(message.publish, limit: configuration.limits.packetSize)
        // The calls of waiting tasks are answered together.
        case .published(let call, let code, let properties):
            (call as? MQTTStoredCall)?.answer(code, properties)
        case .subscribed(let call, let suback, let hasBacklog):
            // Before the retained messages, which follow the SUBACK.
            (call as? MQTTPendingCall)?.succeed(.subscribed(suback, hasBacklog: hasBacklog))
        case .unsubscribed(let call, let unsuback):
            if let call = call as? MQTTPendingCall {
                call.succeed(.unsubscribed(unsuback))
            } else {
                (call as? MQTTStoredCall)?.didEnd()
            }
        case .completed(let call): (call as? MQTTPendingCall)?.succeed(.completed)
        case .sessionLost(let call): (call as? MQTTPendingCall)?.fail(MQTTErrorMapping.exchangeLost)
        case .cleared(let number): session.storeEnds(0, of: number)
        case .mustStore(let step):
            session.store(step) { [driver] in
                driver.withCore { core, now in core.stored(step, at: now) }
            }
        case .timedOut(let call):
            (call as? MQTTPendingCall)?.fail(
                WaybillError(.timedOut, "the server did not acknowledge in time")
            )
            subscriptions.pressure.noteTimeout(of: configuration.timeouts.confirmation)
        case .abandoned(let call): state.withLock { $0.end.add(call) }
        case .trace(let trace):
            configuration.wireLogger?.logFrame(
                trace.isOutbound ? .outbound : .inbound,
                trace.text,
                name: trace.kind.name,
                topic: trace.topic,
                byteCount: trace.byteCount,
                body: Payload(trace.payload),
                of: configuration.label
            )
        case .closed(let closure):
            state.withLock { $0.end.closure = closure }
            // The stream is closed here, because an unreachable peer would not answer the close of a WebSocket.
            switch closure {
            case .keepAliveTimedOut, .authenticationTimedOut: driver.close()
            default: break
            }
        }
    }
}
