import Testing
import WireCore
import WireTestSupport

@Suite("Names as bytes") struct WireNameTests {
    @Test("Names that Swift takes for equal are different keys", arguments: LookalikeNames.all)
    func lookalikes(names: LookalikeNames) {
        #expect(names.one == names.other)
        let (one, other) = (WireName(names.one), WireName(names.other))
        #expect(one != other)
        #expect(one == WireName(String(decoding: Array(names.one.utf8), as: UTF8.self)))
        #expect((one < other) != (other < one))
        var table: [WireName: Int] = [one: 1, other: 2]
        #expect(table[names.one] == 1 && table[names.other] == 2)
        table[names.one] = nil
        #expect(table[names.one] == nil && table[names.other] == 2)
        #expect(Set([one, other]).count == 2)
        #expect(Set([one]).contains(names.one))
        #expect(!Set([one]).contains(names.other))
        let headers = [
            NamedValue(name: names.one, value: ""), NamedValue(name: names.other, value: ""),
        ]
        #expect(Set(headers).count == 2)
    }

    @Test("Texts of any length are compared to the last byte, and hashed alike")
    func lengths() {
        for count in [0, 1, 7, 8, 9, 15, 16, 17, 31, 64, 1_000] {
            let text = String(repeating: "x", count: count)
            let copy = Substring(text + "y").dropLast()
            #expect(text.hasSameBytes(as: text))
            #expect(text.hasSameBytes(as: copy))
            #expect(WireName(text).hashValue == WireName(String(copy)).hashValue)
            #expect(!text.hasSameBytes(as: text + "x"))
            guard count > 0 else { continue }
            #expect(!text.hasSameBytes(as: text.dropLast() + "z"))
            #expect(!text.hasSameBytes(as: "z" + text.dropFirst()))
        }
    }

    @Test("Prefixes, suffixes and separators stand where their bytes stand")
    func parts() {
        // A combining mark after a character makes one new character of both.
        let marked = "/queue/\u{301}a"
        #expect(!marked.hasPrefix("/queue/"))
        #expect(marked.hasBytePrefix("/queue/"))
        #expect(!"a".hasBytePrefix("ab"))
        #expect("a.\u{E9}".hasByteSuffix("\u{E9}"))
        #expect(!"a.e\u{301}".hasByteSuffix("\u{E9}"))
        #expect(marked.split(atByte: "/") == ["", "queue", "\u{301}a"])
        #expect("".split(atByte: "/") == [""])
        #expect("a=b=c".split(atByte: "=", maxSplits: 1) == ["a", "b=c"])
    }

    @Test("Only ASCII letters have a case")
    func cases() {
        #expect("Content-TYPE".hasSameBytesIgnoringASCIICase(as: "content-type"))
        // U+212A, the Kelvin sign, becomes "k" in Unicode's lower case.
        #expect("\u{212A}ey".lowercased() == "key")
        #expect(!"\u{212A}ey".hasSameBytesIgnoringASCIICase(as: "key"))
        #expect("\u{212A}EY".asciiLowercased.hasSameBytes(as: "\u{212A}ey"))
        #expect(!"\u{C9}".hasSameBytesIgnoringASCIICase(as: "\u{E9}"))
    }
}
