import MQTTWire
import WireCore

extension MQTTClientConfiguration {
    /// The configuration of the core of one connection.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the transport.
    ///   - connectTimeout: The time that is left for the handshake.
    ///   - probe: What is known of the silence that the path bears.
    init(
        _ configuration: MQTTConfiguration,
        within connectTimeout: Duration,
        _ probe: MQTTKeepAliveProbe?
    ) {
        self.init()
        version = configuration.version == .v5 ? .v5 : .v3_1_1
        maximumPacketSize = configuration.limits.packetSize
        inflightWindow = min(max(configuration.limits.inFlight, 1), 65_535)
        self.connectTimeout = connectTimeout
        acknowledgementTimeout = configuration.timeouts.confirmation
        usesTopicAliases = configuration.aliases.isUsed
        isTracing = configuration.wireLogger != nil
        keepAliveProbe = probe
        // Set without automatic reconnection, too, because a connection follows a pause in any case.
        keepsSession = true
    }
}
