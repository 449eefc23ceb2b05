import MQTTWire
import WireCore

/// Which topics a subscription of the mock means.
enum TopicMatching {
    static func hasWildcard(_ topic: String) -> Bool {
        topic.utf8.contains { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
    }

    /// Whether it is the same topic, or a filter that matches it.
    static func matches(
        _ filter: String,
        _ topic: String,
        _ wildcards: MockTransport.Wildcards
    ) -> Bool {
        if filter.hasSameBytes(as: topic) { return true }
        guard wildcards == .mqtt, hasWildcard(filter) else { return false }
        return (try? MQTTTopicFilter(filter))?.matches(topic) ?? false
    }
}
