/// The bytes that have arrived and are not decoded yet.
///
/// A driver reads into the buffer, and a core decodes from its front. Payloads are returned as ``ByteSlice`` values
/// that share the buffer's memory, so decoding copies nothing. If slices are still alive at the next read, the buffer
/// moves to new memory and leaves the old memory to them.
@usableFromInline
package struct ReceiveBuffer: Sendable {
    @usableFromInline var storage: ByteStorage
    @usableFromInline var start = 0
    @usableFromInline var end = 0
    private let initialCapacity: Int

    /// Creates an empty buffer.
    ///
    /// - Parameter capacity: The minimum size of a read in bytes.
    package init(capacity: Int = 65_536) {
        initialCapacity = max(capacity, 16)
        storage = ByteStorage.none
    }

    /// Releases the memory if no bytes wait, so that an idle connection has none.
    package mutating func release() {
        guard start == end, storage !== ByteStorage.none else { return }
        SpareStorage.give(&storage)
        start = 0
        end = 0
    }

    /// The number of bytes to decode.
    @inlinable
    package var count: Int { end - start }

    /// Calls `body` with the waiting bytes, which must not be used after it returns.
    @inlinable
    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // In bounds: 0 <= start <= end <= capacity always holds.
        defer { withExtendedLifetime(storage) {} }
        return try body(UnsafeRawBufferPointer(start: storage.base + start, count: end - start))
    }

    /// A range of the waiting bytes, clamped to the available ones.
    @inlinable
    package func slice(at offset: Int, count: Int) -> ByteSlice {
        let lower = start + min(max(offset, 0), self.count)
        let length = min(max(count, 0), end - lower)
        guard length > 0 else { return .empty }
        return ByteSlice(storage: storage, offset: lower, count: length)
    }

    /// The memory of the buffer as far as it is filled, which includes bytes that were removed.
    package var filled: ByteSlice { ByteSlice(storage: storage, offset: 0, count: end) }

    /// The place of the front in the memory.
    package var position: Int { start }

    /// Removes bytes from the front.
    @inlinable
    package mutating func consume(_ count: Int) {
        start = min(start + max(count, 0), end)
    }

    package mutating func removeAll() {
        start = end
    }

    /// Lends free space to a reader and keeps the bytes that it wrote.
    ///
    /// - Parameters:
    ///   - minimum: The minimum size of the space in bytes.
    ///   - read: Fills the start of the space and returns the number of bytes, or nil if it read nothing.
    /// - Returns: The result of `read`.
    /// - Throws: The error of `read`.
    package mutating func fill<Failure: Error>(
        atLeast minimum: Int = 1,
        _ read: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int?
    ) throws(Failure) -> Int? {
        makeRoom(for: minimum)
        // In bounds: the space from `end` to the capacity belongs to no slice.
        let space = UnsafeMutableRawBufferPointer(
            start: storage.base + end,
            count: storage.capacity - end
        )
        let filled = try read(space)
        end += min(max(filled ?? 0, 0), space.count)
        return filled
    }

    /// Appends a copy of bytes.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        let count = bytes.count
        guard count > 0 else { return }
        _ = fill(atLeast: count) { space in
            UnsafeMutableRawBufferPointer(rebasing: space[..<count]).copyBytes(from: bytes)
            return count
        }
    }

    /// Ensures that the message at the front fits into one piece of memory.
    ///
    /// Call it only after the length was checked against a limit.
    ///
    /// - Parameter total: The length in bytes of the message at the front.
    package mutating func reserve(total: Int) {
        guard total > count else { return }
        makeRoom(for: total - count)
    }

    private mutating func makeRoom(for minimum: Int) {
        let isShared = !isKnownUniquelyReferenced(&storage)
        if start == end, !isShared {
            start = 0
            end = 0
        }
        let waiting = end - start
        // A short rest of a message is moved to the front, so that the next read has much space.
        let isCramped =
            !isShared && start > 0 && waiting <= 1_024
            && storage.capacity - end < storage.capacity / 2
        guard storage.capacity - end < minimum || isCramped else { return }
        let needed = waiting + minimum
        if !isShared, storage.capacity >= needed {
            // In bounds, and no slice is left that shares the moved bytes.
            storage.base.copyMemory(from: storage.base + start, byteCount: waiting)
        } else {
            // Doubled, so that a message of unknown length is not copied for each further byte.
            let capacity = max(initialCapacity, needed, waiting * 2)
            let isUsual = capacity == SpareStorage.capacity
            let fresh = isUsual ? SpareStorage.take() : ByteStorage(capacity: capacity)
            fresh.base.copyMemory(from: storage.base + start, byteCount: waiting)
            storage = fresh
        }
        start = 0
        end = waiting
    }
}
