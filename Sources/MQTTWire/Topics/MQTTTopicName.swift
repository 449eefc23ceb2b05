/// The name that a message is published under (MQTT 5, 4.7).
package enum MQTTTopicName {
    /// The longest name: 65,535 bytes of UTF-8.
    static let maximumByteCount = 65_535

    /// Checks a name before it is sent.
    ///
    /// - Throws: `topicNameEmpty`, `fieldTooLong`, `nullCharacter` or `topicNameHasWildcard`.
    package static func validate(_ name: String) throws(MQTTEncodingError) {
        guard !name.utf8.isEmpty else { throw .topicNameEmpty }
        guard name.utf8.count <= maximumByteCount else { throw .fieldTooLong("topic name") }
        for byte in name.utf8 where isForbidden(byte) {
            throw byte == 0 ? .nullCharacter("topic name") : .topicNameHasWildcard
        }
    }

    /// The first byte that a name must not hold: NUL or a wildcard; nil if there is none.
    ///
    /// - Complexity: O(n), eight bytes at a time.
    static func firstForbidden(in bytes: UnsafeRawBufferPointer) -> UInt8? {
        var index = 0
        while bytes.count - index >= 8 {
            // In bounds: eight bytes are left.
            if hasForbidden(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { break }
            index += 8
        }
        if bytes.count - index < 8, bytes.count >= 8 {
            // The rest, together with bytes that were already checked; in bounds: there are at least eight in total.
            let word = bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
            if !hasForbidden(word) { return nil }
        }
        while index < bytes.count {
            if isForbidden(bytes[index]) { return bytes[index] }
            index += 1
        }
        return nil
    }

    /// Whether a word has a forbidden byte; `#` and `+` differ in one bit, which is masked out.
    private static func hasForbidden(_ word: UInt64) -> Bool {
        let bit = UInt8(ascii: "#") ^ UInt8(ascii: "+")
        let wildcards = (word & ~repeated(bit)) ^ repeated(UInt8(ascii: "#") & ~bit)
        return (zeroBytes(word) | zeroBytes(wildcards)) != 0
    }

    private static func repeated(_ byte: UInt8) -> UInt64 {
        UInt64(byte) &* 0x0101_0101_0101_0101
    }

    /// Not zero if a byte is zero: a borrow reaches a high bit only from a zero byte.
    private static func zeroBytes(_ word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }

    /// Whether a byte is NUL or a wildcard.
    @inlinable
    static func isForbidden(_ byte: UInt8) -> Bool {
        byte == 0 || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "+")
    }
}
