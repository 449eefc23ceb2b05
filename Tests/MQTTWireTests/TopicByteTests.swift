import MQTTWire
import Testing
import WireTestSupport

/// Topics are UTF-8 strings that are compared byte by byte, without normalisation (MQTT 5, 4.7.3).
@Suite("MQTT topics as bytes") struct TopicByteTests {
    @Test("Names that look alike match themselves alone", arguments: LookalikeNames.all)
    func lookalikes(names: LookalikeNames) throws {
        for prefix in ["", "a/", "+/", "a/+/", "$share/g/"] {
            for suffix in ["", "/b", "/#", "/+"] {
                let filter = prefix + names.one + suffix
                let base = prefix.hasPrefix("$") ? "" : prefix.replacing("+", with: "q")
                let end = suffix.replacing("#", with: "r").replacing("+", with: "r")
                let parsed = try MQTTTopicFilter(filter)
                #expect(parsed.matches(base + names.one + end), "\(filter)")
                #expect(!parsed.matches(base + names.other + end), "\(filter)")
                #expect(try parsed != MQTTTopicFilter(prefix + names.other + suffix))
            }
        }
    }

    @Test("A trie keeps filters that look alike apart, and removes one alone")
    func trie() {
        for names in LookalikeNames.all {
            for suffix in ["", "/+", "/#"] {
                var trie = MQTTTopicTrie<Int>()
                trie[names.one + suffix] = 1
                trie[names.other + suffix] = 2
                #expect(trie.count == 2)
                #expect(trie[names.one + suffix] == 1 && trie[names.other + suffix] == 2)
                trie[names.one + suffix] = nil
                #expect(trie[names.one + suffix] == nil && trie[names.other + suffix] == 2)
                #expect(trie.count == 1)
            }
        }
    }

    @Test(
        "A slash is a separator, whatever stands behind it",
        arguments: [
            ("t/+", "t/\u{301}", true), ("t/\u{301}", "t/\u{301}", true),
            ("t/#", "t/\u{301}", true),
            ("+", "t/\u{301}", false), ("+/\u{301}", "t/\u{301}", true), ("#", "t/\u{301}", true),
            ("t/\u{301}/+", "t/\u{301}/\u{308}", true), ("t/+", "t/a/\u{301}", false),
            ("+/+", "/\u{301}", true),
        ]
    )
    func separators(filter: String, topic: String, expected: Bool) throws {
        #expect(try MQTTTopicFilter(filter).matches(topic) == expected)
    }
}
