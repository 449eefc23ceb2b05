import WireCore

/// The settings of every connection of a client.
package struct MQTTClientConfiguration: Sendable {
    package var version = MQTTVersion.v5
    /// The longest packet to accept, in bytes; MQTT 5 servers are informed.
    package var maximumPacketSize = 1 << 20
    /// The number of outbound messages of QoS 1 and 2 in flight; a server may lower it.
    package var inflightWindow = 20
    /// The time limit for CONNACK.
    package var connectTimeout = Duration.seconds(10)
    /// The time limit for any other acknowledgement.
    package var acknowledgementTimeout = Duration.seconds(30)
    /// Whether messages outlive the connection.
    ///
    /// The end of the connection then abandons only the calls that wait for SUBACK or UNSUBACK. The rest is in
    /// ``MQTTClientConnection/takeSessionState()``.
    package var keepsSession = false
    /// Whether messages name their topics by aliases, as far as the server allows it.
    package var usesTopicAliases = true
    /// What is known of the silence that the path bears; nil if pings follow the keep alive alone.
    package var keepAliveProbe: MQTTKeepAliveProbe? {
        get { probe?.value }
        set { probe = newValue.map { Shared($0) } }
    }
    // Out of line, because most connections have none.
    private var probe: Shared<MQTTKeepAliveProbe>?
    /// Whether packets are reported as ``MQTTClientEvent/trace(_:)``.
    package var isTracing = false

    package init() {}
}
