/// Validates text that arrives in pieces, and fails at the first byte that cannot be valid at its place.
///
/// It follows table 3-7 of Unicode 15: no surrogates, no overlong forms, nothing beyond U+10FFFF.
package struct UTF8StreamValidator: Hashable, Sendable {
    /// The number of missing bytes of the current character.
    private var missing = 0
    /// The range of the next byte.
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF

    package init() {}

    /// Whether no character is incomplete, so that the text may end here.
    package var isComplete: Bool { missing == 0 }

    /// Takes the next bytes.
    ///
    /// - Returns: Whether the text can still be valid; after false, the validator must not be used again.
    /// - Complexity: O(n), eight bytes at a time as long as they are ASCII.
    package mutating func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        let count = bytes.count
        while index < count {
            if missing == 0 {
                while count - index >= 8,
                    // In bounds: eight bytes are left.
                    bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                        & 0x8080_8080_8080_8080 == 0
                {
                    index += 8
                }
                guard index < count else { return true }
                guard begin(bytes[index]) else { return false }
            } else {
                let byte = bytes[index]
                guard byte >= lower, byte <= upper else { return false }
                missing -= 1
                lower = 0x80
                upper = 0xBF
            }
            index += 1
        }
        return true
    }

    /// Takes the first byte of a character.
    private mutating func begin(_ lead: UInt8) -> Bool {
        switch lead {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0:
            missing = 2
            lower = 0xA0
        case 0xED:
            missing = 2
            upper = 0x9F
        case 0xE1...0xEF: missing = 2
        case 0xF0:
            missing = 3
            lower = 0x90
        case 0xF4:
            missing = 3
            upper = 0x8F
        case 0xF1...0xF3: missing = 3
        default: return false
        }
        return true
    }
}
