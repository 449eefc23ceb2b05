import WireCore

/// A validated topic filter (MQTT 5, 4.7 and 4.8).
package struct MQTTTopicFilter: Hashable, Sendable {
    /// The fault of an invalid filter.
    package enum Fault: Hashable, Sendable {
        /// No characters (4.7.3-1).
        case empty
        /// More than 65,535 bytes (4.7.3-3).
        case tooLong
        /// U+0000 (4.7.3-2).
        case nullCharacter
        /// A `#` that is not the whole last level (4.7.1-1).
        case multiLevelWildcard
        /// A `+` that is not a whole level (4.7.1-2).
        case singleLevelWildcard
        /// A `$share` without a name, with a wildcard in the name, or without a filter after it (4.8.2).
        case shareName
    }

    /// The group of a shared subscription.
    package let shareName: String?

    /// The filter for matching topics: all of it, or the part after the share name.
    package let filter: String

    /// Checks a filter.
    ///
    /// - Throws: `topicFilterInvalid`.
    package init(_ string: String) throws(MQTTEncodingError) {
        guard string.utf8.count <= MQTTTopicName.maximumByteCount else {
            throw .topicFilterInvalid(.tooLong)
        }
        let prefix = "$share/"
        guard string.utf8.starts(with: prefix.utf8) else {
            try Self.validate(string)
            shareName = nil
            filter = string
            return
        }
        let rest = string.utf8.dropFirst(prefix.utf8.count)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else {
            throw .topicFilterInvalid(.shareName)
        }
        let name = rest[..<slash]
        guard !name.contains(where: MQTTTopicName.isForbidden) else {
            throw .topicFilterInvalid(.shareName)
        }
        guard let tail = String(rest[rest.index(after: slash)...]), !tail.utf8.isEmpty,
            let share = String(name)
        else { throw .topicFilterInvalid(.shareName) }
        try Self.validate(tail)
        shareName = share
        filter = tail
    }

    /// Filters are equal when their bytes are.
    package static func == (left: MQTTTopicFilter, right: MQTTTopicFilter) -> Bool {
        left.filter.hasSameBytes(as: right.filter)
            && left.shareName.map(WireName.init) == right.shareName.map(WireName.init)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(shareName.map(WireName.init))
        filter.hashBytes(into: &hasher)
    }

    private static func validate(_ filter: String) throws(MQTTEncodingError) {
        guard !filter.utf8.isEmpty else { throw .topicFilterInvalid(.empty) }
        var levelLength = 0
        var wildcard: UInt8 = 0
        for byte in filter.utf8 {
            switch byte {
            case 0: throw .topicFilterInvalid(.nullCharacter)
            case UInt8(ascii: "/"):
                guard wildcard != UInt8(ascii: "#") else {
                    throw .topicFilterInvalid(.multiLevelWildcard)
                }
                levelLength = 0
                wildcard = 0
                continue
            case UInt8(ascii: "#"), UInt8(ascii: "+"):
                guard levelLength == 0 else { throw fault(of: byte) }
                wildcard = byte
            default:
                guard wildcard == 0 else { throw fault(of: wildcard) }
            }
            levelLength += 1
        }
    }

    private static func fault(of wildcard: UInt8) -> MQTTEncodingError {
        .topicFilterInvalid(
            wildcard == UInt8(ascii: "#") ? .multiLevelWildcard : .singleLevelWildcard
        )
    }

    /// Whether the filter has a wildcard.
    package var hasWildcard: Bool {
        filter.utf8.contains { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
    }

    /// The filters that topics are matched against: ``filter``, and what EMQX takes of it.
    ///
    /// EMQX reads `$queue/`, `$q/`, `$exclusive/` and `$delayed/` with seconds as options, and sends the topics without them. To
    /// other servers they are levels like any other.
    package var patterns: [String] {
        guard filter.utf8.first == UInt8(ascii: "$") else { return [filter] }
        let levels = filter.split(atByte: "/")
        let count =
            switch levels[0] {
            case "$queue", "$q", "$exclusive": 1
            case "$delayed" where levels.count > 1 && levels[1].utf8.allSatisfy(Self.isDigit): 2
            default: 0
            }
        let rest = levels.dropFirst(count).joined(separator: "/")
        return count == 0 || rest.isEmpty ? [filter] : [filter, rest]
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    /// Whether a topic exists that both filters match, in one of their ``patterns``.
    ///
    /// Filters that begin with `$` are compared with the others level by level, too, so that the answer may be yes where
    /// 4.7.2-1 excludes a match.
    package func overlaps(_ other: MQTTTopicFilter) -> Bool {
        patterns.contains { one in
            other.patterns.contains { Self.overlap(one, $0) }
        }
    }

    private static func overlap(_ filter: String, _ other: String) -> Bool {
        let separator = UInt8(ascii: "/")
        let left = filter.utf8.split(separator: separator, omittingEmptySubsequences: false)
        let right = other.utf8.split(separator: separator, omittingEmptySubsequences: false)
        func isWildcard(_ level: Substring.UTF8View, _ wildcard: Unicode.Scalar) -> Bool {
            level.count == 1 && level.first == UInt8(ascii: wildcard)
        }
        for (one, another) in zip(left, right) {
            if isWildcard(one, "#") || isWildcard(another, "#") { return true }
            if isWildcard(one, "+") || isWildcard(another, "+") { continue }
            guard one.elementsEqual(another) else { return false }
        }
        // `a/#` matches `a`, too (4.7.1.2).
        let rest = left.count < right.count ? right[left.count...] : left[right.count...]
        return rest.isEmpty || (rest.count == 1 && rest.allSatisfy { isWildcard($0, "#") })
    }

    /// Whether the filter matches a topic.
    ///
    /// A filter that begins with a wildcard does not match topics that begin with `$` (4.7.2-1).
    package func matches(_ topic: String) -> Bool {
        var trie = MQTTTopicTrie<Bool>()
        for pattern in patterns { trie[pattern] = true }
        var isMatch = false
        trie.forEachMatch(of: topic) { isMatch = isMatch || $0 }
        return isMatch
    }
}
