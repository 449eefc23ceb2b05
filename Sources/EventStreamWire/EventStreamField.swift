/// The field that a line sets (HTML Standard, 9.2.6).
enum EventStreamField {
    case data, event, id, retry
    /// A comment, or a field without a meaning.
    case other

    /// Reads the name of the field at the front of a line.
    ///
    /// - Parameter line: A line, not empty, without its end.
    /// - Returns: The field, and the offset of its value: after the colon and one space.
    static func read(_ line: UnsafeRawBufferPointer) -> (field: EventStreamField, valueStart: Int) {
        // The usual field first; in bounds: there are more than four bytes.
        if line.count > 4,
            UInt32(littleEndian: line.loadUnaligned(as: UInt32.self)) == dataLetters,
            line[4] == UInt8(ascii: ":")
        {
            return (.data, line.count > 5 && line[5] == UInt8(ascii: " ") ? 6 : 5)
        }
        return switch line[0] {
        case UInt8(ascii: "d"): value(of: .data, "data", line)
        case UInt8(ascii: "e"): value(of: .event, "event", line)
        case UInt8(ascii: "i"): value(of: .id, "id", line)
        case UInt8(ascii: "r"): value(of: .retry, "retry", line)
        default: (.other, line.count)
        }
    }

    /// The letters `data`, the first one lowest.
    private static let dataLetters: UInt32 = 0x6174_6164

    private static func value(
        of field: EventStreamField,
        _ name: StaticString,
        _ line: UnsafeRawBufferPointer
    ) -> (EventStreamField, Int) {
        let count = name.utf8CodeUnitCount
        guard line.count >= count else { return (.other, line.count) }
        // In bounds: both have `count` bytes.
        for index in 0..<count where line[index] != name.utf8Start[index] {
            return (.other, line.count)
        }
        // The line consists of the name only: the value is empty.
        guard line.count > count else { return (field, line.count) }
        guard line[count] == UInt8(ascii: ":") else { return (.other, line.count) }
        let hasSpace = line.count > count + 1 && line[count + 1] == UInt8(ascii: " ")
        return (field, count + (hasSpace ? 2 : 1))
    }
}

/// Finds the ends of lines: a carriage return or a line feed (HTML Standard, 9.2.5).
enum LineEnd {
    /// The position of the first end from an offset on.
    ///
    /// - Complexity: O(n), eight bytes at a time.
    static func firstIndex(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        let count = bytes.count
        while count - index >= 8 {
            // In bounds: eight bytes are left.
            let word = UInt64(
                littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            )
            let hits = zeros(word ^ 0x0A0A_0A0A_0A0A_0A0A) | zeros(word ^ 0x0D0D_0D0D_0D0D_0D0D)
            if hits != 0 { return index + hits.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < count {
            if bytes[index] == 0x0A || bytes[index] == 0x0D { return index }
            index += 1
        }
        return nil
    }

    /// The high bit of the lowest zero byte, and possibly of bytes above it.
    private static func zeros(_ word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }
}
