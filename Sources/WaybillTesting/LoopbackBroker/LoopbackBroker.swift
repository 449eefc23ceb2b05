import MQTTWire
import STOMPWire
package import WaybillLink
import WireCore

/// A broker inside the process, on 127.0.0.1, for tests and demonstrations.
///
/// It speaks MQTT 3.1.1 and 5 and STOMP 1.0 to 1.2, over TCP and WebSocket, and server-sent events with POST. It has
/// QoS 0 to 2, wildcards, shared subscriptions, retained messages, wills, queues, ack modes, transactions and
/// credentials. A test can make it fail in many ways (``faults``). It keeps MQTT sessions for the time that clients
/// request, with messages of QoS 1 and 2 up to a limit. It writes nothing to disk.
///
/// A message that is sent over one protocol reaches the subscribers of the others. The MQTT topic is the STOMP
/// destination, and the path of an event stream without its first slash. A destination that begins with `/queue/` is a
/// queue: each message goes to one STOMP subscriber, and waits while there is none. Every other destination is a topic.
public final class LoopbackBroker: Sendable {
    /// A protocol of the broker, with its transport.
    public enum Service: CaseIterable, Hashable, Sendable {
        /// MQTT over TCP.
        case mqtt
        /// STOMP over TCP.
        case stomp
        /// MQTT over WebSocket, on the one port for WebSockets.
        case mqttOverWebSocket
        /// STOMP over WebSocket, on the one port for WebSockets.
        case stompOverWebSocket
        /// Server-sent events, and POST to publish, over HTTP.
        ///
        /// Every path is the event stream of its topic. Events have ids that increase, and those after
        /// `Last-Event-ID` are sent again as far as they are remembered. A header `event` of a message, over
        /// any protocol, is the type of the event.
        case eventStream
    }

    /// The configuration of a broker.
    public struct Configuration: Sendable {
        /// The port for MQTT; 0 takes any that is free.
        public var port: UInt16 = 0
        /// The port for STOMP; 0 takes any that is free.
        public var stompPort: UInt16 = 0
        /// The port for WebSockets; 0 takes any that is free.
        public var webSocketPort: UInt16 = 0
        /// The port for event streams; 0 takes any that is free.
        public var eventStreamPort: UInt16 = 0
        /// The number of events that each topic stores for streams that reconnect, at most 16 MiB of them.
        ///
        /// A topic stores events from its first stream or POST on.
        public var eventMemory = 1_000
        /// The reconnection time that event streams set at their start; nil sets none.
        public var eventStreamRetry: Duration?
        /// The comment that event streams begin with; nil for none.
        public var eventStreamComment: String? = "waybill-loopback"
        /// The passwords by user name; without any, all clients are accepted.
        public var credentials: [String: String] {
            get { hiddenCredentials.value }
            set { hiddenCredentials.value = newValue }
        }
        private var hiddenCredentials = Redacted<[String: String]>([:])
        /// Accepts or refuses each CONNECT and each HTTP request; nil leaves that to ``credentials``.
        ///
        /// The closure gets the user name and the password: of MQTT's CONNECT, `login` and `passcode` of STOMP, both of
        /// HTTP's Basic scheme, or no name and the token of the Bearer scheme. With a closure, ``credentials`` are
        /// ignored.
        public var authenticate: (@Sendable (_ userName: String?, _ password: String?) -> Bool)?
        /// The longest packet, message or body to accept, in bytes.
        public var maximumPacketSize = 16 << 20
        /// The Receive Maximum in CONNACK, for messages of QoS 1 and 2; nil sends none.
        public var receiveMaximum: UInt16?
        /// The keep alive in seconds that MQTT 5 clients must use; nil leaves it to them.
        public var serverKeepAlive: UInt16?
        /// The interval of heart-beats in both directions, zero for none; nil follows each STOMP client.
        public var stompHeartBeat: Duration?
        /// The number of messages that a queue stores; further ones are refused.
        public var queueLimit = 10_000
        /// The bytes of headers and bodies that a queue stores; 64 MiB by default.
        ///
        /// A message above the limit is refused.
        public var queueByteLimit = 64 << 20
        /// The name of the broker in CONNECTED.
        ///
        /// With a name that begins with `RabbitMQ` it refuses a SUBSCRIBE to `/temp-queue/`, as RabbitMQ does. A client
        /// gets such a queue by naming it in `reply-to`.
        public var stompServer = "waybill-loopback"
        /// The number of messages of QoS 1 and 2 that an MQTT session stores without a connection.
        ///
        /// The oldest are dropped first.
        public var sessionQueueLimit = 10_000
        /// The bytes of topics and payloads of these messages; 16 MiB by default.
        public var sessionQueueByteLimit = 16 << 20
        /// Destinations that are replaced by others, by exact name.
        ///
        /// It imitates servers that process messages and publish the results elsewhere.
        public var relays: [String: String] = [:]
        /// Called with each packet or frame of each client, as one line of text.
        public var log: (@Sendable (String) -> Void)?

