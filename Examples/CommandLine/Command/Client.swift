import CommandText
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP

/// A provider for the server of the command.
struct Client: Sendable {
    /// What a command needs of its transport beside the settings of the server.
    struct Needs: Sendable {
        /// Whether to connect again after a lost connection.
        var reconnects = false
        var logger: (any WireLogger)?
        /// The bytes that may wait in memory.
        var memory = 16 << 20
        /// Acknowledgements that may be outstanding.
        var inFlight = 1_000
        /// The versions of STOMP to offer.
        var stompVersions = STOMPConfiguration.Version.allCases
        /// The longest body or packet that is accepted, in bytes.
        var bodySize = 256 << 20
    }

    let provider: Provider<AnyEntry>
    let settings: ServerSettings
    /// The transport, for what only one protocol has.
    let transport: any Transport

    init(_ settings: ServerSettings, _ needs: Needs = Needs()) throws {
        self.settings = settings
        do throws(WaybillError) {
            switch settings.family {
            case .mqtt:
                let transport = try MQTTTransport(url: settings.url) {
                    Self.configure(&$0, settings, needs)
                }
                (self.transport, provider) = (transport, Provider(transport: transport))
            case .stomp:
                let transport = try STOMPTransport(url: settings.url) {
                    Self.configure(&$0, settings, needs)
                }
                (self.transport, provider) = (transport, Provider(transport: transport))
            case .events:
                let transport = try SSETransport(url: settings.url) {
                    Self.configure(&$0, settings, needs)
                }
                (self.transport, provider) = (transport, Provider(transport: transport))
            }
        } catch {
            throw Failure(error, at: settings.address.shown)
        }
    }

    private static func reconnection(_ needs: Needs) -> ReconnectionPolicy {
        needs.reconnects ? ReconnectionPolicy() : .never
    }

    private static func webSocket(_ settings: ServerSettings) -> WebSocketOptions {
        var headers = Headers()
        if settings.address.isWebSocket {
            headers = settings.headers
            if let token = settings.token { headers["Authorization"] = "Bearer \(token)" }
        }
        return WebSocketOptions(headers: headers)
    }

    /// The password; over TCP a token takes its place.
    private static func password(_ settings: ServerSettings) -> String? {
        settings.password ?? (settings.address.isWebSocket ? nil : settings.token)
    }

    private static func configure(
        _ configuration: inout MQTTConfiguration,
        _ settings: ServerSettings,
        _ needs: Needs
    ) {
        configuration.version = settings.mqttVersion == .v5 ? .v5 : .v3_1_1
        configuration.clientIdentifier = settings.clientIdentifier
        configuration.session.cleanStart = !settings.keepsSession
        if settings.keepsSession, settings.mqttVersion == .v5 {
            configuration.session.expiry = .seconds(86_400)
        }
        configuration.userName = settings.userName
        configuration.password = password(settings)
        // MQTT 3.1.1 allows no password without a user (3.1.2.9).
        if settings.token != nil, settings.userName == nil, settings.mqttVersion == .v3_1_1 {
            configuration.userName = "token"
        }
        if let keepAlive = settings.keepAlive { configuration.keepAlive.interval = keepAlive }
        if let timeout = settings.connectTimeout { configuration.timeouts.connect = timeout }
        if let will = settings.will, let topic = will.willTopic {
            var message = Will(
                topic: topic,
                body: Payload(Array((will.willMessage ?? "").utf8)),
                qos: QoS(rawValue: will.willQos) ?? .atMostOnce
            )
            if will.willRetain { message[.retained] = true }
            configuration.will = message
        }
        configuration.reconnection = reconnection(needs)
        configuration.connectsOnDemand = needs.reconnects
        configuration.limits.inFlight = needs.inFlight
        configuration.limits.packetSize = needs.bodySize
        configuration.limits.announcesPacketSize = false
        configuration.limits.memory = max(needs.memory, 1 << 20)
        configuration.tls = settings.tls
        configuration.webSocket = webSocket(settings)
        configuration.wireLogger = needs.logger
    }

    private static func configure(
        _ configuration: inout STOMPConfiguration,
        _ settings: ServerSettings,
        _ needs: Needs
    ) {
        configuration.versions = needs.stompVersions
        configuration.host = settings.virtualHost
        configuration.userName = settings.userName
        configuration.password = password(settings)
        if let keepAlive = settings.keepAlive {
            configuration.heartBeat.outgoing = keepAlive
            configuration.heartBeat.incoming = keepAlive
        }
        if let timeout = settings.connectTimeout { configuration.timeouts.connect = timeout }
        configuration.reconnection = reconnection(needs)
        configuration.connectsOnDemand = needs.reconnects
        configuration.limits.bodySize = needs.bodySize
        configuration.limits.memory = max(needs.memory, 1 << 20)
        configuration.tls = settings.tls
        configuration.webSocket = webSocket(settings)
        configuration.wireLogger = needs.logger
    }

    private static func configure(
        _ configuration: inout SSEConfiguration,
        _ settings: ServerSettings,
        _ needs: Needs
    ) {
        configuration.headers = settings.headers
        if let token = settings.token {
            configuration.headers["Authorization"] = "Bearer \(token)"
        }
        configuration.userName = settings.userName
        configuration.password = settings.password
        if let timeout = settings.connectTimeout { configuration.timeouts.connect = timeout }
        configuration.reconnection = reconnection(needs)
        configuration.limits.eventSize = needs.bodySize
        configuration.limits.replySize = needs.bodySize
        configuration.limits.memory = max(needs.memory, 1 << 20)
        configuration.tls = settings.tls
        configuration.wireLogger = needs.logger
    }

    /// Runs the body over a connection, and disconnects in order whatever comes of it.
    ///
    /// - Parameter body: Gets the receipt of the connection, too.
    /// - Returns: The result of the body.
    /// - Throws: `Failure` with the server's name for an error of the connection or a request.
    func connected<Result>(
        _ body: (Client, Receipt) async throws -> Result
    ) async throws -> Result {
        let provider = provider
        var isConnected = false
        do {
            let receipt = try await provider.connect()
            isConnected = true
            let result = try await body(self, receipt)
            // Not cancelled with this task: an interrupted command disconnects in order, too.
            try await Task { try await provider.disconnect() }.value
            await provider.shutdown()
            return result
        } catch {
            await Task {
                try? await provider.disconnect()
                await provider.shutdown()
            }.value
            guard let error = error as? WaybillError else { throw error }
            let failure = Failure(error, at: settings.address.shown)
            // There was a connection, and it is gone.
            guard isConnected, failure.status == .unreachable else { throw failure }
            throw Failure(.connectionLost, failure.message)
        }
    }

    /// Runs the body over a connection, whose receipt it does not need.
    func connected<Result>(_ body: (Client) async throws -> Result) async throws -> Result {
        try await connected { client, _ in try await body(client) }
    }
}

/// The quality of service of an argument.
func qualityOfService(_ number: Int) throws -> QoS {
    guard let qos = QoS(rawValue: number) else {
        throw TextError("--qos is 0, 1 or 2, not \(number)")
    }
    return qos
}
