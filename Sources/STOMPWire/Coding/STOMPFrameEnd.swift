import WireCore

/// Finds where frames end.
package enum STOMPFrameEnd {
    /// The length of the first unit of outbound bytes: a frame through its NUL, or one heart-beat.
    ///
    /// A WebSocket carries one unit in each message. The bytes must be those of our own encoder and
    /// begin with a unit: it writes content-length as the first header of every frame with a body,
    /// ends lines with LF and lets no NUL into a head, so a glance at the head is enough.
    ///
    /// - Parameter bytes: What waits to be sent.
    /// - Returns: The length in bytes; 0 when the unit is not complete.
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
            // What our encoder wrote is a count of bytes in memory, so it does not overflow.
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

    /// Where the first NUL lies, from an offset on.
    /// - Complexity: O(n), eight bytes at a time.
    static func firstNull(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while bytes.count - index >= 8 {
            // In bounds: eight bytes are left. The classic test: it may cry wolf only for bytes
            // above a zero, so a word without a hit has no zero.
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
