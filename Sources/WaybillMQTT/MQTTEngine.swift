import MQTTWire
import Waybill
import WaybillLink
import WireCore

/// The life of a transport: when it connects, over which session requests go, and when it is over.
///
/// | phase | what moves it on |
/// | --- | --- |
/// | idle, disconnected | a request, `connect` → connecting |
/// | connecting | CONNACK → connected; failure, `disconnect`, nobody waits → disconnected |
/// | connected | `disconnect`, the session's end → disconnected |
/// | any | `shutdown` → shut down, for good |
final class MQTTEngine: Sendable {
    private enum Phase: Sendable {
        case idle
        case connecting(MQTTAttempt)
        case connected(MQTTSession)
        case shutDown
    }

    private let phase = Locked(Phase.idle)
    private let endpoint: Endpoint
    private let configuration: MQTTConfiguration
    private let environment: LinkEnvironment
    private let clientIdentifier: String
    private let version: MQTTVersion

    let states = ConnectionStateSource()

    init(endpoint: Endpoint, configuration: MQTTConfiguration, environment: LinkEnvironment) {
        self.endpoint = endpoint
        self.configuration = configuration
        self.environment = environment
        version = configuration.version == .v5 ? .v5 : .v3_1_1
        clientIdentifier =
            configuration.clientIdentifier ?? Self.makeIdentifier(environment.random)
    }

    /// 22 letters and digits, which every server must take (3.1.1, 3.1.3-5): some 131 random bits.
    private static func makeIdentifier(_ random: () -> UInt64) -> String {
        let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        let letters = (0..<22).map { _ in alphabet[Int(random() % UInt64(alphabet.count))] }
        return String(decoding: letters, as: UTF8.self)
    }

    // MARK: Requests

