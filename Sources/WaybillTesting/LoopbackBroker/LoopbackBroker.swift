import MQTTWire
import WaybillLink
import WireCore

/// An MQTT 3.1.1 and 5 broker inside the process, on 127.0.0.1: for tests and demonstrations.
///
/// It knows QoS 0 to 2, wildcards, shared subscriptions, retained messages, wills and credentials, and
/// misbehaves on demand. It keeps no sessions across connections, and nothing on disk: it is no broker to
/// rely on.
public final class LoopbackBroker: Sendable {
    /// How the broker behaves.
    public struct Configuration: Sendable {
        /// The port; 0 takes any that is free.
        public var port: UInt16 = 0
        /// User names and passwords; none lets everybody in.
        public var credentials: [String: String] = [:]
        /// The longest packet to accept, in bytes.
        public var maximumPacketSize = 16 << 20
        /// How many messages of QoS 1 and 2 a client may have under way; nil says nothing about it.
        public var receiveMaximum: UInt16?
        /// The keep alive in seconds that MQTT 5 clients must use; nil leaves it to them.
        public var serverKeepAlive: UInt16?
        /// Is told each packet of each client in one line.
        public var log: (@Sendable (String) -> Void)?

        /// The defaults.
        public init() {}
    }

    private struct State: Sendable {
        var listener: (any Sendable)?
        var clients: [UInt64: LoopbackClient] = [:]
        var lastClient: UInt64 = 0
        var faults = LoopbackFaults()
        var emptied: [CheckedContinuation<Void, Never>] = []
    }

    private let configuration: Configuration
    private let state = Locked(State())
    private let exchange = Locked(LoopbackExchange())

    /// Makes a broker; ``start()`` sets it going.
    public init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    #if os(Linux)
        private var listener: TCPListener? { state.withLock { $0.listener as? TCPListener } }

        /// Listens.
        /// - Throws: When the port is taken.
        public func start() throws {
            let listener = try TCPListener(port: configuration.port) { [weak self] stream in
                self?.accept(stream)
            }
            state.withLock { $0.listener = listener }
        }

        /// The port that is listened on; 0 before ``start()``.
        public var port: UInt16 { listener?.port ?? 0 }

        private func stopListening() {
            let listener = listener
            state.withLock { $0.listener = nil }
            listener?.close()
        }
    #else
        /// Listens.
        /// - Throws: Always, as there is no listener on this platform yet.
        public func start() throws {
            throw LinkError.unsupported("the loopback broker")
        }

        /// The port that is listened on.
        public var port: UInt16 { 0 }

        private func stopListening() {}
    #endif

    /// Where clients connect to.
    public var url: String { "mqtt://127.0.0.1:\(port)" }

    /// How many clients are connected.
    public var connectionCount: Int { state.withLock { $0.clients.count } }

