/// Heap memory of a fixed size, shared by reference.
///
/// The raw memory under ``ReceiveBuffer``, ``ByteSlice`` and ``ByteWriter``; nothing else touches it.
///
/// `@unchecked Sendable`, because: a byte is written only by the one `ReceiveBuffer` or `ByteWriter`
/// that fills this storage, and only (a) beyond every byte that a slice has been handed out for, or
/// (b) after `isKnownUniquelyReferenced` has shown that no slice is left. So bytes that can be seen
/// from two threads are never written again. (c) `SpareStorage` hands it from one to the next only after the same
/// check, under a lock, and whoever gave it has let go of it.
@usableFromInline
package final class ByteStorage: @unchecked Sendable {
    // Allocated in `init` with `capacity` bytes and freed in `deinit`: valid as long as the object.
    @usableFromInline let base: UnsafeMutableRawPointer

    /// The number of bytes at `base`.
    @usableFromInline let capacity: Int

    @usableFromInline
    init(capacity: Int) {
        self.capacity = max(capacity, 0)
        base = UnsafeMutableRawPointer.allocate(byteCount: max(capacity, 1), alignment: 16)
    }

    /// Room for nothing.
    static let none = ByteStorage(capacity: 0)

    deinit {
        base.deallocate()
    }
}
