/// The bytes that wait in memory for one connection, of whatever kind, and the limit within which they stay.
///
/// Reading stops at seven eighths of the limit: the rest is for what one turn of reading still brings. Counts what a peer makes wait: messages with their topics, headers and properties until the app takes them, and
/// answers that the peer does not read. An account lasts longer than a connection: what waits from an
/// earlier connection of the same transport still counts.
package final class MemoryAccount: Sendable {
    /// 64 MiB.
    package static let defaultLimit = 64 << 20

    private struct State: Sendable {
        var byteCount = 0
        var isFull = false
        var onChange: (@Sendable () -> Void)?
    }

    /// How many bytes may wait before reading stops.
    package let capacity: Int
    private let state = Locked(State())

    /// An empty account.
    /// - Parameter limit: How many bytes may wait; at least 1.
    package init(limit: Int = MemoryAccount.defaultLimit) {
        let limit = max(limit, 1)
        capacity = limit - limit / 8
    }

    /// How many bytes wait.
    package var byteCount: Int { state.withLock { $0.byteCount } }

    /// Whether the capacity was reached and less than a quarter of it has been released since.
    package var isFull: Bool { state.withLock { $0.isFull } }

    /// Calls `body` after each change of ``isFull``, on the thread of the change and with no lock held.
    ///
    /// Two changes at once may call it in either order: `body` looks at ``isFull`` itself.
    package func onChange(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.onChange = body }
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
        let onChange = state.withLock { state -> (@Sendable () -> Void)? in
            state.byteCount += difference
            let isFull = state.byteCount >= (state.isFull ? capacity - capacity / 4 : capacity)
            guard isFull != state.isFull else { return nil }
            state.isFull = isFull
            return state.onChange
        }
        onChange?()
    }
}