        /// Called with each occurrence, in order for each client, with no lock held.
        package var observe: (@Sendable (LoopbackOccurrence) -> Void)?

        /// Makes the default configuration.
        public init() {}

        /// Whether a client or a request with these credentials is accepted.
        func admits(_ user: String?, _ password: String?) -> Bool {
            if let authenticate { return authenticate(user, password) }
            if credentials.isEmpty { return true }
            guard let user, let password else { return false }
            return credentials.contains { name, secret in
                name.hasSameBytes(as: user) && secret.hasSameBytes(as: password)
            }
        }

        var sessionLimits: LoopbackSession.Limits {
            .init(
                messageCount: max(sessionQueueLimit, 0),
                byteCount: max(sessionQueueByteLimit, 0)
            )
        }

        /// Returns the destination that replaces another one, or the same.
        func relayed(_ destination: String) -> String {
            relays.first { $0.key.hasSameBytes(as: destination) }?.value ?? destination
        }
    }

    private struct State: Sendable {
        var listeners: [TCPListener] = []
        /// Whether a client that was accepted a moment ago is to be cut, too.
        var isStopping = false
        var members: [UInt64: LoopbackMember] = [:]
        var lastClient: UInt64 = 0
        /// The last client of before a restart that has forgotten everything.
        var lastForgotten: UInt64 = 0
        var faults = LoopbackFaults()
        var emptied: [CheckedContinuation<Void, Never>] = []

