/// The bytes that wait in memory for one connection, of whatever kind, and the limit within which they stay.
///
/// It counts messages with their topics, headers and properties until the app takes them. A connection also
/// compares it with the answers that the peer does not read. Reading stops at seven eighths of the limit: the rest is
/// for what one turn of reading still brings.
///
/// An account lasts longer than a connection: what waits from an earlier connection of the same transport still counts.
package final class MemoryAccount: Sendable {
    /// 64 MiB.
    package static let defaultLimit = 64 << 20

    private struct State: Sendable {
        var byteCount = 0
        var isFull = false
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    /// How many bytes may wait before reading stops.
    package let capacity: Int
    /// How many bytes more may wait while a connection is being opened, so that the answers to that are heard.
    package let reserve: Int
    private let state = Locked(State())

    /// An empty account.
    /// - Parameter limit: How many bytes may wait; at least 1.
    package init(limit: Int = MemoryAccount.defaultLimit) {
        let limit = max(limit, 1)
        reserve = limit / 8
        capacity = limit - reserve
    }

    /// How many bytes wait.
    package var byteCount: Int { state.withLock { $0.byteCount } }

    /// Whether the capacity was reached and less than a quarter of it has been released since.
    package var isFull: Bool { state.withLock { $0.isFull } }

    /// Calls `body` after each change of ``isFull``, on the thread of the change and with no lock held.
    ///
    /// Two changes at once may call it in either order: `body` looks at ``isFull`` itself.
    /// - Returns: A number for ``stopObserving(_:)``.
    package func observe(_ body: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = body
            return state.lastObserver
        }
    }

    /// Forgets an observer.
    ///
    /// A call that is under way may still be heard.
    package func stopObserving(_ observer: UInt64) {
        let gone = state.withLock { $0.observers.removeValue(forKey: observer) }
        // Released with no lock held.
        withExtendedLifetime(gone) {}
    }

    /// Whether so many bytes more would stay below the capacity.
    package func hasRoom(for byteCount: Int) -> Bool {
        state.withLock { $0.byteCount + byteCount < capacity }
    }

    /// Counts bytes that begin to wait, if they stay below the capacity; ``isFull`` does not change then.
    /// - Returns: Whether they were counted.
    package func chargeIfRoom(_ byteCount: Int) -> Bool {
        state.withLock { state in
            guard state.byteCount + byteCount < capacity else { return false }
            state.byteCount += byteCount
            return true
        }
    }

    /// Counts bytes that begin to wait.
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
