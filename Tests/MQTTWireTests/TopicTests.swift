import MQTTWire
import Testing
import WireTestSupport

@Suite("MQTT topics") struct TopicTests {
    @Test(
        "Filters match as the specification's examples say (4.7)",
        arguments: [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true), ("#", "any/thing", true), ("#", "", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false), ("sport/+", "sport/", true),
            ("+/+", "/finance", true), ("/+", "/finance", true), ("+", "/finance", false),
            ("#", "$SYS/uptime", false), ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/uptime", true), ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
            ("ACCOUNTS", "Accounts", false), ("a/b", "a/b", true), ("a/b", "a/b/", false),
            ("a//b", "a//b", true), ("a/+/b", "a//b", true), ("+/tennis/#", "sport/tennis", true),
            ("$share/group/a/+", "a/b", true), ("$share/group/a/+", "c/b", false),
        ]
    )
    func matching(filter: String, topic: String, expected: Bool) throws {
        #expect(try MQTTTopicFilter(filter).matches(topic) == expected)
    }

    @Test(
        "Faulty filters are refused with their fault (4.7.1, 4.8.2)",
        arguments: [
            ("", MQTTTopicFilter.Fault.empty), ("a\0b", .nullCharacter),
            ("sport/tennis#", .multiLevelWildcard), ("sport/tennis/#/ranking", .multiLevelWildcard),
            ("#/", .multiLevelWildcard), ("##", .multiLevelWildcard),
            ("sport+", .singleLevelWildcard),
            ("a/+b", .singleLevelWildcard), ("++", .singleLevelWildcard), ("$share/", .shareName),
            ("$share/group", .shareName), ("$share//a", .shareName), ("$share/g+/a", .shareName),
            ("$share/g/", .shareName), ("$share/g#/a", .shareName),
        ]
    )
    func faults(filter: String, fault: MQTTTopicFilter.Fault) {
        #expect(throws: MQTTEncodingError.topicFilterInvalid(fault)) { try MQTTTopicFilter(filter) }
    }

    @Test("Length limits are in bytes")
    func lengths() throws {
        let longest = String(repeating: "é", count: 32_767) + "x"
        #expect(longest.utf8.count == 65_535)
        _ = try MQTTTopicFilter(longest)
        try MQTTTopicName.validate(longest)
        #expect(throws: MQTTEncodingError.topicFilterInvalid(.tooLong)) {
            try MQTTTopicFilter(longest + "x")
        }
        #expect(throws: MQTTEncodingError.fieldTooLong("topic name")) {
            try MQTTTopicName.validate(longest + "x")
        }
        #expect(try MQTTTopicFilter("$share/g/a/b").shareName == "g")
        #expect(try MQTTTopicFilter("$share/g/a/b").filter == "a/b")
    }

    /// The matching rules once more, in the plainest form, to compare with.
    private func naive(_ filter: [Substring], _ topic: [Substring]) -> Bool {
        if filter.first == "#" { return true }
        guard let level = filter.first else { return topic.isEmpty }
        guard let name = topic.first else { return false }
        guard level == "+" || level == name else { return false }
        if topic.count == 1, filter.dropFirst().first == "#" { return true }
        return naive(Array(filter.dropFirst()), Array(topic.dropFirst()))
    }

    @Test("The trie agrees with the plain rules while filters come and go, seed 31")
    func trie() {
        var generator = SeededGenerator(seed: 31)
        var trie = MQTTTopicTrie<String>()
        var filters: Set<String> = []
        func path(_ choices: [String]) -> [String] {
            (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                choices.randomElement(using: &generator) ?? ""
            }
        }
        for _ in 0..<(Mutations.isExtended ? 5_000 : 1_000) {
            var levels = path(["a", "b", "c", "+", ""])
            if Bool.random(using: &generator) { levels.append("#") }
            let filter = levels.joined(separator: "/")
            if filter.isEmpty { continue }
            if Bool.random(using: &generator) {
                trie[filter] = filter
                filters.insert(filter)
            } else {
                trie[filter] = nil
                filters.remove(filter)
            }
            #expect(trie.count == filters.count)
            let topic = path(["a", "b", "c", ""]).joined(separator: "/")
            if topic.isEmpty { continue }
            var found: [String] = []
            trie.forEachMatch(of: topic) { found.append($0) }
            let expected = filters.filter { filter in
                let split = { (text: String) in
                    text.split(separator: "/", omittingEmptySubsequences: false)
                }
                return naive(split(filter), split(topic))
            }
            #expect(found.sorted() == expected.sorted(), "topic \(topic)")
        }
        for filter in filters { trie[filter] = nil }
        #expect(trie.isEmpty)
    }

    @Test("A filter of thirty thousand levels needs no stack")
    func deep() {
        let filter = String(repeating: "+/", count: 32_767) + "#"
        let topic = String(repeating: "/", count: 32_768)
        var trie = MQTTTopicTrie<Int>()
        trie[filter] = 1
        var count = 0
        trie.forEachMatch(of: topic) { count += $0 }
        #expect(count == 1)
        trie[filter] = nil
        #expect(trie.isEmpty)
    }
}
