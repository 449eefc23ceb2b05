import MQTTWire

/// Which topics a subscription of the mock means.
enum TopicMatching {
    static func hasWildcard(_ topic: String) -> Bool {
        topic.utf8.contains { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
    }

    /// Whether it is the same topic, or a filter in MQTT's notation that matches it.
    static func matches(_ filter: String, _ topic: String) -> Bool {
        if filter == topic { return true }
        guard hasWildcard(filter) else { return false }
        return (try? MQTTTopicFilter(filter))?.matches(topic) ?? false
    }
}
