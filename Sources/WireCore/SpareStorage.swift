/// Memory of 64 KiB that connections take while they read, and give back when they are done.
///
/// So an idle connection has none; and connections that take turns use the same memory, which is still in the
/// processor's cache. What they had in it stays there until the next one writes over it, out of anybody's reach.
enum SpareStorage {
    /// How much one has: what a read takes well.
    static var capacity: Int { 65_536 }

    /// How many are kept: as many as threads may read at a time.
    private static var limit: Int { 8 }
    private static let spares = Locked<[ByteStorage]>([])

    static func take() -> ByteStorage {
        spares.withLock { $0.popLast() } ?? ByteStorage(capacity: capacity)
    }

    /// Takes the memory away, and keeps it if it is of that size and nobody else sees it.
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
