import WireCore

/// Finds the ends of frames.
package enum STOMPFrameEnd {
    /// The length of the first unit of outbound bytes: a frame including its NUL, or a heart-beat.
    ///
    /// A WebSocket carries one unit per message. The bytes must come from this package's encoder and begin with a unit.
    /// The encoder writes content-length as the first header of every frame with a body, ends lines with LF, and allows
    /// no NUL in a head. The first lines of the head are therefore enough.
    ///
    /// - Parameter bytes: The bytes to send.
    /// - Returns: The length in bytes; 0 if the unit is incomplete.
    package static func unitLength(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let first = bytes.first else { return 0 }
        guard first != UInt8(ascii: "\n") else { return 1 }
        guard let lineEnd = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return 0 }
        let label: StaticString = "content-length:"
        let start = lineEnd + 1
        let labelEnd = start + label.utf8CodeUnitCount
        guard bytes.count >= labelEnd,
            label.isEqual(to: UnsafeRawBufferPointer(rebasing: bytes[start..<labelEnd]))
        else { return firstNull(in: bytes, from: start).map { $0 + 1 } ?? 0 }
        var length = 0
        var index = labelEnd
        while index < bytes.count, bytes[index] != UInt8(ascii: "\n") {
            // The encoder wrote the size of a body in memory, so the number does not overflow.
            length = length &* 10 &+ Int(bytes[index] &- UInt8(ascii: "0"))
            index += 1
        }
        while index + 1 < bytes.count {
            if bytes[index] == UInt8(ascii: "\n"), bytes[index + 1] == UInt8(ascii: "\n") {
                let total = (index + 3).addingReportingOverflow(length)
                guard !total.overflow, total.partialValue >= 0 else { return 0 }
                return total.partialValue <= bytes.count ? total.partialValue : 0
            }
            index += 1
        }
        return 0
    }

    /// The position of the first NUL from an offset on.
    ///
    /// - Complexity: O(n), eight bytes at a time.
    static func firstNull(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while bytes.count - index >= 8 {
            // In bounds: eight bytes are left. The test may report false hits only above a zero byte, so a word without
            // a hit has no zero byte.
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let hit = (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
            if hit != 0 { break }
            index += 8
        }
        while index < bytes.count {
            if bytes[index] == 0 { return index }
            index += 1
        }
        return nil
    }
}
