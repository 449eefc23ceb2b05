import WireCore

/// Stores the unacknowledged messages of a transport, and how far it has come, also beyond the end of the process.
///
/// A message is stored before it is sent, and removed when its call has ended in any way, since the caller then knows
/// the outcome. In a store that keeps exchanges, a message of QoS 2 is removed when its exchange has ended, also after
/// its call. A message that is still stored when a transport starts was left by a process that ended before. It is sent
/// first.
///
/// A transport calls ``flush()`` at each end of its connection that the app asks for, and before a send fails. So a
/// process that ends cleanly leaves nothing behind whose outcome a caller knows.
///
/// A store that keeps messages alone implements the first four functions. Its leftovers are sent as new messages, so a
/// message of QoS 2 may arrive twice. A store that also keeps the stages of the exchanges implements all of them; its
/// exchanges continue over the end of the process.
///
/// Calls come from any thread, also from that of the event loop. All functions except ``insert(_:)``, ``messages()``,
/// ``pendingUnsubscribes()``, ``beginSession(_:)``, ``receivedIdentifiers()``, ``lastEventID(of:)`` and ``removeAll()``
/// have to return without waiting for a disk.
public protocol SessionStore: Sendable {
    /// Stores a message durably before it returns.
    ///
    /// - Parameter message: The message; its number is ignored.
    /// - Returns: The message's number, greater than all before.
    /// - Throws: Any error; the send fails with `limitExceeded` and this error as `underlying`, and nothing is sent.
    func insert(_ message: StoredMessage) throws -> StoredMessage.ID

    /// Removes a message; does nothing if it is not stored.
    func remove(_ id: StoredMessage.ID)

    /// Returns all messages, in the order of their numbers.
    ///
    /// - Throws: Any error, if none can be read; the transport is not made, because messages would seem to be sent. A
    ///     store that can read some returns these, and tells the app the rest.
    func messages() throws -> [StoredMessage]

    /// Removes everything.
    func removeAll()

    /// Stores a message durably, and suspends the caller until that is done; as ``insert(_:)`` by default.
    ///
    /// A send waits for its time limit at most. Then, and when the send is cancelled, the task of this call is cancelled: a
    /// store should forget a message that it has not begun to write, and throw. A number that it returns later is removed
    /// with ``remove(_:)``. After a shutdown of the transport such a message stays stored.
    ///
    /// - Parameter message: The message; its number is ignored.
    /// - Returns: The message's number, greater than all before.
    /// - Throws: Any error, as ``insert(_:)``.
    func add(_ message: StoredMessage) async throws -> StoredMessage.ID

    /// Returns when all earlier changes are stored durably; by default at once, for a store without unwritten changes.
    ///
    /// The transport waits for it after the connection is closed, by `disconnect`, `shutdown`, `withConnection`, `run`,
    /// `pause` and a hint to pause, at most for the close timeout. It also waits before a send fails, at most for one
    /// second. The task of the call is not cancelled then.
    ///
    /// - Throws: Any error, if something could not be stored.
    func flush() async throws

    /// Whether messages outlive the process; true by default.
    ///
    /// Sends then wait for a connection (``OfflinePolicy/waitsForConnection``).
    var isOnDisk: Bool { get }

    /// Replaces the stored list of topic filters that have no listener any more.
    ///
    /// The server may still have subscriptions for these filters. By default nothing happens.
    func setPendingUnsubscribes(_ filters: [String])

    /// Returns the list of filters that was stored last; empty by default.
    ///
    /// The transport unsubscribes them when the server still has the session.
    ///
    /// - Throws: Any error; the transport is not made.
    func pendingUnsubscribes() throws -> [String]

    /// Begins to keep the exchanges of a session, whose name is the client identifier.
    ///
    /// Exchanges of a session with another name are forgotten: their messages stay, in the first stage.
    ///
    /// - Parameter name: The client identifier.
    /// - Returns: Whether the store keeps exchanges; false by default.
    /// - Throws: Any error, if the store has exchanges and cannot read them; the transport is not made.
    func beginSession(_ name: String) throws -> Bool

    /// Notes that the server has lost the session: all messages are in the first stage, and no identifier is known.
    func loseSession()

    /// Stores the stage of a message's exchange.
    ///
    /// - Parameters:
    ///   - stage: The stage.
    ///   - id: The message; nothing happens if it is not stored.
    ///   - done: Called once, on any thread, when the stage is stored or cannot be stored. By default at once.
    func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    )

    /// Stores the number of connections in a row that the server has ended after a message.
    ///
    /// A later process goes on with the number, so that a message that the server answers by closing fails in the end.
    /// By default nothing happens: then each process begins at zero.
    ///
    /// - Parameters:
    ///   - count: The number; 0 for none.
    ///   - id: The message; nothing happens if it is not stored.
    func setSuspiciousEnds(_ count: Int, of id: StoredMessage.ID)

    /// Stores the packet identifier of a received message of QoS 2 that the app has taken.
    ///
    /// - Parameters:
    ///   - identifier: The identifier.
    ///   - done: Called once, on any thread, when it is stored or cannot be stored. By default at once.
    func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void)

    /// Removes a packet identifier, because the server has forgotten it.
    ///
    /// - Parameters:
    ///   - identifier: The identifier.
    ///   - done: Called once, on any thread, when that is stored or cannot be stored. By default at once.
    func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void)

    /// Returns the stored packet identifiers of received messages; empty by default.
    ///
    /// - Throws: Any error; the transport is not made, because it would deliver messages twice.
    func receivedIdentifiers() throws -> [UInt16]

    /// Stores the ID of the last event that the app has taken from an event stream (HTML Standard, 9.2.4).
    ///
    /// By default nothing happens: then each subscription begins with the events from then on.
    ///
    /// - Parameters:
    ///   - id: The ID, as the server has sent it; empty if it has none any more.
    ///   - topic: The topic of the stream.
    func setLastEventID(_ id: String, of topic: String)

    /// Returns the ID of the last event that the app has taken from an event stream.
    ///
    /// - Parameter topic: The topic of the stream.
    /// - Returns: The ID; nil, the default, for none.
    /// - Throws: Any error; the subscription fails with `limitExceeded`, because events would be missed.
    func lastEventID(of topic: String) throws -> String?
}

