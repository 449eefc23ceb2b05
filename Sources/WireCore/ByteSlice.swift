/// A range of received bytes that shares the memory they were read into.
///
/// ``ReceiveBuffer`` makes slices without copying. A slice keeps the whole allocation alive, so it should be
/// short-lived: code that keeps a payload copies it once.
@usableFromInline
package struct ByteSlice: Sendable {
    @usableFromInline let storage: ByteStorage?
    /// The place of the first byte in the memory.
    @usableFromInline package let offset: Int

    @usableFromInline package let count: Int

    // Precondition, kept by `ReceiveBuffer` and `SliceCopier`: `offset + count` does not pass the filled part of
    // `storage`, whose bytes are not written again while this slice lives (see `ByteStorage`).
    @inlinable
    init(storage: ByteStorage?, offset: Int, count: Int) {
        self.storage = storage
        self.offset = offset
        self.count = count
    }

    @usableFromInline package static let empty = ByteSlice(storage: nil, offset: 0, count: 0)

    /// Makes a slice over a copy of bytes.
    package init(copying bytes: some Collection<UInt8>) {
        let storage = ByteStorage(capacity: bytes.count)
        // In bounds: the buffer spans exactly the `bytes.count` bytes that were allocated.
        let target = UnsafeMutableRawBufferPointer(start: storage.base, count: bytes.count)
        target.copyBytes(from: bytes)
        self.init(storage: storage, offset: 0, count: bytes.count)
    }

    /// Calls `body` with the bytes, which must not be used after it returns.
    @inlinable
    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        // In bounds by the precondition of `init`; `storage` outlives the call.
        defer { withExtendedLifetime(storage) {} }
        return try body(UnsafeRawBufferPointer(start: storage.base + offset, count: count))
    }

    /// Whether another slice lies within this one, in the same memory; an empty slice lies in each.
    @inlinable
    package func contains(_ other: ByteSlice) -> Bool {
        other.count == 0
            || storage === other.storage && offset <= other.offset
                && other.offset + other.count <= offset + count
    }

    /// A part of the slice, clamped to it.
    @inlinable
    package func slice(at offset: Int, count: Int) -> ByteSlice {
        let lower = min(max(offset, 0), self.count)
        let length = min(max(count, 0), self.count - lower)
        return ByteSlice(storage: storage, offset: self.offset + lower, count: length)
    }

    /// The slice without its first bytes.
    package func dropFirst(_ count: Int) -> ByteSlice {
        let dropped = min(max(count, 0), self.count)
        return ByteSlice(storage: storage, offset: offset + dropped, count: self.count - dropped)
    }

    package var bytes: [UInt8] {
        withUnsafeBytes { Array($0) }
    }
}

extension ByteSlice: Hashable {
    @inlinable
    package static func == (left: ByteSlice, right: ByteSlice) -> Bool {
        left.count == right.count
            && left.withUnsafeBytes { one in right.withUnsafeBytes { one.elementsEqual($0) } }
    }

    @inlinable
    package func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

extension ByteSlice: ExpressibleByArrayLiteral {
    @usableFromInline
    package init(arrayLiteral elements: UInt8...) {
        self.init(copying: elements)
    }
}
