import WireCore

/// Writes one JSON object (RFC 8259) in one line of UTF-8.
///
/// Keys are literals of this package. Values of text are escaped, also the control characters that JSON allows, so that a
/// terminal that shows the line does not interpret them.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    private var isFirst = true

    /// Begins an object.
    mutating func open() {
        bytes.append(UInt8(ascii: "{"))
        isFirst = true
    }

    /// Ends the object and the line.
    mutating func close() {
        bytes.append(UInt8(ascii: "}"))
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Removes what was written, and keeps the memory.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Removes what was written after a number of bytes.
    mutating func truncate(to count: Int) { bytes.removeLast(bytes.count - count) }

    /// Adds a value that is JSON already, such as a number.
    mutating func add(_ key: StaticString, raw value: String) {
        begin(key)
        bytes.append(contentsOf: value.utf8)
    }

    /// Adds a text.
    mutating func add(_ key: StaticString, _ value: String) {
        begin(key)
        bytes.append(UInt8(ascii: "\""))
        var value = value
        value.withUTF8 { append($0) }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func begin(_ key: StaticString) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        key.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func append(_ text: UnsafeBufferPointer<UInt8>) {
        guard text.contains(where: Self.isSpecial) else { return bytes.append(contentsOf: text) }
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: Array("\\n".utf8))
            case 0..<0x20, 0x7F: escape(byte)
            // C1, which is C2 80 to C2 9F in UTF-8.
            case 0xC2 where index < text.count && text[index] < 0xA0:
                escape(text[index])
                index += 1
            default: bytes.append(byte)
            }
        }
    }

    private static func isSpecial(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7F
            || byte == 0xC2
    }

    private mutating func escape(_ code: UInt8) {
        let digits = Array("0123456789abcdef".utf8)
        bytes.append(contentsOf: Array("\\u00".utf8))
        bytes.append(digits[Int(code >> 4)])
        bytes.append(digits[Int(code & 0xF)])
    }
}