extension SessionStore {
    /// True.
    public var isOnDisk: Bool { true }

    /// Stores a message with ``insert(_:)``.
    public func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
        try insert(message)
    }

    /// Does nothing.
    public func flush() async throws {}

    /// Does nothing.
    public func setPendingUnsubscribes(_ filters: [String]) {}

    /// Returns no filters.
    public func pendingUnsubscribes() -> [String] { [] }

    /// Returns false: the store keeps no exchanges.
    public func beginSession(_ name: String) -> Bool { false }

    /// Does nothing.
    public func loseSession() {}

    /// Calls `done`.
    public func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    ) {
        done()
    }

    /// Does nothing.
    public func setSuspiciousEnds(_ count: Int, of id: StoredMessage.ID) {}

    /// Calls `done`.
    public func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        done()
    }

    /// Calls `done`.
    public func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        done()
    }

    /// Returns no identifiers.
    public func receivedIdentifiers() -> [UInt16] { [] }

    /// Does nothing.
    public func setLastEventID(_ id: String, of topic: String) {}

    /// Returns nil.
    public func lastEventID(of topic: String) -> String? { nil }
}

/// A store in memory, for several transports of one process and for tests.
public final class InMemorySessionStore: SessionStore {
    private struct State: Sendable {
        var messages: [StoredMessage.ID: StoredMessage] = [:]
        var last: StoredMessage.ID = 0
        var filters: [String] = []
        /// The name of the session whose exchanges are kept.
        var session: String?
        var received: Set<UInt16> = []
        var lastEventIDs: [WireName: String] = [:]

        mutating func loseSession() {
            for id in messages.keys { messages[id]?.stage = .published }
            received = []
        }
    }

    private let state = Locked(State())

    /// Makes an empty store.
    public init() {}

    /// False: the messages end with the process.
    public var isOnDisk: Bool { false }

    /// Stores a message.
    public func insert(_ message: StoredMessage) -> StoredMessage.ID {
        state.withLock { state in
            state.last += 1
            state.messages[state.last] = message
            state.messages[state.last]?.id = state.last
            return state.last
        }
    }

    /// Removes a message.
    public func remove(_ id: StoredMessage.ID) {
        state.withLock { _ = $0.messages.removeValue(forKey: id) }
    }

    /// Returns all messages, in the order of their numbers.
    public func messages() -> [StoredMessage] {
        state.withLock { $0.messages.values.sorted { $0.id < $1.id } }
    }

    /// Removes everything.
    public func removeAll() {
        state.withLock { state in
            state.messages = [:]
            state.filters = []
            state.received = []
            state.lastEventIDs = [:]
        }
    }

    /// Stores filters.
    public func setPendingUnsubscribes(_ filters: [String]) {
        state.withLock { $0.filters = filters }
    }

    /// Returns the filters that were stored last.
    public func pendingUnsubscribes() -> [String] { state.withLock { $0.filters } }

    /// Begins to keep the exchanges of a session.
    public func beginSession(_ name: String) -> Bool {
        state.withLock { state in
            if state.session.map({ Array($0.utf8) }) != Array(name.utf8) { state.loseSession() }
            state.session = name
        }
        return true
    }

    /// Forgets stages and identifiers.
    public func loseSession() {
        state.withLock { $0.loseSession() }
    }

    /// Stores a stage.
    public func setStage(
        _ stage: StoredMessage.Stage,
        of id: StoredMessage.ID,
        done: @escaping @Sendable () -> Void
    ) {
        state.withLock { $0.messages[id]?.stage = stage }
        done()
    }

    /// Stores a number of suspicious ends.
    public func setSuspiciousEnds(_ count: Int, of id: StoredMessage.ID) {
        state.withLock { $0.messages[id]?.suspiciousEnds = count }
    }

    /// Stores the identifier of a received message.
    public func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        state.withLock { _ = $0.received.insert(identifier) }
        done()
    }

    /// Removes an identifier.
    public func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
        state.withLock { _ = $0.received.remove(identifier) }
        done()
    }

    /// Returns the stored identifiers.
    public func receivedIdentifiers() -> [UInt16] { state.withLock { $0.received.sorted() } }

    /// Stores the ID of an event.
    public func setLastEventID(_ id: String, of topic: String) {
        state.withLock { $0.lastEventIDs[topic] = id.isEmpty ? nil : id }
    }

    /// Returns the ID that was stored last.
    public func lastEventID(of topic: String) -> String? {
        state.withLock { $0.lastEventIDs[topic] }
    }
}
