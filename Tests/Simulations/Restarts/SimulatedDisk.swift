import Waybill
import WaybillTesting

/// A disk with a session store, which outlives the processes that use it.
///
/// What a process writes is on the disk some time later, in the order of the calls. A kill loses the last of it.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulatedDisk: @unchecked Sendable {
    private struct Step {
        let apply: () -> Void
        let done: @Sendable () -> Void
    }

    private let kept = InMemorySessionStore()
    private let world: SimulatedWorld
    private let longest: Duration
    private var steps: [Step] = []
    private var isWriting = false
    /// The number of the process that may write.
    private var process = 0

    fileprivate let onLoss: () -> Void

    /// - Parameter onLoss: Called when the disk has noted that a session is lost.
    init(_ world: SimulatedWorld, onLoss: @escaping () -> Void) {
        self.world = world
        self.onLoss = onLoss
        longest = world.pick(.zero, .milliseconds(5), .milliseconds(500))
    }

    /// The messages that are on the disk.
    var messages: [StoredMessage] { kept.messages() }

    /// The identifiers of received messages that are on the disk.
    var received: [UInt16] { kept.receivedIdentifiers() }

    /// Opens the store for a new process.
    func open() -> SimulatedProcessStore {
        SimulatedProcessStore(self, process)
    }

    /// Ends the process that uses the store. Some of what it has written since the last flush is lost.
    func kill() {
        process += 1
        let count = world.random(0...steps.count)
        world.note("\(count) of \(steps.count) steps are on the disk")
        for step in steps.prefix(count) { step.apply() }
        let dones = steps.map(\.done)
        steps = []
        Task { for done in dones { done() } }
    }

    fileprivate func isOpen(for process: Int) -> Bool { process == self.process }

    /// Writes something soon.
    fileprivate func write(
        _ process: Int,
        _ apply: @escaping (InMemorySessionStore) -> Void,
        done: @escaping @Sendable () -> Void = {}
    ) {
        guard isOpen(for: process) else { return done() }
        steps.append(Step(apply: { [kept] in apply(kept) }, done: done))
        guard !isWriting else { return }
        isWriting = true
        Task { await writeAll() }
    }

    /// Writes everything, and returns what is on the disk then; nil if the process was killed.
    fileprivate func flush(_ process: Int) -> InMemorySessionStore? {
        guard isOpen(for: process) else { return nil }
        for step in steps { step.apply() }
        let dones = steps.map(\.done)
        steps = []
        Task { for done in dones { done() } }
        return kept
    }

    private func writeAll() async {
        while !steps.isEmpty {
            try? await Task.sleep(for: world.random(.zero...longest))
            guard !steps.isEmpty else { break }
            let batch = steps.prefix(world.random(1...steps.count))
            steps.removeFirst(batch.count)
            for step in batch { step.apply() }
            for step in batch { step.done() }
        }
        isWriting = false
    }
}

/// The store as one process has opened it. After a kill nothing that it does reaches the disk.
struct SimulatedProcessStore: SessionStore {
    struct Killed: Error {}

    private let disk: SimulatedDisk
    private let process: Int

    fileprivate init(_ disk: SimulatedDisk, _ process: Int) {
        self.disk = disk
        self.process = process
    }

    func insert(_ message: StoredMessage) throws -> StoredMessage.ID {
        guard let kept = disk.flush(process) else { throw Killed() }
        return kept.insert(message)
    }

    func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
        let added = Added()
        await withCheckedContinuation { continuation in
            disk.write(process, { added.id = $0.insert(message) }) { continuation.resume() }
        }
        guard let id = added.id, disk.isOpen(for: process) else { throw Killed() }
        return id
    }

    func remove(_ id: StoredMessage.ID) {
        disk.write(process, { $0.remove(id) })
    }

    func flush() async throws {
        await withCheckedContinuation { continuation in
            disk.write(process, { _ in }) { continuation.resume() }
        }
        guard disk.isOpen(for: process) else { throw Killed() }
    }

    func messages() -> [StoredMessage] { disk.flush(process)?.messages() ?? [] }

    func removeAll() { disk.flush(process)?.removeAll() }

    func setPendingUnsubscribes(_ filters: [String]) {
        disk.write(process, { $0.setPendingUnsubscribes(filters) })
    }

    func pendingUnsubscribes() -> [String] { disk.flush(process)?.pendingUnsubscribes() ?? [] }

    func beginSession(_ name: String) -> Bool { disk.flush(process)?.beginSession(name) ?? false }

    func loseSession() {
        disk.write(
            process,
            { [disk] in
                $0.loseSession()
                disk.onLoss()
            }
        )
    }

    func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    ) {
        disk.write(process, { $0.setStage(stage, of: id) {} }, done: done)
    }

    func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        disk.write(process, { $0.insertReceived(identifier) {} }, done: done)
    }

    func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        disk.write(process, { $0.removeReceived(identifier) {} }, done: done)
    }

    func receivedIdentifiers() -> [UInt16] { disk.flush(process)?.receivedIdentifiers() ?? [] }
}

/// The number of a message, once it has one.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
private final class Added: @unchecked Sendable {
    var id: StoredMessage.ID?
}
