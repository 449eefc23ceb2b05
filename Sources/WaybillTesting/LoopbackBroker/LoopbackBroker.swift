import MQTTWire
import STOMPWire
public import Waybill
package import WaybillLink
import WireCore

/// A broker inside the process, on 127.0.0.1, for tests and demonstrations.
///
/// It speaks MQTT 3.1.1 and 5 and STOMP 1.0 to 1.2, over TCP and WebSocket, and server-sent events with POST. It has
/// QoS 0 to 2, wildcards, shared subscriptions, retained messages, wills, queues, ack modes, transactions and
/// credentials. A test can make it fail in many ways (``faults``). It keeps MQTT sessions for the time that clients
/// request, with messages of QoS 1 and 2 up to a limit. It writes nothing to disk.
///
/// It keeps at most 64 MiB of messages: above that, STOMP and HTTP clients are refused, and messages over MQTT are lost.
/// A client that reads so slowly that more than 16 MiB wait for it is cut off.
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
        /// The enhanced authentication that MQTT clients must complete; nil, the default, for none.
        ///
        /// It comes after ``credentials`` or ``authenticate``.
        public var authentication: LoopbackAuthentication?
        /// The longest packet, message or body to accept, in bytes.
        public var maximumPacketSize = 16 << 20
        /// The Receive Maximum in CONNACK, for messages of QoS 1 and 2; nil sends none.
        public var receiveMaximum: UInt16?
        /// The Topic Alias Maximum in CONNACK; nil sends none.
        ///
        /// The broker names topics by as many aliases of its own, if the client allows them.
        public var topicAliasMaximum: UInt16?
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

        /// Returns the destination that replaces another one, or the same.
        func relayed(_ destination: String) -> String {
            relays.first { $0.key.hasSameBytes(as: destination) }?.value ?? destination
        }
    }

    private let hub: LoopbackHub

    /// Makes a broker; ``start()`` sets it going.
    public convenience init(configuration: Configuration = Configuration()) {
        self.init(configuration: configuration, environment: .system)
    }

    /// Makes a broker that takes the time and random numbers from an environment.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - environment: The source of clocks and random numbers; its dialer is not used.
    package init(configuration: Configuration, environment: LinkEnvironment) {
        hub = LoopbackHub(configuration, environment)
    }

    // MARK: Listening

    /// Listens for all services.
    ///
    /// Inside a simulation, the simulated network takes the place of sockets.
    /// - Throws: When a port is taken. Then the broker listens on no port.
    public func start() throws { try hub.listen() }

    /// Serves a client over a stream that the caller has made, as if a listener had accepted it.
    ///
    /// ``start()`` is not needed. For both WebSocket services the client's upgrade request decides the protocol.
    ///
    /// - Parameters:
    ///   - stream: The server's end of the connection.
    ///   - service: The protocol of the client.
    package func serve(_ stream: any ByteStream, as service: Service) {
        hub.accept(stream, as: service)
    }

    /// The port for MQTT over TCP; 0 before ``start()``.
    public var port: UInt16 { port(for: .mqtt) }

    /// The port of a service; 0 before ``start()``.
    public func port(for service: Service) -> UInt16 { hub.port(for: service) }

    /// The URL that MQTT clients connect to.
    public var url: String { url(for: .mqtt) }

    /// The URL that clients of a service connect to.
    public func url(for service: Service) -> String {
        "\(service.scheme)://\(LoopbackListener.host):\(port(for: service))"
    }

    /// The number of clients that are connected.
    public var connectionCount: Int {
        hub.members.count { member in
            if case .opening = member { false } else { true }
        }
    }

    /// Stops listening, cuts every connection and waits until all are gone.
    public func stop() async { await hub.stop() }

    // MARK: Faults

    /// The faults of connections and requests from now on.
    public var faults: LoopbackFaults {
        get { hub.faults }
        set { hub.setFaults(newValue) }
    }

    /// Cuts every connection, without a farewell.
    public func dropConnections() {
        for member in hub.members { member.cut() }
    }

    /// Closes every connection in the protocol's own way: DISCONNECT to MQTT 5 clients, ERROR to STOMP
    /// clients, Close with code 1001 over WebSocket, and the end of each event stream.
    public func disconnectClients() {
        for member in hub.members { member.disconnect() }
    }

    /// Breaks every connection without a farewell, like a server that is killed and started again.
    ///
    /// The listeners stay.
    ///
    /// - Parameter keepingState: Whether MQTT sessions, queues, retained messages and events are there afterwards, as
    ///   with a server that writes them to disk. If not, ids of events begin again, and no wills are published.
    public func restart(keepingState: Bool) {
        let members = hub.withState { state in
            if !keepingState { state.forget() }
            return state.membersInOrder
        }
        for member in members { member.abandon() }
    }

    // MARK: Publishing

    /// Publishes a message of the broker's own to the subscribers of all protocols.
    ///
    /// A message to a queue that is full is discarded.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - topic: The topic; over STOMP the destination, and over HTTP the path without its first slash.
    ///   - qos: The quality of service; over MQTT alone, and not more than a subscription asks for.
    ///   - headers: The headers; over MQTT 5 user properties.
    public func publish(
        _ body: Payload,
        to topic: String,
        qos: QoS = .atMostOnce,
        headers: Headers = [:]
    ) {
        publish(body, to: topic, qos: qos, headers: headers, at: hub.environment.clock.now)
    }

    func publish(
        _ body: Payload,
        to topic: String,
        qos: QoS,
        headers: Headers = [:],
        at now: WireInstant
    ) {
        let message = LoopbackMessage(
            destination: topic,
            headers: STOMPHeaders(headers.map { STOMPHeaders.Field($0.name, $0.value) }),
            body: body.bytes
        )
        var publish = message.publish
        publish?.qos = MQTTQoS(rawValue: UInt8(qos.rawValue)) ?? .atMostOnce
        try? hub.route(message, publish, from: 0, at: now)
    }

    // MARK: Inspection

    /// All MQTT sessions, in the order in which they began.
    package var sessions: [LoopbackSessionReport] { hub.sessions }

    /// The number of messages for absent MQTT clients that were dropped, since sessions are bounded.
    package var droppedMessageCount: Int { hub.withState { $0.exchange.droppedCount } }

    /// The number of messages of a queue or topic that STOMP subscribers have got and not acknowledged.
    package func unacknowledgedCount(of destination: String) -> Int {
        hub.withState { $0.destinations.unacknowledgedCount(destination) }
    }

    /// The number of messages of a queue that wait for a subscriber.
    package func waitingCount(of destination: String) -> Int {
        hub.withState { $0.destinations.waitingCount(destination) }
    }

    /// True when nothing is under way over any connection.
    ///
    /// No byte waits to leave, no exchange of QoS 1 or 2 is open in either direction, no STOMP message waits to be
    /// acknowledged and no transaction is open. Messages that are kept for absent clients do not count.
    package var isIdle: Bool { hub.isIdle }
}

extension LoopbackBroker.Service {
    /// The scheme of its URLs.
    var scheme: String {
        switch self {
        case .mqtt: "mqtt"
        case .stomp: "stomp"
        case .mqttOverWebSocket, .stompOverWebSocket: "ws"
        case .eventStream: "http"
        }
    }
}

extension LoopbackBroker: Unmirrored {}
