import Testing
package import Waybill
package import WaybillLink
package import WaybillMQTT
import WaybillSSE
package import WaybillSTOMP
package import WaybillTesting
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A loopback broker without sockets, a manual clock, and transports that reach it through pairs of streams.
package final class LoopbackBench: Sendable {
    /// The latest random number.
    private final class Dice: Sendable {
        let last = Locked<UInt64>(0)
    }

    package let clock = ManualClock()
    private let dice = Dice()
    package let broker: LoopbackBroker
    private let pairs = Locked<[ByteStreamPair]>([])

    package init(_ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }) {
        var configuration = LoopbackBroker.Configuration()
        change(&configuration)
        broker = LoopbackBroker(
            configuration: configuration,
            environment: Self.environment(clock, NowhereDialer(), dice)
        )
    }

    /// An environment whose dialer connects to a service of the broker.
    package func environment(for service: LoopbackBroker.Service) -> LinkEnvironment {
        Self.environment(clock, PairDialer(bench: self, service: service), dice)
    }

    private static func environment(
        _ clock: ManualClock,
        _ dialer: any Dialer,
        _ dice: Dice
    ) -> LinkEnvironment {
        let timers = clock.linkTimers
        return LinkEnvironment(
            dialer: dialer,
            clock: timers,
            random: {
                // Different at each call, so that client identifiers differ.
                dice.last.withLock { last in
                    last += 1
                    return last &* 0x9E37_79B9_7F4A_7C15
                }
            }
        )
    }

    /// The client's end of a new connection.
    package func connect(_ service: LoopbackBroker.Service, capacity: Int = 1 << 20)
        -> any ByteStream
    {
        let pair = ByteStreamPair(capacity: capacity)
        pairs.withLock { $0.append(pair) }
        broker.serve(pair.second, as: service)
        return pair.first
    }

    package func mqtt(
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration()
        change(&configuration)
        return try MQTTTransport(
            url: #require(URL(string: "mqtt://broker")),
            configuration: configuration,
            environment: environment(for: .mqtt)
        )
    }

    package func stomp(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> STOMPTransport {
        var configuration = STOMPConfiguration()
        change(&configuration)
        return try STOMPTransport(
            url: #require(URL(string: "stomp://broker")),
            configuration: configuration,
            environment: environment(for: .stomp)
        )
    }

    /// A transport over any service.
    package func transport(_ service: LoopbackBroker.Service) throws -> any Transport {
        let environment = environment(for: service)
        return switch service {
        case .mqtt: try mqtt()
        case .stomp: try stomp()
        case .mqttOverWebSocket:
            try MQTTTransport(
                url: #require(URL(string: "ws://broker")),
                configuration: MQTTConfiguration(),
                environment: environment
            )
        case .stompOverWebSocket:
            try STOMPTransport(
                url: #require(URL(string: "ws://broker")),
                configuration: STOMPConfiguration(),
                environment: environment
            )
        case .eventStream:
            try SSETransport(
                url: #require(URL(string: "http://broker")),
                configuration: SSEConfiguration(),
                environment: environment
            )
        }
    }
}

private struct PairDialer: Dialer {
    let bench: LoopbackBench
    let service: LoopbackBroker.Service

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        bench.connect(service)
    }
}

/// A dialer for the broker, which makes no connections.
private struct NowhereDialer: Dialer {
    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        throw .closed
    }
}

/// Any command on any destination.
package struct LoopbackEntry: EntryType {
    package var command: EntryCommand
    package var topic: String?
    package var body: EntryBody
    package var headers: Headers

    package init(
        command: EntryCommand,
        topic: String? = nil,
        body: EntryBody = .none,
        headers: Headers = [:]
    ) {
        self.command = command
        self.topic = topic
        self.body = body
        self.headers = headers
    }

    package static func send(
        _ text: String,
        to topic: String,
        _ qos: QoS = .atLeastOnce,
        headers: Headers = [:]
    ) -> LoopbackEntry {
        LoopbackEntry(
            command: .send(qos: qos),
            topic: topic,
            body: .text(text),
            headers: headers
        )
    }

    package static func subscribe(
        _ topic: String,
        _ qos: QoS = .atLeastOnce
    ) -> LoopbackEntry {
        LoopbackEntry(command: .subscribe(qos: qos), topic: topic)
    }

    package static let connect = LoopbackEntry(command: .connect)
}
