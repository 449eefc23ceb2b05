/// Checks bytes as text: whether they are well-formed UTF-8 (Unicode 15, table 3-7), and whether they are equal.
@usableFromInline
package enum UTF8Validation {
    package struct Result: Equatable, Sendable {
        /// Whether all bytes form well-formed UTF-8: no surrogates, no overlong forms.
        package var isWellFormed: Bool
        /// Whether the bytes contain a U+0000.
        package var containsNull: Bool
    }

    /// Scans the bytes once.
    ///
    /// - Complexity: O(n); eight or 32 bytes at a time as long as they are ASCII.
    package static func scan(_ bytes: UnsafeRawBufferPointer) -> Result {
        var containsNull = false
        var index = 0
        let count = bytes.count
        while index < count {
            if count - index >= 8 {
                // In bounds: eight bytes are left.
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if word & 0x8080_8080_8080_8080 == 0 {
                    // A test for a zero byte: if no high bit is set, a borrow reaches a high bit only from a zero byte.
                    if (word &- 0x0101_0101_0101_0101) & 0x8080_8080_8080_8080 != 0 {
                        containsNull = true
                    }
                    index += 8
                    while count - index >= 32, isPlainASCII(bytes, at: index) { index += 32 }
                    continue
                }
            }
            let lead = bytes[index]
            if lead < 0x80 {
                if lead == 0 { containsNull = true }
                index += 1
                continue
            }
            guard let length = sequenceLength(bytes, at: index, lead: lead) else {
                return Result(isWellFormed: false, containsNull: containsNull)
            }
            index += length
        }
        return Result(isWellFormed: true, containsNull: containsNull)
    }

    /// Whether 32 bytes are ASCII without U+0000.
    ///
    /// - Precondition: At least 32 bytes follow the index.
    @inline(__always)
    private static func isPlainASCII(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Bool {
        // In bounds by the precondition.
        let first = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        let second = bytes.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self)
        let third = bytes.loadUnaligned(fromByteOffset: index + 16, as: UInt64.self)
        let fourth = bytes.loadUnaligned(fromByteOffset: index + 24, as: UInt64.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        // A borrow reaches a high bit only from a zero byte or from a byte with its high bit set.
        let marks =
            (first | (first &- ones)) | (second | (second &- ones))
            | (third | (third &- ones)) | (fourth | (fourth &- ones))
        return marks & 0x8080_8080_8080_8080 == 0
    }

    /// Whether two texts have the same bytes.
    ///
    /// - Complexity: O(n), eight bytes at a time.
    @usableFromInline
    package static func areEqual(
        _ left: UnsafeRawBufferPointer,
        _ right: UnsafeRawBufferPointer
    ) -> Bool {
        guard left.count == right.count else { return false }
        var index = 0
        while left.count - index >= 8 {
            // In bounds: eight bytes are left in both.
            let one = left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let other = right.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard one == other else { return false }
            index += 8
        }
        if left.count >= 8 {
            // The rest, together with bytes that were already compared; in bounds: there are at least eight in total.
            let one = left.loadUnaligned(fromByteOffset: left.count - 8, as: UInt64.self)
            let other = right.loadUnaligned(fromByteOffset: left.count - 8, as: UInt64.self)
            return one == other
        }
        while index < left.count {
            guard left[index] == right[index] else { return false }
            index += 1
        }
        return true
    }

    /// The length of the multi-byte sequence at an index; nil if it is ill-formed.
    private static func sequenceLength(
        _ bytes: UnsafeRawBufferPointer,
        at index: Int,
        lead: UInt8
    ) -> Int? {
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch lead {
        case 0xC2...0xDF: length = 2
        case 0xE0:
            length = 3
            second = 0xA0...0xBF
        case 0xED:
            length = 3
            second = 0x80...0x9F
        case 0xE1...0xEF: length = 3
        case 0xF0:
            length = 4
            second = 0x90...0xBF
        case 0xF4:
            length = 4
            second = 0x80...0x8F
        case 0xF1...0xF3: length = 4
        default: return nil
        }
        guard bytes.count - index >= length, second.contains(bytes[index + 1]) else { return nil }
        for offset in 2..<max(length, 2) where bytes[index + offset] & 0xC0 != 0x80 {
            return nil
        }
        return length
    }
}
