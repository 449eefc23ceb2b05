/// Reads fields one after another from bytes that the caller keeps valid.
///
/// Every read checks the bounds. Past the end it returns nil and consumes nothing. A reader must not outlive the call
/// that lent the bytes.
@usableFromInline
package struct ByteReader {
    @usableFromInline let bytes: UnsafeRawBufferPointer

    /// The offset of the next byte to read.
    @usableFromInline package internal(set) var position = 0

    @inlinable
    package init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// The number of unread bytes.
    @inlinable
    package var remaining: Int { bytes.count - position }

    @inlinable
    package mutating func readUInt8() -> UInt8? {
        guard remaining >= 1 else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    /// Reads a two-byte integer in network order.
    @inlinable
    package mutating func readUInt16() -> UInt16? {
        guard remaining >= 2 else { return nil }
        defer { position += 2 }
        return UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt16.self))
    }

    /// Reads a four-byte integer in network order.
    @inlinable
    package mutating func readUInt32() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { position += 4 }
        return UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    }

    /// Reads a number of bytes; the result is valid only as long as the lent bytes.
    @inlinable
    package mutating func readBytes(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, remaining >= count else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }
}
