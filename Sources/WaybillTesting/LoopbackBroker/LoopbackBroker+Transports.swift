public import Waybill
import WaybillLink
public import WaybillMQTT
public import WaybillMock
public import WaybillSSE
public import WaybillSTOMP
public import WaybillWebSocket
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Transports that connect to a loopback broker in memory, on every platform, with time under the control of a test.

extension LoopbackBroker {
    /// Makes a broker whose time is a clock's: keep alive, heart-beats, the ends of sessions.
    ///
    /// ``start()`` is not needed for the transports that are made with the broker, such as
    /// `MQTTTransport(to:clock:)`.
    ///
    /// - Parameters:
    ///   - configuration: How the broker behaves.
    ///   - clock: What its time is measured by.
    public convenience init(
        configuration: Configuration = Configuration(),
        clock: ManualClock
    ) {
        var environment = LinkEnvironment.system
        environment.clock = clock.linkTimers
        self.init(configuration: configuration, environment: environment)
    }

    private static func url(_ text: String) throws(WaybillError) -> URL {
        guard let url = URL(string: text) else {
            throw WaybillError(.invalidEntry, "this is no path of a URL")
        }
        return url
    }

    static func memoryURL(_ scheme: String, _ path: String = "") throws(WaybillError) -> URL {
        try url("\(scheme)://loopback/\(path)")
    }
}

extension MQTTTransport {
    /// Makes a transport that connects to a loopback broker in memory, without a socket.
    ///
    /// - Parameters:
    ///   - broker: The broker.
    ///   - isOverWebSocket: Whether MQTT goes through a WebSocket.
    ///   - configuration: How the transport behaves; options for TLS, proxies and other hosts do not apply.
    ///   - clock: What all its times are measured by; nil for the system's clock.
    /// - Throws: `invalidEntry` for a configuration that cannot be.
    public convenience init(
        to broker: LoopbackBroker,
        overWebSocket isOverWebSocket: Bool = false,
        configuration: MQTTConfiguration = MQTTConfiguration(),
        clock: ManualClock? = nil
    ) throws(WaybillError) {
        let service: LoopbackBroker.Service = isOverWebSocket ? .mqttOverWebSocket : .mqtt
        try self.init(
            url: LoopbackBroker.memoryURL(isOverWebSocket ? "ws" : "mqtt"),
            configuration: configuration,
            environment: LoopbackDialer(broker: broker, service: service).environment(clock)
        )
    }
}

extension STOMPTransport {
    /// Makes a transport that connects to a loopback broker in memory, without a socket.
    ///
    /// - Parameters:
    ///   - broker: The broker.
    ///   - isOverWebSocket: Whether STOMP goes through a WebSocket.
    ///   - configuration: How the transport behaves; options for TLS, proxies and other hosts do not apply.
    ///   - clock: What all its times are measured by; nil for the system's clock.
    /// - Throws: `invalidEntry` for a configuration that cannot be.
    public convenience init(
        to broker: LoopbackBroker,
        overWebSocket isOverWebSocket: Bool = false,
        configuration: STOMPConfiguration = STOMPConfiguration(),
        clock: ManualClock? = nil
    ) throws(WaybillError) {
        let service: LoopbackBroker.Service = isOverWebSocket ? .stompOverWebSocket : .stomp
        try self.init(
            url: LoopbackBroker.memoryURL(isOverWebSocket ? "ws" : "stomp"),
            configuration: configuration,
            environment: LoopbackDialer(broker: broker, service: service).environment(clock)
        )
    }
}

extension SSETransport {
    /// Makes a transport that connects to a loopback broker in memory, without a socket.
    ///
    /// - Parameters:
    ///   - broker: The broker.
    ///   - configuration: How the transport behaves; options for TLS, proxies and other hosts do not apply.
    ///   - clock: What all its times are measured by; nil for the system's clock.
    /// - Throws: `invalidEntry` for a configuration that cannot be.
    public convenience init(
        to broker: LoopbackBroker,
        configuration: SSEConfiguration = SSEConfiguration(),
        clock: ManualClock? = nil
    ) throws(WaybillError) {
        try self.init(
            url: LoopbackBroker.memoryURL("http"),
            configuration: configuration,
            environment: LoopbackDialer(broker: broker, service: .eventStream).environment(clock)
        )
    }
}

extension EventSource {
    /// Makes a source whose stream comes from a loopback broker in memory, without a socket.
    ///
    /// - Parameters:
    ///   - broker: The broker.
    ///   - topic: The topic of the stream.
    ///   - headers: Further fields of each request.
    ///   - configuration: How it behaves; options for TLS, proxies and other hosts do not apply.
    ///   - clock: What all its times are measured by; nil for the system's clock.
    /// - Throws: `invalidEntry` for a topic that is no path of a URL, and for a configuration that cannot be.
    public convenience init(
        to broker: LoopbackBroker,
        topic: String,
        headers: Headers = [:],
        configuration: SSEConfiguration = SSEConfiguration(),
        clock: ManualClock? = nil
    ) throws(WaybillError) {
        try self.init(
            url: LoopbackBroker.memoryURL("http", topic),
            headers: headers,
            configuration,
            environment: LoopbackDialer(broker: broker, service: .eventStream).environment(clock)
        )
    }
}

extension WebSocketClient {
    /// Connects to a loopback broker in memory, without a socket.
    ///
    /// - Parameters:
    ///   - broker: The broker.
    ///   - configuration: How the connection behaves; its subprotocols decide whether the broker speaks MQTT or STOMP.
    ///   - clock: What all its times are measured by; nil for the system's clock.
    /// - Returns: An open connection.
    /// - Throws: As `connect(to:configuration:)`.
    public static func connect(
        to broker: LoopbackBroker,
        configuration: Configuration = Configuration(),
        clock: ManualClock? = nil
    ) async throws -> WebSocketClient {
        let dialer = LoopbackDialer(broker: broker, service: .mqttOverWebSocket)
        return try await connect(
            to: LoopbackBroker.memoryURL("ws"),
            configuration: configuration,
            environment: dialer.environment(clock)
        )
    }
}
