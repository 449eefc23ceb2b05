/// Copies slices of a receive buffer into blocks of memory that several copies share.
///
/// One allocation serves many short bodies, and the receive buffer stays free for the next read. A block is at most
/// 4 KiB, unless a single slice is longer: a copy that is kept for long keeps at most that much of its neighbours. The
/// blocks of one copier take at most twice the bytes copied and 4 KiB: each block is at most as long as all copies
/// before it, and two blocks in a row are together filled by more than one block's length.
///
/// Not copyable, because two copies would write to the same place of a block.
package struct SliceCopier: ~Copyable {
    /// The longest block that is shared, in bytes: 4 KiB.
    package static let blockByteCount = 4_096

    private var block = ByteStorage.none
    private var used = 0
    private var copied = 0

    package init() {}

    /// Copies bytes.
    ///
    /// - Returns: The bytes in memory that keeps at most ``blockByteCount`` bytes, or only these bytes, alive.
    package mutating func copy(_ bytes: UnsafeRawBufferPointer) -> ByteSlice {
        let count = bytes.count
        guard count > 0, let source = bytes.baseAddress else { return .empty }
        if block.capacity - used < count {
            block = ByteStorage(capacity: max(count, min(copied, Self.blockByteCount)))
            used = 0
        }
        copied += count
        // In bounds, since the block has room; and no slice covers the bytes from `used` on.
        block.base.advanced(by: used).copyMemory(from: source, byteCount: count)
        defer { used += count }
        return ByteSlice(storage: block, offset: used, count: count)
    }
}
