import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A protocol over one kind of connection, and what a workload can expect of it.
enum SimulatedService: String, CaseIterable, Sendable {
    case mqtt5 = "mqtt5"
    case mqtt311 = "mqtt3.1.1"
    case mqttOverWebSocket = "mqtt-websocket"
    case stomp = "stomp"
    case stompOverWebSocket = "stomp-websocket"
    case eventStream = "event-stream"

    /// The broker's service for the protocol.
    var service: LoopbackBroker.Service {
        switch self {
        case .mqtt5, .mqtt311: .mqtt
        case .mqttOverWebSocket: .mqttOverWebSocket
        case .stomp: .stomp
        case .stompOverWebSocket: .stompOverWebSocket
        case .eventStream: .eventStream
        }
    }

    var isMQTT: Bool { service == .mqtt || service == .mqttOverWebSocket }
    var isSTOMP: Bool { service == .stomp || service == .stompOverWebSocket }

    /// The QoS levels that a send can ask for.
    var qualities: [QoS] {
        if isMQTT { return [.atMostOnce, .atLeastOnce, .exactlyOnce] }
        return [.atLeastOnce]
    }

    /// True when requests get replies that can be told apart.
    var hasReplies: Bool { self != .mqtt311 && self != .eventStream }

    /// The form of a topic whose messages the broker keeps for an absent subscriber.
    func topic(_ name: String) -> String {
        // The arrow takes several bytes in UTF-8, which the network may cut apart.
        if isMQTT { return "→\(name)" }
        return isSTOMP ? "/queue/→\(name)" : "/\(name)"
    }

    /// The form of a topic whose messages go only to the subscribers of that moment.
    func passingTopic(_ name: String) -> String {
        isSTOMP ? "/topic/\(name)" : topic(name)
    }

    /// The name of the topic in the broker.
    func brokerTopic(_ topic: String) -> String {
        self == .eventStream ? String(topic.dropFirst()) : topic
    }

    /// A subscription that loses no message.
    func subscribe(_ qos: QoS) -> EntryCommand {
        isSTOMP ? .subscribe(.ackMode(.clientIndividual)) : .subscribe(qos: qos)
    }
}

/// A transport with settings drawn from the seed, and its values that a workload needs.
struct SimulatedTransport {
    let transport: any Transport
    let pause: @Sendable () async -> Void
    let resume: @Sendable () -> Void
    /// The longest time until a dead connection is detected.
    let detection: Duration
    /// The longest silence of an MQTT client.
    var keepAlive = Duration.seconds(60)
    /// The time for which a send waits for its acknowledgement.
    var acknowledgementTimeout = Duration.seconds(30)
    /// The session store of an MQTT client.
    var store: SimulatedStore?

    static let connectTimeout = Duration.seconds(5)
    static let maximumDelay = Duration.seconds(8)

    init(
        _ service: SimulatedService,
        to broker: SimulatedBroker,
        as name: String,
        with credentials: CredentialSource?,
        in world: SimulatedWorld,
        log: any WireLogger
    ) throws {
        let first = broker.url(for: service.service)
        var failover = FailoverOptions(hosts: Array(broker.hosts.dropFirst()))
        failover.order = world.pick(.inOrder, .shuffled)
        var reconnection = ReconnectionPolicy()
        reconnection.maximumDelay = Self.maximumDelay
        // With little memory and few places, a leak of either shows soon.
        let memoryLimit = world.pick(200_000, 64 << 20)
        let buffering = world.pick(nil, BufferPolicy(.dropOldest, messageLimit: 2))
        guard let url = URL(string: first) else { throw WaybillError(.invalidEntry, first) }
        switch service {
        case .mqtt5, .mqtt311, .mqttOverWebSocket:
            var configuration = MQTTConfiguration()
            configuration.version = service == .mqtt311 ? .v3_1_1 : .v5
            configuration.clientIdentifier = name
            configuration.session.cleanStart = false
            configuration.session.expiry = .seconds(86_400)
            configuration.keepAlive.interval = world.pick(.seconds(3), .seconds(10), .seconds(60))
            configuration.timeouts.connect = Self.connectTimeout
            configuration.timeouts.confirmation = world.pick(
                .seconds(4),
                .seconds(15),
                .seconds(60)
            )
            configuration.limits.inFlight = world.pick(1, 3, 20)
            configuration.limits.receiveMaximum = world.pick(1, 5, 1_024)
            configuration.failover = failover
            configuration.reconnection = reconnection
            configuration.credentials = credentials
            configuration.offline = world.pick(.off, OfflinePolicy())
            let store = world.chance(0.5) ? SimulatedStore(world) : nil
            configuration.session.store = store
            // Messages of a filter that nobody listens to any more hold up acknowledgements for that long, which has to be
            // over before the workload calls them stuck.
            configuration.session.lateDelivery.timeToLive = .seconds(5)
            configuration.limits.memory = memoryLimit
            configuration.buffering = buffering ?? configuration.buffering
            configuration.wireLogger = log
            let transport = try MQTTTransport(url: url, configuration: configuration)
            self.store = store
            acknowledgementTimeout = configuration.timeouts.confirmation
            self.transport = transport
            pause = { await transport.pause() }
            resume = { transport.resume() }
            detection = configuration.keepAlive.interval * 2
            keepAlive = configuration.keepAlive.interval
        case .stomp, .stompOverWebSocket:
            var configuration = STOMPConfiguration()
            // Without heart-beats the broker would not detect a client's dead connection, and would send messages to
            // it.
            configuration.heartBeat.outgoing = world.pick(.seconds(3), .seconds(10))
            configuration.heartBeat.incoming = world.pick(.seconds(3), .seconds(10))
            configuration.timeouts.connect = Self.connectTimeout
            configuration.timeouts.confirmation = world.pick(.seconds(4), .seconds(15))
            configuration.limits.memory = memoryLimit
            configuration.limits.inFlight = world.pick(1, 3, 200)
            configuration.failover = failover
            configuration.reconnection = reconnection
            configuration.credentials = credentials
            configuration.wireLogger = log
            let transport = try STOMPTransport(url: url, configuration: configuration)
            acknowledgementTimeout = configuration.timeouts.confirmation
            self.transport = transport
            pause = { await transport.pause() }
            resume = { transport.resume() }
            detection = configuration.heartBeat.incoming * 3
        case .eventStream:
            var configuration = SSEConfiguration()
            configuration.timeouts.connect = Self.connectTimeout
            configuration.timeouts.confirmation = world.pick(.seconds(4), .seconds(15))
            configuration.limits.memory = memoryLimit
            configuration.timeouts.silence = .seconds(30)
            configuration.limits.connectionsPerHost = world.pick(3, 6)
            configuration.failover = failover
            configuration.reconnection = reconnection
            configuration.credentials = credentials
            configuration.wireLogger = log
            let transport = try SSETransport(url: url, configuration: configuration)
            self.transport = transport
            pause = { await transport.pause() }
            resume = { transport.resume() }
            detection = .seconds(45)
        }
    }
}
