/// Base 64 (RFC 4648, 4), for credentials and for the keys of handshakes.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    /// The padded text for bytes.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let word = (0..<3).reduce(UInt32(0)) { word, index in
                word << 8 | (index < group.count ? UInt32(group[start + index]) : 0)
            }
            for index in 0..<4 {
                let isFilled = index <= group.count
                let digit = alphabet[Int(word >> (18 - 6 * UInt32(index)) & 0x3F)]
                text.append(isFilled ? digit : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Whether a text is the canonical encoding of a number of bytes.
    package static func isEncoding(_ text: String, ofByteCount count: Int) -> Bool {
        let digits = Array(text.utf8.prefix { $0 != UInt8(ascii: "=") })
        let padding = text.utf8.count - digits.count
        guard text.utf8.count == (count + 2) / 3 * 4, padding == (3 - count % 3) % 3,
            text.utf8.suffix(padding).allSatisfy({ $0 == UInt8(ascii: "=") }),
            digits.allSatisfy(alphabet.contains), let last = digits.last,
            let value = alphabet.firstIndex(of: last)
        else { return false }
        // The bits beyond the last byte must be zero.
        return value & ((1 << (2 * padding)) - 1) == 0
    }

    /// The bytes of a text; nil unless the text is canonical, with padding and without white space.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        let digits = text.prefix { $0 != UInt8(ascii: "=") }
        let padding = text.dropFirst(digits.count)
        guard padding.count < 3, padding.allSatisfy({ $0 == UInt8(ascii: "=") }) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var (word, bitCount) = (UInt32(0), UInt32(0))
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            word = word << 6 | value
            bitCount += 6
            guard bitCount >= 8 else { continue }
            bitCount -= 8
            bytes.append(UInt8(word >> bitCount & 0xFF))
            word &= (1 << bitCount) - 1
        }
        // The bits beyond the last byte must be zero.
        return word == 0 ? bytes : nil
    }

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
