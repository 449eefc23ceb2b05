/// Heap memory of a fixed size, shared by reference.
///
/// It is the raw memory of ``ReceiveBuffer``, ``ByteSlice``, ``ByteWriter`` and ``SliceCopier``; nothing else uses it.
///
/// `@unchecked Sendable`, because: only the one `ReceiveBuffer`, `ByteWriter` or `SliceCopier` that fills this storage writes to it.
/// It writes a byte only (a) beyond every byte of a slice, or (b) after `isKnownUniquelyReferenced` has shown that no
/// slice is left. Bytes that two threads can see are therefore never written again. (c) `SpareStorage` passes a storage
/// on only after the same check, under a lock, when its last owner has released it.
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

    /// A storage without memory.
    static let none = ByteStorage(capacity: 0)

    deinit {
        base.deallocate()
    }
}
