package import MQTTWire

/// Keep alive that learns how long a network may be silent.
///
/// Something between client and server, such as a NAT of a mobile network, forgets a silent connection. Pings that are
/// too rare then lose connections, and pings that are too frequent cost battery. With this option the interval begins
/// at ``minimum`` and grows while pings are answered. After a loss that a silence explains it shrinks, until the
/// longest interval is found that the network bears. The next connection over the same network continues there.
///
/// ``MQTTConfiguration/KeepAlive/interval``, or the server's own value (MQTT 5), is what the server is told, and the
/// longest interval. Its default is 60 seconds, which leaves nothing to learn: set it to the longest interval that the
/// app wants. A server notices a lost client only after one and a half times this value (MQTT 5, 3.1.2.10).
///
/// The search may lose some connections in each new network: as many as it takes to halve the distance between the
/// longest proven interval and the first loss down to ``step``. A loss may also have had another cause. Therefore the
/// interval of the loss is tried once more after 64 answers. Each vain attempt doubles this number, up to 4,096.
public struct AdaptiveKeepAlive: Sendable {
    /// The first interval, which is never gone below; whole seconds, 60 by default.
    public var minimum: Duration
    /// The distance between a proven and a broken interval at which the search ends; whole seconds, 15 by default.
    public var step: Duration
    /// What earlier transports have learned; empty by default.
    ///
    /// ``MQTTTransport/learnedKeepAlive`` has what this transport has learned, for the app to store.
    public var learned: LearnedKeepAlive
    /// Returns a name of the present network, such as that of its interface; called before each connection.
    ///
    /// Each name has an interval of its own. By default all networks have the same name. The function must return at
    /// once. Names are compared by their bytes.
    public var network: @Sendable () -> String

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        minimum: Duration = .seconds(60),
        step: Duration = .seconds(15),
        learned: LearnedKeepAlive = LearnedKeepAlive(),
        network: @escaping @Sendable () -> String = { "" }
    ) {
        self.minimum = minimum
        self.step = step
        self.learned = learned
        self.network = network
    }
}

/// What ``AdaptiveKeepAlive`` has learned of the last 16 networks.
public struct LearnedKeepAlive: Codable, Hashable, Sendable {
    /// The number of networks that are remembered.
    public static let maximumCount = 16

    private struct Entry: Codable, Hashable, Sendable {
        var network: String
        var knowledge: MQTTKeepAliveProbe.Knowledge
    }

    /// The network that was used last is the last one.
    private var entries: [Entry] = []

    /// Makes one that knows no network.
    public init() {}

    /// The names of the networks, the one that was used last at the end.
    public var networks: [String] { entries.map(\.network) }

    /// The longest silence that a network has borne, in whole seconds; nil if none is known.
    public func longestSilence(of network: String) -> Duration? {
        guard let knowledge = knowledge(of: network), knowledge.proven > 0 else { return nil }
        return .seconds(knowledge.proven)
    }

    /// What is known of a network.
    package func knowledge(of network: String) -> MQTTKeepAliveProbe.Knowledge? {
        entries.last { $0.network.utf8.elementsEqual(network.utf8) }?.knowledge
    }

    /// Remembers a network, in place of the one that was not used for longest.
    package mutating func remember(
        _ network: String,
        _ knowledge: MQTTKeepAliveProbe.Knowledge
    ) {
        entries.removeAll { $0.network.utf8.elementsEqual(network.utf8) }
        entries.append(Entry(network: network, knowledge: knowledge))
        // What a file has may be longer.
        entries.removeFirst(max(entries.count - Self.maximumCount, 0))
    }
}
