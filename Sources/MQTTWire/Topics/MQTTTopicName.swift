/// The name that a message is published under (MQTT 5, 4.7).
package enum MQTTTopicName {
    /// The longest name: 65,535 bytes of UTF-8.
    static let maximumByteCount = 65_535

    /// Checks a name before it is sent.
    /// - Throws: `topicNameEmpty`, `fieldTooLong`, `nullCharacter` or `topicNameHasWildcard`.
    package static func validate(_ name: String) throws(MQTTEncodingError) {
        guard !name.utf8.isEmpty else { throw .topicNameEmpty }
        guard name.utf8.count <= maximumByteCount else { throw .fieldTooLong("topic name") }
        for byte in name.utf8 where isForbidden(byte) {
            throw byte == 0 ? .nullCharacter("topic name") : .topicNameHasWildcard
        }
    }

    /// Whether a byte is NUL or a wildcard.
    @inlinable
    static func isForbidden(_ byte: UInt8) -> Bool {
        byte == 0 || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "+")
    }
}
