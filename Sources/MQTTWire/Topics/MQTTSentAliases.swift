import WireCore

/// The topic aliases that this side defines on one connection (MQTT 5, 3.3.2.3.4).
///
/// A topic gets an alias at its first message, as long as one is free. After that, a topic takes over the alias that
/// saves least, if its own alias would lately have saved more than twice as much. Each topic has a score: the bytes
/// that an alias has saved or would have saved. All scores are halved after every ``window`` messages.
///
/// | topic | event → next state |
/// | --- | --- |
/// | unknown | message, alias free → with alias; no alias free → candidate |
/// | candidate | message, score above twice the lowest score → with alias; few messages in a window → unknown |
/// | with alias | another topic takes the alias over → candidate |
package struct MQTTSentAliases: Sendable {
    /// An alias, and the properties of a packet that has no other property.
    package struct Alias: Sendable {
        package let number: UInt16
        let properties: MQTTProperties

        init(_ number: UInt16) {
            self.number = number
            var properties = MQTTProperties()
            properties.topicAlias = number
            self.properties = properties
        }
    }

    /// How a packet names its topic.
    package enum Naming: Sendable {
        case topic
        /// By topic and alias; ``noteDefinition(of:for:)`` must follow when the packet is written.
        case definition(Alias)
        /// By the alias alone.
        case alias(Alias)
    }

    private struct Entry: Sendable {
        let topic: WireName
        /// The bytes that each alias in place of the topic saves.
        let saving: Int
        var score: Int
        /// Nil for a candidate.
        var alias: Alias?
    }

    /// The maximum number of aliases, whatever the peer allows.
    package static let aliasLimit: UInt16 = 1_024
    /// The maximum number of candidates.
    package static let candidateLimit = 256
    /// The number of messages after which the scores are halved.
    package static let window = 1_024
    /// The length of an alias as a property.
    private static let aliasByteCount = 3

    /// The number of aliases to define; 0 for none.
    package let maximum: Int
    private var entries: [Entry] = []
    private var places: [WireName: Int] = [:]
    /// The place of the last topic; the next message often has the same.
    private var lastPlace = 0
    /// The number of defined aliases, which are the numbers from 1.
    private var aliasCount = 0
    /// A lower bound of the scores of topics with aliases.
    private var lowestScore = 0
    private var remainingInWindow = Self.window
    /// The bytes that aliases have saved on this connection, less those of their definitions.
    package internal(set) var savedByteCount = 0

    /// - Parameter maximum: The highest alias that the peer allows.
    package init(maximum: UInt16 = 0) {
        self.maximum = Int(min(maximum, Self.aliasLimit))
    }

    /// The number of topics in memory.
    package var topicCount: Int { entries.count }

    /// Whether no alias may be sent.
    var isEmpty: Bool { maximum == 0 }

    /// Counts a message and decides how its packet names the topic.
    ///
    /// - Complexity: O(topics) when an alias is taken over or a window ends; otherwise O(length of the topic).
    package mutating func naming(of topic: String) -> Naming {
        let saving = topic.utf8.count - Self.aliasByteCount
        guard saving > 0 else { return .topic }
        remainingInWindow -= 1
        if remainingInWindow == 0 { endWindow() }
        guard let place = place(of: topic) else {
            if aliasCount < maximum { return .definition(Alias(UInt16(aliasCount + 1))) }
            if entries.count - aliasCount < Self.candidateLimit { add(topic, alias: nil) }
            return .topic
        }
        entries[place].score += saving
        if let alias = entries[place].alias { return .alias(alias) }
        guard let alias = aliasBelow(entries[place].score) else { return .topic }
        return .definition(alias)
    }

    private mutating func place(of topic: String) -> Int? {
        if lastPlace < entries.count, entries[lastPlace].topic.text.hasSameBytes(as: topic) {
            return lastPlace
        }
        guard let place = places[WireName(topic)] else { return nil }
        lastPlace = place
        return place
    }

    private mutating func add(_ topic: String, alias: Alias?) {
        let saving = topic.utf8.count - Self.aliasByteCount
        let name = WireName(topic)
        places[name] = entries.count
        entries.append(Entry(topic: name, saving: saving, score: saving, alias: alias))
    }

    /// The alias to take over for a candidate with a score.
    private mutating func aliasBelow(_ score: Int) -> Alias? {
        if aliasCount < maximum { return Alias(UInt16(aliasCount + 1)) }
        guard score > 2 * lowestScore else { return nil }
        var lowest: (score: Int, alias: Alias)?
        for place in entries.indices where entries[place].score < lowest?.score ?? .max {
            if let alias = entries[place].alias { lowest = (entries[place].score, alias) }
        }
        guard let lowest else { return nil }
        lowestScore = lowest.score
        return score > 2 * lowestScore ? lowest.alias : nil
    }

    /// Notes that a packet with topic and alias was written.
    package mutating func noteDefinition(of alias: Alias, for topic: String) {
        for place in entries.indices where entries[place].alias?.number == alias.number {
            entries[place].alias = nil
        }
        aliasCount = max(aliasCount, Int(alias.number))
        lowestScore = 0
        if let place = place(of: topic) {
            entries[place].alias = alias
        } else {
            add(topic, alias: alias)
        }
    }

    /// Halves the scores, and forgets the candidates with less than two messages in the window.
    private mutating func endWindow() {
        remainingInWindow = Self.window
        lowestScore /= 2
        lastPlace = 0
        for place in entries.indices { entries[place].score /= 2 }
        entries.removeAll { $0.alias == nil && $0.score < $0.saving }
        places.removeAll(keepingCapacity: true)
        for (place, entry) in entries.enumerated() { places[entry.topic] = place }
    }
}