        /// All members in the order of their connections: a dictionary's own order is different in each run.
        var membersInOrder: [LoopbackMember] {
            members.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    let configuration: Configuration
    /// The clock and the randomness of all connections.
    let environment: LinkEnvironment
    private let state = Locked(State())
    let exchange: Locked<LoopbackExchange>
    let destinations: Locked<LoopbackDestinations>
    let eventTopics: Locked<LoopbackEventTopics>

    /// The time for the first packet of a client: long, because tests may share a slow machine.
    static let clientTimeout = Duration.seconds(60)

    /// Makes a broker; ``start()`` starts it.
    public convenience init(configuration: Configuration = Configuration()) {
        self.init(configuration: configuration, environment: .system)
    }

    /// Makes a broker that takes the time and random numbers from an environment.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - environment: Provides the clock and random numbers; its dialer is not used.
    package init(configuration: Configuration, environment: LinkEnvironment) {
        self.configuration = configuration
        self.environment = environment
        exchange = Locked(LoopbackExchange(limits: configuration.sessionLimits))
        destinations = Locked(
            LoopbackDestinations(
                queueLimit: configuration.queueLimit,
                queueByteLimit: configuration.queueByteLimit
            )
        )
        eventTopics = Locked(LoopbackEventTopics(memory: configuration.eventMemory))
    }

    // MARK: Listening

    /// Listens for all services.
    ///
    /// - Throws: An error if a port is in use; the broker then listens on no port.
    public func start() throws {
        let listeners = try TCPListener.listen(
            (configuration.port, { [weak self] in self?.acceptMQTT($0) }),
            (configuration.stompPort, { [weak self] in self?.acceptSTOMP($0) }),
            (configuration.webSocketPort, { [weak self] in self?.acceptWebSocket($0) }),
            (configuration.eventStreamPort, { [weak self] in self?.acceptEventStream($0) })
        )
        state.withLock { state in
            state.listeners = listeners
            state.isStopping = false
        }
    }

    /// Serves a client over a stream that the caller has made, as if a listener had accepted it.
    ///
    /// ``start()`` is not needed. For both WebSocket services the client's upgrade request decides the protocol.
    ///
    /// - Parameters:
    ///   - stream: The server's end of the connection.
    ///   - service: What the client speaks.
    package func serve(_ stream: any ByteStream, as service: Service) {
        switch service {
        case .mqtt: acceptMQTT(stream)
        case .stomp: acceptSTOMP(stream)
        case .mqttOverWebSocket, .stompOverWebSocket: acceptWebSocket(stream)
        case .eventStream: acceptEventStream(stream)
        }
    }

    /// The port for MQTT over TCP; 0 before ``start()``.
    public var port: UInt16 { port(for: .mqtt) }

    /// The port of a service; 0 before ``start()``.
    public func port(for service: Service) -> UInt16 {
        let index =
            switch service {
            case .mqtt: 0
            case .stomp: 1
            case .mqttOverWebSocket, .stompOverWebSocket: 2
            case .eventStream: 3
            }
        return state.withLock {
            $0.listeners.indices.contains(index) ? $0.listeners[index].port : 0
        }
    }

    /// Where MQTT clients connect to.
    public var url: String { url(for: .mqtt) }

    /// Where clients of a service connect to.
    public func url(for service: Service) -> String {
        let scheme =
            switch service {
            case .mqtt: "mqtt"
            case .stomp: "stomp"
            case .mqttOverWebSocket, .stompOverWebSocket: "ws"
            case .eventStream: "http"
            }
        return "\(scheme)://127.0.0.1:\(port(for: service))"
    }

    /// The number of connected clients.
    public var connectionCount: Int {
        state.withLock { state in
            state.members.values.count { member in
                if case .opening = member { false } else { true }
            }
        }
    }

    /// Stops listening, cuts every connection and waits until all are gone.
    public func stop() async {
        let listeners = state.withLock { state in
            defer { state.listeners = [] }
            state.isStopping = true
            return state.listeners
        }
        for listener in listeners { listener.close() }
        dropConnections()
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if state.members.isEmpty { return true }
                state.emptied.append(continuation)
                return false
            }
            if isEmpty { continuation.resume() }
        }
        LinkEnvironment.reclaim()
    }

    // MARK: Faults

    /// The faults, for connections and requests from now on.
    public var faults: LoopbackFaults {
        get { state.withLock { $0.faults } }
        set {
            state.withLock { $0.faults = newValue }
            let answer = newValue.publishAnswer
            for case .mqtt(let client) in membersInOrder {
                client.withCore(.paced) { core, _ in core.publishAnswer = answer }
            }
        }
    }

    /// Whether the next request of a kind is answered with ERROR; it counts as answered.
    func takeError(for request: LoopbackFaults.Request) -> Bool {
        state.withLock { $0.faults.takeError(for: request) }
    }

    /// The response on demand for the next request; it counts as given.
    func takeAnswer() -> LoopbackFaults.Answer? {
        state.withLock { $0.faults.takeAnswer() }
    }

    /// Cuts every connection without a packet or frame.
    public func dropConnections() {
        for member in membersInOrder { member.cut() }
    }

