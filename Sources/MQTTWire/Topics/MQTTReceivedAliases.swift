/// The topic aliases that the peer has defined on one connection (MQTT 5, 3.3.2.3.4).
///
/// | PUBLISH | alias from 1 to the maximum | any other alias |
/// | --- | --- | --- |
/// | with a topic | the alias now stands for the topic | `topicAliasInvalid` |
/// | without a topic | gets the topic; `topicAliasUnknown` if the alias stands for none | `topicAliasInvalid` |
package struct MQTTReceivedAliases: Sendable {
    /// The maximum length of all topics together, in bytes.
    ///
    /// Sixteen topics of the greatest length fit. A peer that sends more does not fill the memory of an app with a
    /// greater ``maximum``. The entries add about 100 bytes each.
    ///
    /// No memory account counts these bytes. They do not wait for anybody, so to stop reading would not release them.
    package static let byteLimit = 1 << 20

    /// The highest alias that this side has allowed; 0 for none.
    package let maximum: UInt16
    private var topics: [UInt16: String] = [:]
    /// The length of all topics together, in bytes.
    package private(set) var byteCount = 0

    package init(maximum: UInt16 = 0) {
        self.maximum = maximum
    }

    /// The topic that the alias of a message without a topic stands for; nil for any other packet.
    package func topic(of packet: MQTTPacket) -> String? {
        guard case .publish(let publish) = packet, publish.topic.isEmpty else { return nil }
        return publish.properties.topicAlias.flatMap { topics[$0] }
    }

    /// Replaces the alias of a message by its topic.
    ///
    /// - Throws: `topicAliasInvalid`, `topicAliasUnknown`; `topicAliasesTooLong` above the limit.
    package mutating func resolve(_ publish: inout MQTTPublish) throws(MQTTViolation) {
        guard !publish.properties.isEmpty, let alias = publish.properties.topicAlias else { return }
        guard alias > 0, alias <= maximum else { throw .topicAliasInvalid }
        // The alias has no meaning beyond the connection.
        publish.properties.topicAlias = nil
        guard publish.topic.isEmpty else {
            let earlier = topics.updateValue(publish.topic, forKey: alias)
            byteCount += publish.topic.utf8.count - (earlier?.utf8.count ?? 0)
            guard byteCount <= Self.byteLimit else { throw .topicAliasesTooLong }
            return
        }
        guard let topic = topics[alias] else { throw .topicAliasUnknown }
        publish.topic = topic
    }
}