    /// Stops listening, cuts every connection and waits until all are gone.
    public func stop() async {
        stopListening()
        dropConnections()
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if state.clients.isEmpty { return true }
                state.emptied.append(continuation)
                return false
            }
            if isEmpty { continuation.resume() }
        }
        #if os(Linux)
            SharedEventLoop.reap()
        #endif
    }

    // MARK: Faults

    /// What goes wrong, for connections and requests from now on.
    public var faults: LoopbackFaults {
        get { state.withLock { $0.faults } }
        set { state.withLock { $0.faults = newValue } }
    }

    /// Cuts every connection, without a word.
    public func dropConnections() {
        for client in state.withLock({ Array($0.clients.values) }) { client.cut() }
    }

    /// Sends DISCONNECT to MQTT 5 clients and closes every connection.
    public func disconnectClients() {
        for client in state.withLock({ Array($0.clients.values) }) {
            client.disconnect(.administrativeAction)
        }
    }

    // MARK: Clients

    private func accept(_ stream: any ByteStream) {
        let (identifier, faults) = state.withLock { state in
            state.lastClient += 1
            return (state.lastClient, state.faults)
        }
        guard let timers = try? LinkEnvironment.system.makeTimers() else { return stream.close() }
        let faulty =
            faults.affectsBytes ? FaultyStream(stream, faults: faults, timers: timers) : stream
        let client = LoopbackClient(
            identifier: identifier,
            stream: faulty,
            timers: timers,
            maximumPacketSize: configuration.maximumPacketSize,
            isTracing: configuration.log != nil
        )
        state.withLock { $0.clients[identifier] = client }
        client.start { [weak self] event in
            self?.handle(event, of: client)
        } onEnd: { [weak self] in
            timers.invalidate()
            self?.removed(client)
        }
    }

    private func removed(_ client: LoopbackClient) {
        let waiting: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.clients[client.identifier] = nil
            guard state.clients.isEmpty else { return [] }
            defer { state.emptied = [] }
            return state.emptied
        }
        for continuation in waiting { continuation.resume() }
    }

    private func handle(_ event: MQTTServerConnection.Event, of client: LoopbackClient) {
        switch event {
        case .connect(let connect): decide(connect, client)
        case .publish(let publish): route(publish, payload: publish.payload, from: client)
        case .subscribe(let subscribe): self.subscribe(subscribe, client)
        case .unsubscribe(let unsubscribe):
            let codes = exchange.withLock { $0.unsubscribe(unsubscribe.filters, client.identifier) }
            let isCoded = client.version == .v5
            client.send(
                MQTTUnsuback(
                    packetIdentifier: unsubscribe.packetIdentifier,
                    reasonCodes: isCoded ? codes : []
                )
            )
        case .trace(let trace):
            let arrow = trace.isOutbound ? "→" : "←"
            configuration.log?("client \(client.identifier) \(arrow) \(trace.text)")
        case .closed(let closure):
            exchange.withLock { $0.remove(client.identifier) }
            var takesLeave = false
            if case .disconnected(let packet) = closure {
                takesLeave = packet.reasonCode != .disconnectWithWillMessage
            }
            if !takesLeave, let will = client.will { publish(will, from: client) }
        }
    }

    private func decide(_ connect: MQTTConnect, _ client: LoopbackClient) {
        let faults = faults
        if let refusal = faults.refusesConnections { return client.refuse(refusal.reasonCode) }
        if !configuration.credentials.isEmpty {
            let password = connect.password.map { String(decoding: $0, as: UTF8.self) }
            guard let user = connect.userName, let password,
                configuration.credentials[user] == password
            else { return client.refuse(.badUserNameOrPassword) }
        }
        var connack = MQTTConnack()
        if connect.version == .v5 {
            connack.properties.receiveMaximum = configuration.receiveMaximum
            connack.properties.serverKeepAlive = configuration.serverKeepAlive
            connack.properties.maximumPacketSize = UInt32(clamping: configuration.maximumPacketSize)
            if connect.clientIdentifier.isEmpty {
                connack.properties.assignedClientIdentifier = "loopback-\(client.identifier)"
            }
        }
        client.accept(connack, will: connect.will)
    }

    private func subscribe(_ packet: MQTTSubscribe, _ client: LoopbackClient) {
        let refused = faults.refusesSubscriptions
        let codes = packet.subscriptions.map { subscription in
            refused.contains(subscription.filter)
                ? (client.version == .v5 ? MQTTReasonCode.notAuthorized : .unspecifiedError)
                : MQTTReasonCode(rawValue: subscription.qualityOfService.rawValue)
        }
        let granted = zip(packet.subscriptions, codes).filter { !$0.1.isFailure }.map(\.0)
        let identifier = packet.properties.subscriptionIdentifiers.first
        let retained = exchange.withLock { exchange in
            granted.flatMap { exchange.subscribe($0, identifier: identifier, client.identifier) }
        }
        client.send(MQTTSuback(packetIdentifier: packet.packetIdentifier, reasonCodes: codes))
        for message in retained { client.send(message) }
    }

    private func publish(_ will: MQTTWill, from client: LoopbackClient) {
        var publish = MQTTPublish(
            topic: will.topic,
            qualityOfService: will.qualityOfService,
            isRetained: will.isRetained,
            properties: will.properties
        )
        publish.properties.willDelayInterval = nil
        route(publish, payload: ByteSlice(copying: will.payload), from: client)
    }

    private func route(_ publish: MQTTPublish, payload: ByteSlice, from client: LoopbackClient) {
        let deliveries = exchange.withLock { exchange in
            exchange.route(publish, payload: payload, from: client.identifier)
        }
        guard !deliveries.isEmpty else { return }
        let clients = state.withLock { $0.clients }
        for (identifier, message) in deliveries { clients[identifier]?.send(message) }
    }
}
