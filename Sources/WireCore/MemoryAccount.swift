/// The memory account of a connection: the bytes that wait, of every kind, and their limit.
///
/// It counts messages with their topics, headers and properties until the app takes them. A connection also compares it
/// with the answers that the peer does not read. Reading stops at seven eighths of the limit; the rest is for the data
/// of the last read.
///
/// An account outlives a connection: waiting messages from an earlier connection of the same transport still count.
package final class MemoryAccount: Sendable {
    /// The default limit: 64 MiB.
    package static let defaultLimit = 64 << 20

    private struct State: Sendable {
        var byteCount = 0
        var isFull = false
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    /// The number of waiting bytes at which reading stops.
    package let capacity: Int
    /// The additional bytes that may wait while a connection is opened, so that the handshake can complete.
    package let reserve: Int
    private let state = Locked(State())

    /// Makes an empty account.
    ///
    /// - Parameter limit: The number of bytes that may wait; at least 1.
    package init(limit: Int = MemoryAccount.defaultLimit) {
        let limit = max(limit, 1)
        reserve = limit / 8
        capacity = limit - reserve
    }

    /// The number of waiting bytes.
    package var byteCount: Int { state.withLock { $0.byteCount } }

    /// Whether the capacity was reached, and less than a quarter of it was released since.
    package var isFull: Bool { state.withLock { $0.isFull } }

    /// Calls `body` after each change of ``isFull``, on the thread of the change with no lock held.
    ///
    /// Two simultaneous changes may call it in either order, so `body` must read ``isFull`` itself.
    ///
    /// - Returns: A number for ``stopObserving(_:)``.
    package func observe(_ body: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = body
            return state.lastObserver
        }
    }

    /// Removes an observer.
    ///
    /// A call that has already begun may still run.
    package func stopObserving(_ observer: UInt64) {
        let gone = state.withLock { $0.observers.removeValue(forKey: observer) }
        // Released without a lock.
        withExtendedLifetime(gone) {}
    }

    /// Whether a number of further bytes stays below the capacity.
    package func hasRoom(for byteCount: Int) -> Bool {
        state.withLock { $0.byteCount + byteCount < capacity }
    }

    /// Counts waiting bytes if they stay below the capacity; ``isFull`` then does not change.
    ///
    /// - Returns: Whether they were counted.
    package func chargeIfRoom(_ byteCount: Int) -> Bool {
        state.withLock { state in
            guard state.byteCount + byteCount < capacity else { return false }
            state.byteCount += byteCount
            return true
        }
    }

    /// Counts bytes that start to wait.
    package func charge(_ byteCount: Int) {
        change(by: byteCount)
    }

    /// Counts bytes that no longer wait.
    package func release(_ byteCount: Int) {
        change(by: -byteCount)
    }

    private func change(by difference: Int) {
        guard difference != 0 else { return }
        let observers = state.withLock { state -> [@Sendable () -> Void] in
            state.byteCount += difference
            let isFull = state.byteCount >= (state.isFull ? capacity - capacity / 4 : capacity)
            guard isFull != state.isFull else { return [] }
            state.isFull = isFull
            return state.observers.valuesInKeyOrder
        }
        for observer in observers { observer() }
    }
}
