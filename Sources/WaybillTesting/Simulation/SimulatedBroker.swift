public import Waybill
import WaybillLink
import WireCore

/// A ``LoopbackBroker`` in a simulated world, behind one host or several.
///
/// With several hosts they are the nodes of one service: what one is told, all know.
public final class SimulatedBroker: Sendable {
    /// The names of its hosts, the first one first.
    public let hosts: [String]
    /// The broker itself: what it does wrong on demand, and how many clients it has.
    public let loopback: LoopbackBroker
    private let network: SimulatedNetwork
    private var scheduler: SimulationScheduler { network.scheduler }

    init(
        _ hosts: [String],
        _ loopback: LoopbackBroker,
        in network: SimulatedNetwork
    ) {
        self.hosts = hosts
        self.loopback = loopback
        self.network = network
        for host in hosts {
            for service in LoopbackBroker.Service.allCases {
                network.listen(host, Self.port(service)) { loopback.serve($0, as: service) }
            }
        }
    }

    /// Where clients of a service connect to.
    /// - Parameters:
    ///   - service: The service.
    ///   - host: The host; the first one unless it is named.
    /// - Returns: The URL.
    public func url(for service: LoopbackBroker.Service = .mqtt, at host: String? = nil) -> String {
        "\(service.scheme)://\(host ?? hosts.first ?? ""):\(Self.port(service))"
    }

    /// The ports that these services usually have.
    private static func port(_ service: LoopbackBroker.Service) -> UInt16 {
        switch service {
        case .mqtt: 1883
        case .stomp: 61613
        case .mqttOverWebSocket, .stompOverWebSocket: 8000
        case .eventStream: 8080
        }
    }

    /// Breaks every connection without a word, as a machine does that restarts.
    /// - Parameter keepingState: Whether it knows afterwards what it knew before.
    public func restart(keepingState: Bool) {
        scheduler.trace.note(
            "the broker restarts \(keepingState ? "with" : "without") its state",
            at: scheduler.now
        )
        scheduler.calmly { loopback.restart(keepingState: keepingState) }
    }

    /// Lets a host be reached, or not; connections that are there stay.
    ///
    /// - Parameters:
    ///   - isReachable: Whether it can be connected to.
    ///   - host: The host.
    public func setReachable(_ isReachable: Bool, at host: String) {
        network.note("\(host) can\(isReachable ? "" : "not") be reached")
        network.setReachable(isReachable, host)
    }

    /// Breaks every connection to a host, and loses what is under way on them, as when one of the two machines dies.
    ///
    /// The host can still be reached.
    ///
    /// - Parameter host: The host.
    public func breakConnections(at host: String) {
        network.note("the connections to \(host) are broken")
        network.breakConnections(host)
    }

    /// Publishes a message of its own.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - topic: The topic; over STOMP the destination, and over HTTP the path without its first slash.
    ///   - qos: The quality of service; over MQTT alone, and not more than a subscription asks for.
    ///   - headers: The headers; over MQTT 5 user properties. In an event stream, `event` is the type of the event.
    public func publish(
        _ body: Payload,
        to topic: String,
        qos: QoS = .atMostOnce,
        headers: Headers = [:]
    ) {
        scheduler.calmly {
            loopback.publish(body, to: topic, qos: qos, headers: headers, at: scheduler.loopNow)
        }
    }

    /// How many clients are connected.
    public var connectionCount: Int { scheduler.calmly { loopback.connectionCount } }
}

extension SimulatedBroker: Unmirrored {}
