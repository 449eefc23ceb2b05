import Testing
import WireCore
import WireTestSupport

@Suite("UTF-8 validation") struct UTF8ValidationTests {
    private func scan(_ bytes: [UInt8]) -> UTF8Validation.Result {
        bytes.withUnsafeBytes { UTF8Validation.scan($0) }
    }

    /// The standard library's validation, to compare with.
    private func isWellFormed(_ bytes: [UInt8]) -> Bool {
        Array(String(decoding: bytes, as: UTF8.self).utf8) == bytes
    }

    @Test("One and two bytes, exhaustively")
    func short() {
        for first in UInt8.min...UInt8.max {
            #expect(scan([first]).isWellFormed == (first < 0x80))
            for second in UInt8.min...UInt8.max {
                let isPair = (0xC2...0xDF).contains(first) && (0x80...0xBF).contains(second)
                let isASCII = first < 0x80 && second < 0x80
                #expect(scan([first, second]).isWellFormed == (isPair || isASCII))
            }
        }
    }

    @Test("Borders of longer sequences agree with the standard library")
    func borders() {
        let interesting: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
        for lead in UInt8(0xE0)...UInt8(0xF5) {
            for second in interesting {
                for third in interesting {
                    let three = [lead, second, third]
                    #expect(scan(three).isWellFormed == isWellFormed(three), "\(Hex.text(three))")
                    for fourth in interesting {
                        let four = three + [fourth]
                        #expect(scan(four).isWellFormed == isWellFormed(four), "\(Hex.text(four))")
                    }
                }
            }
        }
    }

    @Test("Random bytes and text agree with the standard library, seed 21")
    func random() {
        var generator = SeededGenerator(seed: 21)
        for _ in 0..<5_000 {
            var bytes = Array("Grüße, 世界! 🌍 and plain text ".utf8)
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            let result = scan(bytes)
            #expect(result.isWellFormed == isWellFormed(bytes), "\(Hex.text(bytes))")
            if result.isWellFormed { #expect(result.containsNull == bytes.contains(0)) }
        }
    }

    @Test("Texts are the same if all their bytes are, at every length and place")
    func equality() {
        for count in 0..<40 {
            let one = (0..<count).map { UInt8($0) }
            #expect(areEqual(one, one))
            #expect(!areEqual(one, one + [0]))
            for index in one.indices {
                var other = one
                other[index] ^= 1
                #expect(!areEqual(one, other))
            }
        }
    }

    private func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.withUnsafeBytes { left in
            other.withUnsafeBytes { right in UTF8Validation.areEqual(left, right) }
        }
    }
}
