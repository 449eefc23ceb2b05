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

/// A protocol, the way it is spoken, and what can be expected of it.
enum SimulatedService: String, CaseIterable, Sendable {
    case mqtt5 = "mqtt5"
    case mqtt311 = "mqtt3.1.1"
    case mqttOverWebSocket = "mqtt-websocket"
    case stomp = "stomp"
    case stompOverWebSocket = "stomp-websocket"
    case eventStream = "event-stream"

    /// What the broker calls it.
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

    /// The qualities that sends can ask for.
    var qualities: [QoS] {
        if isMQTT { return [.atMostOnce, .atLeastOnce, .exactlyOnce] }
        return [.atLeastOnce]
    }

    /// Whether a question can be asked, and its answer told apart.
    var hasReplies: Bool { self != .mqtt311 && self != .eventStream }

    /// How a topic is written, of which the broker keeps what a listener that is away would miss.
    func topic(_ name: String) -> String {
        // Longer in UTF-8, whose bytes a network cuts apart.
        if isMQTT { return "→\(name)" }
        return isSTOMP ? "/queue/→\(name)" : "/\(name)"
    }

    /// How a topic is written whose messages go to the listeners of that moment only.
    func passingTopic(_ name: String) -> String {
        isSTOMP ? "/topic/\(name)" : topic(name)
    }

    /// The topic as the broker knows it.
    func brokerTopic(_ topic: String) -> String {
        self == .eventStream ? String(topic.dropFirst()) : topic
    }

    /// How to listen so that nothing is lost.
    func subscribe(_ qos: QoS) -> EntryCommand {
        isSTOMP ? .subscribe(ackMode: .clientIndividual) : .subscribe(qos: qos)
    }
}

/// A transport of a workload, drawn by the seed, and what the app can do to it.
struct SimulatedTransport {
    let transport: any Transport
    let pause: @Sendable () async -> Void
    let resume: @Sendable () -> Void
    /// The longest that a dead connection can go unnoticed.
    let detection: Duration
    /// How often an MQTT client says something at least.
    var keepAlive = Duration.seconds(60)
    /// How long a send waits for its acknowledgement.
    var patience = Duration.seconds(30)
    /// Where an MQTT client keeps what it sends.
    var store: InMemorySessionStore?

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
        // Little memory and few places: what is not given back is soon missed.
        let memoryLimit = world.pick(200_000, 64 << 20)
        let buffering = world.pick(nil, BufferPolicy(.dropOldest, messageLimit: 2))
        guard let url = URL(string: first) else { throw WaybillError(.invalidEntry, first) }
        switch service {
        case .mqtt5, .mqtt311, .mqttOverWebSocket:
            var configuration = MQTTConfiguration()
            configuration.version = service == .mqtt311 ? .v3_1_1 : .v5
            configuration.clientIdentifier = name
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(86_400)
            configuration.keepAlive = world.pick(.seconds(3), .seconds(10), .seconds(60))
            configuration.connectTimeout = Self.connectTimeout
            configuration.acknowledgementTimeout = world.pick(
                .seconds(4),
                .seconds(15),
                .seconds(60)
            )
            configuration.inflightWindow = world.pick(1, 3, 20)
            configuration.receiveMaximum = world.pick(1, 5, 1_024)
            configuration.failover = failover
            configuration.reconnection = reconnection
            configuration.credentials = credentials
            configuration.offlineQueue = world.pick(.off, OfflineQueuePolicy())
            let store = world.chance(0.5) ? InMemorySessionStore() : nil
            configuration.store = store
            configuration.memoryLimit = memoryLimit
            configuration.buffering = buffering ?? configuration.buffering
            configuration.wireLogger = log
            let transport = try MQTTTransport(url: url, configuration: configuration)
            self.store = store
            patience = configuration.acknowledgementTimeout
            self.transport = transport
            pause = { await transport.pause() }
            resume = { transport.resume() }
            detection = configuration.keepAlive * 2
            keepAlive = configuration.keepAlive
        case .stomp, .stompOverWebSocket:
            var configuration = STOMPConfiguration()
            // Without one the broker would take a client for alive whose connection is dead, and send messages there.
            configuration.outgoingHeartBeat = world.pick(.seconds(3), .seconds(10))
            configuration.incomingHeartBeat = world.pick(.seconds(3), .seconds(10))
            configuration.connectTimeout = Self.connectTimeout
            configuration.receiptTimeout = world.pick(.seconds(4), .seconds(15))
            configuration.memoryLimit = memoryLimit
            configuration.maximumInFlight = world.pick(1, 3, 200)
            configuration.failover = failover
            configuration.reconnection = reconnection
            configuration.credentials = credentials
            configuration.wireLogger = log
            let transport = try STOMPTransport(url: url, configuration: configuration)
            patience = configuration.receiptTimeout
            self.transport = transport
            pause = { await transport.pause() }
            resume = { transport.resume() }
            detection = configuration.incomingHeartBeat * 3
        case .eventStream:
            var configuration = SSEConfiguration()
            configuration.connectTimeout = Self.connectTimeout
            configuration.responseTimeout = world.pick(.seconds(4), .seconds(15))
            configuration.memoryLimit = memoryLimit
            configuration.idleTimeout = .seconds(30)
            configuration.maximumConnectionsPerHost = world.pick(3, 6)
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
