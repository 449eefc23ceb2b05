/// Outbound bytes: encoders append them, and the link takes them from the front.
///
/// Integers are written in network order (big endian).
@usableFromInline
package struct ByteWriter: Sendable {
    @usableFromInline var storage: ByteStorage
    @usableFromInline var start = 0
    @usableFromInline var end = 0

    /// Creates an empty writer; without a capacity it allocates no memory until something is written.
    package init(capacity: Int = 0) {
        storage = capacity > 0 ? ByteStorage(capacity: capacity) : .none
    }

    package var hasMemory: Bool { storage.capacity > 0 }

    /// The number of waiting bytes.
    @inlinable
    package var count: Int { end - start }

    @inlinable
    package var isEmpty: Bool { start == end }

    /// A copy of the waiting bytes.
    package var bytes: [UInt8] {
        withUnsafeBytes { Array($0) }
    }

    /// Calls `body` with the waiting bytes, which must not be used after it returns.
    @inlinable
    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // In bounds: 0 <= start <= end <= capacity always holds.
        defer { withExtendedLifetime(storage) {} }
        return try body(UnsafeRawBufferPointer(start: storage.base + start, count: end - start))
    }

    /// Removes bytes from the front.
    package mutating func consume(_ count: Int) {
        start = min(start + max(count, 0), end)
        if start == end { removeAll() }
    }

    /// Removes all bytes after a length.
    package mutating func truncate(to count: Int) {
        end = start + min(max(count, 0), end - start)
    }

    /// Removes all bytes and keeps the memory.
    @inlinable
    package mutating func removeAll() {
        start = 0
        end = 0
    }

    /// Releases memory above a size, if no byte is waiting.
    package mutating func releaseExcess(above capacity: Int) {
        guard isEmpty, storage.capacity > capacity else { return }
        storage = ByteStorage(capacity: capacity)
    }

    /// Takes a copy of the waiting bytes, and empties the writer.
    package mutating func takeBytes() -> [UInt8] {
        defer { removeAll() }
        return bytes
    }

    /// Takes the waiting bytes without copying them; the writer continues with new memory.
    package mutating func takeSlice() -> ByteSlice {
        defer { self = ByteWriter() }
        return ByteSlice(storage: storage, offset: start, count: count)
    }

    /// Appends bytes that a closure writes into a lent space.
    ///
    /// - Parameters:
    ///   - count: The size of the space in bytes.
    ///   - fill: Writes into the space and returns the number of bytes to keep from its start.
    @inlinable
    package mutating func append(
        upTo count: Int,
        _ fill: (UnsafeMutableRawBufferPointer) -> Int
    ) {
        guard count > 0 else { return }
        // In bounds: `reserve` has made room for `count` bytes at `end`, in memory that no slice shares.
        let space = UnsafeMutableRawBufferPointer(start: reserve(count), count: count)
        end += min(max(fill(space), 0), count)
    }

    @inlinable
    @inline(__always)
    package mutating func append(_ byte: UInt8) {
        // In bounds: `reserve` has made room for one byte at `end`.
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        end += 1
    }

    /// Appends a two-byte integer.
    @inlinable
    package mutating func append(_ value: UInt16) {
        // In bounds: `reserve` has made room for two bytes at `end`.
        reserve(2).storeBytes(of: value.bigEndian, as: UInt16.self)
        end += 2
    }

    /// Appends a four-byte integer.
    @inlinable
    package mutating func append(_ value: UInt32) {
        // In bounds: `reserve` has made room for four bytes at `end`.
        reserve(4).storeBytes(of: value.bigEndian, as: UInt32.self)
        end += 4
    }

    /// Appends the lowest bytes of an integer, the lowest first.
    ///
    /// - Parameters:
    ///   - count: The number of bytes, at most eight.
    ///   - word: The integer.
    @inlinable
    @inline(__always)
    package mutating func append(lowBytes count: Int, of word: UInt64) {
        // In bounds: `reserve` has made room for eight bytes at `end`, of which `count` are kept.
        reserve(8).storeBytes(of: word.littleEndian, as: UInt64.self)
        end += min(max(count, 0), 8)
    }

    @inlinable
    @inline(__always)
    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        // In bounds: `reserve` has made room for all bytes at `end`, in memory that no slice shares.
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        end += bytes.count
    }

    /// Appends a copy of bytes.
    package mutating func append(contentsOf bytes: some Sequence<UInt8>) {
        let isDone: Void? = bytes.withContiguousStorageIfAvailable {
            append(UnsafeRawBufferPointer($0))
        }
        if isDone == nil { for byte in bytes { append(byte) } }
    }

    /// Appends the bytes of a source.
    @inlinable
    package mutating func append(_ source: some WireBytes) {
        source.withWireBytes { append($0) }
    }

    /// Makes room for a number of further bytes.
    @inlinable
    package mutating func reserve(total count: Int) {
        _ = reserve(count)
    }

    /// Makes room for `count` further bytes and returns their address.
    @inlinable
    mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
        if storage.capacity - end < count || !isKnownUniquelyReferenced(&storage) {
            grow(by: count)
        }
        return storage.base + end
    }

    @usableFromInline
    mutating func grow(by count: Int) {
        let waiting = end - start
        // At least enough for a few packets.
        let fresh = ByteStorage(capacity: max(waiting + count, storage.capacity * 2, 256))
        // In bounds on both sides: `waiting` bytes lie at `start`, and fit in the fresh memory.
        fresh.base.copyMemory(from: storage.base + start, byteCount: waiting)
        storage = fresh
        start = 0
        end = waiting
    }
}