    func perform(_ request: Request) async throws -> Receipt {
        switch request.command {
        case .send(let options):
            let publish = try MQTTMapping.publish(request, options, version: version)
            let session = try await session(for: request) { () throws(WaybillError) in
                try check(publish, request)
            }
            return try await session.publish(publish, request, timeout: options.timeout)
        case .connect(let options): return try await connect(options, request)
        case .disconnect: return try await disconnect(request)
        case .unsubscribe:
            try checkFilter(request)
            return try await currentSession(request).unsubscribe(request)
        case .ack(let id, let transaction):
            guard transaction == nil else { throw MQTTMapping.unsupported("transactions", request) }
            return try currentSession(request).settle(id, request, reason: .success)
        case .nack(let id, let transaction):
            guard transaction == nil else { throw MQTTMapping.unsupported("transactions", request) }
            guard version == .v5 else { throw MQTTMapping.unsupported("nack in 3.1.1", request) }
            return try currentSession(request).settle(id, request, reason: .unspecifiedError)
        case .begin, .commit, .abort: throw MQTTMapping.unsupported("transactions", request)
        case .subscribe:
            throw WaybillError(.invalidEntry, "a subscription goes through subscribe(_:)")
        }
    }

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        guard case .subscribe(let options) = request.command else {
            throw WaybillError(.invalidEntry, "only a subscription goes through subscribe(_:)")
        }
        let subscription = try MQTTMapping.subscription(request, options, version: version)
        let session = try await session(for: request)
        return try await session.subscribe(subscription, request, options)
    }

    /// What cannot be sent is refused before a connection is made for it.
    private func check(_ publish: MQTTPublish, _ request: Request) throws(WaybillError) {
        let writer = MQTTPacketWriter(version: version, isTracing: false)
        do {
            try writer.check(MQTTOutgoingMessage(publish: publish, payload: request.body))
        } catch {
            throw MQTTMapping.error(error, request)
        }
    }

    private func checkFilter(_ request: Request) throws(WaybillError) {
        do {
            _ = try MQTTTopicFilter(request.topic ?? "")
        } catch {
            throw MQTTMapping.error(.encoding(error), request)
        }
    }

    /// The session, made first if need be.
    private func session(
        for request: Request,
        check: () throws(WaybillError) -> Void = { () throws(WaybillError) in }
    ) async throws -> MQTTSession {
        let phase = phase.withLock { $0 }
        if case .connected(let session) = phase { return session }
        try check()
        guard configuration.connectsOnDemand else {
            if case .connecting(let attempt) = phase {
                return try await attempt.outcome.value().session
            }
            throw notConnected(request)
        }
        let (attempt, _) = try beginOrJoin(ConnectOptions(), request)
        return try await attempt.outcome.value().session
    }

    private func currentSession(_ request: Request) throws -> MQTTSession {
        guard case .connected(let session) = phase.withLock({ $0 }) else {
            throw notConnected(request)
        }
        return session
    }

    private func notConnected(_ request: Request) -> WaybillError {
        guard case .shutDown = phase.withLock({ $0 }) else {
            return WaybillError(
                .notConnected,
                "there is no connection",
                topic: request.topic,
                command: request.command.name
            )
        }
        return Self.shutDown
    }

    private static let shutDown = WaybillError(.shutDown, "the transport was shut down")

    // MARK: Connecting

    private func connect(_ options: ConnectOptions, _ request: Request) async throws -> Receipt {
        guard request.topic == nil, request.body.isEmpty else {
            throw MQTTMapping.unsupported("topic or body of a connect", request)
        }
        let (attempt, isNew) = try beginOrJoin(options, request)
        guard isNew else {
            throw WaybillError(.rejected, "a connection is being made or is there already")
        }
        let connack = try await attempt.outcome.value().connack
        var receipt = try MQTTMapping.receipt(request, connack.reasonCode, connack.properties)
        receipt.isSessionPresent = connack.sessionPresent
        return receipt
    }

    /// The attempt that is under way, or a new one.
    private func beginOrJoin(
        _ options: ConnectOptions,
        _ request: Request
    ) throws -> (MQTTAttempt, isNew: Bool) {
        let packet = try connectPacket(options, request)
        let (attempt, isNew) = try phase.withLock { phase throws(WaybillError) in
            switch phase {
            case .connecting(let attempt): return (attempt, false)
            case .shutDown: throw Self.shutDown
            case .connected(let session): return (MQTTAttempt(done: session), false)
            case .idle:
                let attempt = MQTTAttempt()
                phase = .connecting(attempt)
                // Reported within the lock, so that no other change comes in between.
                states.report(.connecting(attempt: 1))
                return (attempt, true)
            }
        }
        if isNew {
            let timeout = options.timeout ?? configuration.connectTimeout
            attempt.start { [self] in
                do {
                    let made = try await open(packet, timeout: timeout, attempt: attempt)
                    attempt.outcome.resolve(.success(made))
                } catch {
                    fail(attempt, error)
                }
            }
        }
        return (attempt, isNew)
    }

    private func connectPacket(
        _ options: ConnectOptions,
        _ request: Request
    ) throws(WaybillError) -> MQTTConnect {
        var packet = MQTTConnect(
            version: version,
            clientIdentifier: options.clientIdentifier ?? clientIdentifier,
            cleanStart: options.cleanStart ?? configuration.cleanStart,
            keepAlive: UInt16(
                clamping: (options.keepAlive ?? configuration.keepAlive).components.seconds
            ),
            userName: options.userName ?? configuration.userName,
            password: (options.password ?? configuration.password).map { Array($0.utf8) }
        )
        if let will = options.will ?? configuration.will {
            packet.will = MQTTWill(
                topic: will.topic,
                payload: will.body.bytes,
                qualityOfService: MQTTMapping.quality(will.qos),
                isRetained: will.retain
            )
            if let delay = will.delay {
                guard version == .v5 else {
                    throw MQTTMapping.unsupported("will delay in 3.1.1", request)
                }
                packet.will?.properties.willDelayInterval = MQTTMapping.seconds(delay)
            }
        }
        switch version {
        case .v5:
            packet.properties.sessionExpiryInterval =
                configuration.sessionExpiry.map(MQTTMapping.seconds)
            packet.properties.receiveMaximum = max(configuration.receiveMaximum, 1)
            packet.properties.maximumPacketSize = UInt32(
                clamping: max(configuration.maximumPacketSize, 1)
            )
            packet.properties.userProperties = MQTTMapping.userProperties(request.headers)
        case .v3_1_1:
            guard request.headers.isEmpty else {
                throw MQTTMapping.unsupported("headers in 3.1.1", request)
            }
        }
        var scratch = ByteWriter()
        do {
            try packet.encode(into: &scratch)
        } catch {
            throw MQTTMapping.error(.encoding(error), request)
        }
        return packet
    }

    private func open(
        _ packet: MQTTConnect,
        timeout: Duration,
        attempt: MQTTAttempt
    ) async throws -> MQTTAttempt.Made {
        let timers: any TimerSource
        let stream: any ByteStream
        do {
            timers = try environment.makeTimers()
        } catch {
            throw MQTTMapping.error(error)
        }
        let begin = timers.now
        do throws(LinkError) {
            stream = try await environment.dialer.dial(endpoint, timeout: timeout, timers: timers)
        } catch {
            timers.invalidate()
            if case .cancelled = error { throw CancellationError() }
            throw MQTTMapping.error(error)
        }
        var core = MQTTClientConnection.Configuration()
        core.version = version
        core.maximumPacketSize = configuration.maximumPacketSize
        core.receiveMaximum = max(configuration.receiveMaximum, 1)
        core.inflightWindow = min(max(configuration.inflightWindow, 1), 65_535)
        core.connectTimeout = max(timeout - begin.duration(to: timers.now), .zero)
        core.acknowledgementTimeout = configuration.acknowledgementTimeout
        core.isTracing = configuration.wireLogger != nil
        let session = MQTTSession(
            stream: stream,
            timers: timers,
            configuration: configuration,
            core: core
        )
        session.start(packet) { [weak self, weak session] cause in
            self?.sessionEnded(session, cause)
        }
        do {
            let connack = try await session.connack.value()
            try attemptSucceeded(attempt, session)
            return MQTTAttempt.Made(session: session, connack: connack)
        } catch {
            await session.disconnect(within: configuration.closeTimeout)
            throw error
        }
    }

    private func attemptSucceeded(_ attempt: MQTTAttempt, _ session: MQTTSession) throws {
        try phase.withLock { phase in
            guard case .connecting(let current) = phase, current === attempt else {
                throw CancellationError()
            }
            phase = .connected(session)
            states.report(.connected)
        }
    }

    private func fail(_ attempt: MQTTAttempt, _ error: any Error) {
        let cause = error as? WaybillError
        phase.withLock { phase in
            guard case .connecting(let current) = phase, current === attempt else { return }
            phase = .idle
            states.report(.disconnected(cause: cause))
        }
        attempt.outcome.resolve(.failure(cause ?? attempt.stopReason))
    }

    // MARK: The end

    private func sessionEnded(_ session: MQTTSession?, _ cause: WaybillError?) {
        phase.withLock { phase in
            guard case .connected(let current) = phase, current === session else { return }
            phase = .idle
            states.report(.disconnected(cause: cause))
        }
    }

    private func disconnect(_ request: Request) async throws -> Receipt {
        let before = phase.withLock { $0 }
        switch before {
        case .idle: return Receipt()
        case .shutDown: throw Self.shutDown
        case .connecting(let attempt):
            await attempt.stop(
                because: WaybillError(.notConnected, "disconnected while connecting")
            )
        case .connected(let session):
            await session.disconnect(within: configuration.closeTimeout)
        }
        return Receipt()
    }

    func shutdown() async {
        let before = phase.withLock { phase in
            defer { phase = .shutDown }
            return phase
        }
        switch before {
        case .shutDown: return
        case .idle: break
        case .connecting(let attempt):
            states.report(.disconnected(cause: nil))
            await attempt.stop(because: Self.shutDown)
        case .connected(let session):
            states.report(.disconnected(cause: nil))
            await session.disconnect(
                within: configuration.closeTimeout,
                abandonment: Self.shutDown
            )
        }
        #if os(Linux)
            SharedEventLoop.reap()
        #endif
    }

    /// Closes without waiting, when nobody refers to the transport any longer.
    func abandon() {
        let before = phase.withLock { phase in
            defer { phase = .shutDown }
            return phase
        }
        switch before {
        case .idle, .shutDown: break
        case .connecting(let attempt): attempt.cancel(because: Self.shutDown)
        case .connected(let session): session.disconnectNow()
        }
    }
}
