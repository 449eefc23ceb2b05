import Waybill
import WaybillTesting

/// A session store whose steps take their time, as on a disk, and may overtake each other.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulatedStore: SessionStore, @unchecked Sendable {
    private let store = InMemorySessionStore()
    /// So that each call has a limit.
    let isOnDisk = false
    private let world: SimulatedWorld
    private let longest: Duration

    init(_ world: SimulatedWorld) {
        self.world = world
        longest = world.pick(.zero, .milliseconds(5), .seconds(1))
    }

    private func soon(_ done: @escaping @Sendable () -> Void) {
        guard longest > .zero else { return done() }
        let delay = world.random(.zero...longest)
        Task {
            try? await Task.sleep(for: delay)
            done()
        }
    }

    func insert(_ message: StoredMessage) -> StoredMessage.ID { store.insert(message) }

    /// Takes its time, also after a cancellation is known: the number may come when no call waits for it.
    func add(_ message: StoredMessage) async -> StoredMessage.ID {
        if longest > .zero { try? await Task.sleep(for: world.random(.zero...longest)) }
        return store.insert(message)
    }

    func remove(_ id: StoredMessage.ID) { store.remove(id) }

    func messages() -> [StoredMessage] { store.messages() }

    func removeAll() { store.removeAll() }

    func setPendingUnsubscribes(_ filters: [String]) { store.setPendingUnsubscribes(filters) }

    func pendingUnsubscribes() -> [String] { store.pendingUnsubscribes() }

    func beginSession(_ name: String) -> Bool { store.beginSession(name) }

    func loseSession() { store.loseSession() }

    func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    ) {
        store.setStage(stage, of: id) {}
        soon(done)
    }

    func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        store.insertReceived(identifier) {}
        soon(done)
    }

    func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        store.removeReceived(identifier) {}
        soon(done)
    }

    func receivedIdentifiers() -> [UInt16] { store.receivedIdentifiers() }
}
