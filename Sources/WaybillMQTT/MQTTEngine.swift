import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// What an MQTT transport does with requests, and how it opens connections.
///
/// When it connects and when it is over is a matter of the shared life cycle.
final class MQTTEngine: Sendable {
    private let configuration: MQTTConfiguration
    private let clientIdentifier: String
    private let version: MQTTVersion
    private let subscriptions: MQTTSubscriptions
    private let lifecycle: ConnectionLifecycle<MQTTSession>

    init(
        failover: Failover,
        configuration: MQTTConfiguration,
        environment: LinkEnvironment
    ) {
        self.configuration = configuration
        version = configuration.version == .v5 ? .v5 : .v3_1_1
        clientIdentifier = configuration.clientIdentifier ?? Self.makeIdentifier(environment.random)
        let settings = ConnectionLifecycle<MQTTSession>.Settings(
            connectsOnDemand: configuration.connectsOnDemand,
            connectTimeout: configuration.connectTimeout,
            closeTimeout: configuration.closeTimeout,
            reconnection: configuration.reconnection
        )
        let subscriptions = MQTTSubscriptions(configuration: configuration)
        self.subscriptions = subscriptions
        lifecycle = ConnectionLifecycle(
            settings,
            failover,
            in: environment,
            .init(
                open: { route, timeout, _ in
                    MQTTSession(
                        link: try await route.open(within: timeout),
                        configuration: configuration,
                        subscriptions: subscriptions
                    )
                },
                conclude: { subscriptions.conclude($0) }
            )
        )
    }

    var states: ConnectionStates { lifecycle.states.states }

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
        case .disconnect:
            try await lifecycle.disconnect()
            return Receipt()
        case .unsubscribe:
            try checkFilter(request)
            try lifecycle.check(request)
            return try await subscriptions.unsubscribe(request)
        case .ack(let id, let transaction):
            guard transaction == nil else { throw MQTTMapping.unsupported("transactions", request) }
            _ = try lifecycle.current(for: request)
            return try subscriptions.settle(id, isAccepted: true, request)
        case .nack(let id, let transaction):
            guard transaction == nil else { throw MQTTMapping.unsupported("transactions", request) }
            guard version == .v5 else { throw MQTTMapping.unsupported("nack in 3.1.1", request) }
            _ = try lifecycle.current(for: request)
            return try subscriptions.settle(id, isAccepted: false, request)
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
        return try await subscriptions.subscribe(subscription, request, options, over: session)
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
        if let session = lifecycle.connected { return session }
        try check()
        return try await lifecycle.session(for: request) { () throws(WaybillError) in
            // A connection that a request happens to need takes nothing from it.
            try connectPacket(ConnectOptions(), Request(topic: nil, command: .connect))
        }
    }

    // MARK: Connecting

    private func connect(_ options: ConnectOptions, _ request: Request) async throws -> Receipt {
        guard request.topic == nil, request.body.isEmpty else {
            throw MQTTMapping.unsupported("topic or body of a connect", request)
        }
        return try await lifecycle.connect(
            connectPacket(options, request),
            timeout: options.timeout
        )
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

    // MARK: The end

    func shutdown() async {
        await lifecycle.shutdown()
    }

    /// Closes without waiting, when nobody refers to the transport any longer.
    func abandon() {
        lifecycle.abandon()
    }
}
