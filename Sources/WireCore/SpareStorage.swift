/// A pool of memory blocks of 64 KiB, which connections use while they read.
///
/// An idle connection therefore has no block. Connections that take turns reuse the same memory, which is still in the
/// processor's cache. Old bytes stay in a block until the next connection overwrites them; no code can read them
/// before.
enum SpareStorage {
    /// The size of a block, suitable for one read.
    static var capacity: Int { 65_536 }

    /// The number of blocks in the pool: as many as threads may read at a time.
    private static var limit: Int { 8 }
    private static let spares = Locked<[ByteStorage]>([])

    static func take() -> ByteStorage {
        spares.withLock { $0.popLast() } ?? ByteStorage(capacity: capacity)
    }

    /// Takes a block back into the pool if it has the right size and no slice shares it.
    static func give(_ storage: inout ByteStorage) {
        let isUsable = storage.capacity == capacity && isKnownUniquelyReferenced(&storage)
        let spare = storage
        storage = .none
        guard isUsable else { return }
        spares.withLock { spares in
            if spares.count < limit { spares.append(spare) }
        }
    }
}