    /// Closes every connection in the way of its protocol.
    ///
    /// MQTT 5 clients get DISCONNECT, STOMP clients ERROR, WebSockets a Close with code 1001. Event streams end.
    public func disconnectClients() {
        for member in membersInOrder { member.disconnect() }
    }

    /// Aborts every connection, like a server that is killed and started again.
    ///
    /// The broker continues to listen.
    ///
    /// - Parameter keepingState: Whether MQTT sessions, queues, retained messages and events are kept, as by a server
    ///   that writes them to disk. If not, the ids of events begin again, and no wills are published.
    public func restart(keepingState: Bool) {
        let members = state.withLock { state in
            if !keepingState { state.lastForgotten = state.lastClient }
            return state.membersInOrder
        }
        if !keepingState {
            exchange.withLock { $0.forget() }
            destinations.withLock { $0.forget() }
            eventTopics.withLock { $0.forget() }
        }
        for member in members { member.abandon() }
    }

    /// Whether what a client has sent is of no account, since the broker has forgotten it.
    func hasForgotten(_ client: UInt64) -> Bool {
        state.withLock { client <= $0.lastForgotten }
    }

    // MARK: Members

    var membersInOrder: [LoopbackMember] { state.withLock { $0.membersInOrder } }

    func makeIdentifier() -> UInt64 {
        state.withLock { state in
            state.lastClient += 1
            return state.lastClient
        }
    }

    func member(_ identifier: UInt64) -> LoopbackMember? {
        state.withLock { $0.members[identifier] }
    }

    func add(_ member: LoopbackMember, as identifier: UInt64) {
        let isLate = state.withLock { state in
            state.members[identifier] = member
            return state.isStopping
        }
        // Accepted while the broker stops: callers that wait for the end would wait for this client, too.
        if isLate { member.cut() }
    }

    func remove(_ identifier: UInt64) {
        let waiting: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.members[identifier] = nil
            guard state.members.isEmpty else { return [] }
            defer { state.emptied = [] }
            return state.emptied
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The stream with the faults of the moment.
    func faulty(_ stream: any ByteStream) -> any ByteStream {
        let faults = faults
        guard faults.affectsBytes else { return stream }
        return FaultyStream(stream, faults: faults, timers: environment.clock)
    }

    func log(_ identifier: UInt64, isOutbound: Bool, _ text: String) {
        // Seen from the broker: what it sends goes to the right.
        configuration.log?("client \(identifier) \(isOutbound ? "→" : "←") \(text)")
    }

    func observe(_ occurrence: @autoclosure () -> LoopbackOccurrence) {
        if let observe = configuration.observe { observe(occurrence()) }
    }

    // MARK: Routing

    /// Delivers what was sent to a topic to the subscribers of all protocols.
    ///
    /// - Parameters:
    ///   - message: The message as STOMP subscribers get it, and event streams.
    ///   - publish: The same as MQTT subscribers get it; nil when its destination is no topic name.
    ///   - payload: What MQTT subscribers get.
    ///   - sender: The connection that it came over.
    ///   - now: The time.
    /// - Throws: `LoopbackFault` when its queue is full.
    func route(
        _ message: LoopbackMessage,
        _ publish: MQTTPublish?,
        payload: ByteSlice,
        from sender: UInt64,
        at now: WireInstant
    ) throws(LoopbackFault) {
        let deliveries = try destinations.withLock { destinations throws(LoopbackFault) in
            try destinations.send(message)
        }
        deliver(deliveries)
        publishEvent(message)
        guard let publish else { return }
        let copies = exchange.withLock { exchange in
            exchange.route(publish, payload: payload, from: sender, at: now)
        }
        for copy in copies { deliver(copy) }
    }

    /// Sends messages to STOMP clients.
    func deliver(_ deliveries: [LoopbackDelivery]) {
        for delivery in deliveries {
            guard case .stomp(let client)? = member(delivery.client) else { continue }
            client.send(delivery)
        }
    }
}

extension LoopbackBroker: CustomReflectable {
    /// Nothing: bodies and passwords are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
