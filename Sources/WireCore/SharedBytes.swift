/// A ``ByteSlice`` in 16 bytes, so that a value that holds one fits into an existential without an allocation.
@usableFromInline
package struct SharedBytes: Sendable {
    @usableFromInline let storage: ByteStorage
    @usableFromInline let offset: UInt32
    @usableFromInline let length: UInt32

    /// Holds a slice; nil for an empty one, and for one that ends beyond 4 GiB of its memory.
    @inlinable
    package init?(_ slice: ByteSlice) {
        guard let storage = slice.storage, let offset = UInt32(exactly: slice.offset),
            let length = UInt32(exactly: slice.count)
        else { return nil }
        self.storage = storage
        self.offset = offset
        self.length = length
    }

    @inlinable package var count: Int { Int(length) }

    package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    /// Calls `body` with the bytes, which must not be used after it returns.
    @inlinable
    package func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        // In bounds by the precondition of `ByteSlice`, from which the place comes; `storage` outlives the call.
        defer { withExtendedLifetime(storage) {} }
        return try body(
            UnsafeRawBufferPointer(start: storage.base + Int(offset), count: Int(length))
        )
    }
}
