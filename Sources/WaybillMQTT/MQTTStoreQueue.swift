import MQTTWire
import Waybill

/// What a store has to be told, in the order of the changes; one thread at a time tells it.
///
/// An identifier of a lost session would otherwise be stored after the loss, and a message of the next session with
/// this identifier would count as taken.
///
/// | state | event → next state |
/// | --- | --- |
/// | idle | ``begin()`` → calling |
/// | calling | ``next()`` finds nothing → idle |
///
/// The store keeps the exchanges of one client identifier. It is told nothing of the session of another identifier,
/// because the next process continues what is stored in the session of its own one.
///
/// | session | event → next session |
/// | --- | --- |
/// | any | ``loseSession(isKept:)``, and the next session is that of the store's identifier → kept |
/// | any | ``loseSession(isKept:)``, and it is that of another one → not kept |
struct MQTTStoreQueue: Sendable {
    enum Call: Sendable {
        case loseSession
        /// With what follows when the step is on the disk or cannot be.
        case step(MQTTStorageStep, done: @Sendable () -> Void)

        func make(to store: any SessionStore) {
            switch self {
            case .loseSession: store.loseSession()
            case .step(.released(let number, _), let done):
                store.setStage(.released, of: number, done: done)
            case .step(.taken(let identifier), let done):
                store.insertReceived(identifier, done: done)
            case .step(.forgotten(let identifier), let done),
                .step(.superseded(let identifier), let done):
                store.removeReceived(identifier, done: done)
            }
        }
    }

    private var calls: [Call] = []
    private var isCalling = false
    /// Whether the present session is that of the store's client identifier.
    private(set) var isKept = true

    /// Adds the loss of the session, after the CONNACK that began another one.
    ///
    /// - Parameter isKept: Whether that is a session of the store's client identifier.
    mutating func loseSession(isKept: Bool) {
        calls.append(.loseSession)
        self.isKept = isKept
    }

    /// Adds a step.
    ///
    /// - Returns: False if the store does not keep the session: the step needs no storing.
    mutating func append(_ step: MQTTStorageStep, done: @escaping @Sendable () -> Void) -> Bool {
        guard isKept else { return false }
        calls.append(.step(step, done: done))
        return true
    }

    /// Adds the steps of messages that were taken without a connection.
    mutating func append(_ steps: [MQTTStorageStep]) {
        guard isKept else { return }
        for step in steps { calls.append(.step(step, done: {})) }
    }

    /// Whether the caller has to make the calls, because no other thread does.
    mutating func begin() -> Bool {
        guard !isCalling, !calls.isEmpty else { return false }
        isCalling = true
        return true
    }

    /// The next call; nil ends the caller's turn.
    mutating func next() -> Call? {
        guard !calls.isEmpty else {
            isCalling = false
            return nil
        }
        return calls.removeFirst()
    }
}
