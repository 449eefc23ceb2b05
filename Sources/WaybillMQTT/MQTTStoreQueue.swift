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
            case .step(.forgotten(let identifier), let done):
                store.removeReceived(identifier, done: done)
            }
        }
    }

    private var calls: [Call] = []
    private var isCalling = false

    mutating func append(_ call: Call) {
        calls.append(call)
    }

    /// Adds the identifiers of messages that were taken without a connection.
    mutating func append(taken identifiers: [UInt16]) {
        for identifier in identifiers { calls.append(.step(.taken(identifier), done: {})) }
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
