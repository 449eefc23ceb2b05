import MQTTWire
public import Waybill
import WireCore

extension Recording {
    /// What records are wanted: those that meet each condition that is not nil.
    public struct Filter: Sendable {
        /// The kinds; nil for all.
        public var kinds: Set<Kind>?
        /// The direction; nil for both, and for records without one.
        public var direction: WireRecord.Direction?
        /// The name, without regard to the case of ASCII letters; nil for all.
        public var name: String?
        /// The topic, or a topic filter of MQTT with `+` and `#` (MQTT 5, 4.7); nil for all.
        ///
        /// A text that is no valid filter means itself.
        public var topic: String? {
            didSet { pattern = topic.map { TopicPattern($0) } }
        }
        /// A part of the text, the name, the topic, the label or a body that is text; nil for all.
        ///
        /// The case of ASCII letters does not matter.
        public var text: String?
        /// The earliest time, since 1970-01-01 00:00 UTC; nil for no limit.
        public var from: Duration?
        /// The first time that is too late, since 1970-01-01 00:00 UTC; nil for no limit.
        public var until: Duration?

        private var pattern: TopicPattern?

        /// A filter that all records pass.
        public init() {}

        /// Whether a record meets each condition.
        public func matches(_ record: Record) -> Bool {
            if let kinds, !kinds.contains(record.kind) { return false }
            if let direction, record.direction != direction { return false }
            if let from, record.time < from { return false }
            if let until, record.time >= until { return false }
            if let name, !record.name.hasSameBytesIgnoringASCIICase(as: name) { return false }
            if let pattern {
                guard let topic = record.topic, pattern.matches(topic) else { return false }
            }
            guard let text else { return true }
            let places = [record.text, record.name, record.topic, record.label, record.body?.text]
            return places.contains { $0?.hasPart(text) == true }
        }
    }

    /// The records that pass a filter; what is known of unreadable lines stays.
    public func filtered(_ filter: Filter) -> Recording {
        var recording = self
        recording.records = records.filter(filter.matches)
        return recording
    }
}

/// A topic, or a topic filter of MQTT.
private struct TopicPattern: Sendable {
    private let text: String
    /// Nil for a topic without wildcards.
    private let trie: MQTTTopicTrie<Bool>?

    init(_ text: String) {
        self.text = text
        guard let filter = try? MQTTTopicFilter(text), filter.hasWildcard else {
            trie = nil
            return
        }
        var trie = MQTTTopicTrie<Bool>()
        for pattern in filter.patterns { trie[pattern] = true }
        self.trie = trie
    }

    func matches(_ topic: String) -> Bool {
        if topic.hasSameBytes(as: text) { return true }
        var isMatch = false
        trie?.forEachMatch(of: topic) { _ in isMatch = true }
        return isMatch
    }
}

extension String {
    /// Whether the text contains the bytes of another, without regard to the case of ASCII letters.
    fileprivate func hasPart(_ part: String) -> Bool {
        let (bytes, wanted) = (utf8.map(\.asciiLowercased), part.utf8.map(\.asciiLowercased))
        guard let first = wanted.first else { return true }
        var index = 0
        while bytes.count - index >= wanted.count {
            if bytes[index] == first, bytes[index...].starts(with: wanted) { return true }
            index += 1
        }
        return false
    }
}
