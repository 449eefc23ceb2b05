import MQTTWire
import WireCore

/// Gives each connection what earlier ones have learned about silence in its network.
final class MQTTKeepAliveLearning: Sendable {
    /// What one connection learns.
    struct Course: Sendable {
        let network: String
        let probe: MQTTKeepAliveProbe
    }

    private let options: AdaptiveKeepAlive
    private let learned: Locked<LearnedKeepAlive>

    init(_ options: AdaptiveKeepAlive) {
        self.options = options
        learned = Locked(options.learned)
    }

    var memory: LearnedKeepAlive { learned.withLock { $0 } }

    /// Begins a connection.
    func begin() -> Course {
        let network = options.network()
        let known = learned.withLock { $0.knowledge(of: network) }
        return Course(
            network: network,
            probe: MQTTKeepAliveProbe(
                lowest: options.minimum.components.seconds,
                step: options.step.components.seconds,
                knowledge: known ?? .init()
            )
        )
    }

    /// Remembers what a connection has learned.
    func remember(_ probe: MQTTKeepAliveProbe, of network: String) {
        guard probe.knowledge != .init() else { return }
        learned.withLock { $0.remember(network, probe.knowledge) }
    }
}
