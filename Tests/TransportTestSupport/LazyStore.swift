package import Waybill
import WireCore

/// A store that writes removals when it is flushed, and not before.
package final class LazyStore: ImmediateSessionStore {
    private struct State: Sendable {
        var removals: [StoredMessage.ID] = []
        var flushes: [@Sendable () -> Void] = []
        var flushCount = 0
        var hangs: Bool
    }

    /// What is on the disk.
    package let disk = InMemorySessionStore()
    private let state: Locked<State>
    /// Called when a flush begins.
    private let onFlush: @Sendable () -> Void

    /// - Parameter hangs: Whether a flush waits for ``write()``.
    package init(hangs: Bool = false, onFlush: @escaping @Sendable () -> Void = {}) {
        state = Locked(State(hangs: hangs))
        self.onFlush = onFlush
    }

    package var flushCount: Int { state.withLock { $0.flushCount } }
    package var unwrittenCount: Int { state.withLock { $0.removals.count } }

    package func insert(_ message: StoredMessage) -> StoredMessage.ID { disk.insert(message) }

    package func add(
        _ message: StoredMessage,
        done: @escaping @Sendable (Result<StoredMessage.ID, any Error>) -> Void
    ) -> @Sendable () -> Void {
        done(.success(disk.insert(message)))
        return {}
    }

    package func remove(_ id: StoredMessage.ID) { state.withLock { $0.removals.append(id) } }
    package func messages() -> [StoredMessage] { disk.messages() }
    package func removeAll() { disk.removeAll() }
    package func beginSession(_ name: String) -> Bool { disk.beginSession(name) }

    package func flush() async throws {
        onFlush()
        let hangs = state.withLock { state in
            state.flushCount += 1
            return state.hangs
        }
        if hangs {
            await withCheckedContinuation { continuation in
                state.withLock { $0.flushes.append { continuation.resume() } }
            }
        }
        for id in state.withLock({ $0.removals }) { disk.remove(id) }
        state.withLock { $0.removals = [] }
    }

    /// Lets all flushes end.
    package func write() {
        let flushes = state.withLock { state in
            defer { state.flushes = [] }
            state.hangs = false
            return state.flushes
        }
        for flush in flushes { flush() }
    }
}
