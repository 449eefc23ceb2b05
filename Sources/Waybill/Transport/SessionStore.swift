import WireCore

/// A send that a transport has accepted and the peer has not acknowledged.
public struct StoredMessage: Hashable, Codable, Sendable, Identifiable {
    /// The number of the message; the store assigns numbers in the order of the calls.
    public var id: UInt64
    /// The topic.
    public var topic: String
    /// The body.
    public var body: [UInt8]
    /// The content type of the body.
    public var contentType: String?
    /// The headers, as pairs of name and value.
    public var headers: [[String]]
    /// The quality of service: 1 or 2.
    public var qos: Int
    /// Whether the server keeps the message for later subscribers.
    public var isRetained: Bool

    /// Makes a message; the store sets its number.
    public init(
        topic: String,
        body: [UInt8],
        contentType: String? = nil,
        headers: [[String]] = [],
        qos: Int,
        isRetained: Bool = false
    ) {
        id = 0
        self.topic = topic
        self.body = body
        self.contentType = contentType
        self.headers = headers
        self.qos = qos
        self.isRetained = isRetained
    }
}

/// Stores the unacknowledged messages and pending unsubscribes of a transport, also beyond the end of the process.
///
/// A message is stored before it is sent, and removed when its call has ended in any way, since the caller then knows
/// the outcome. A message that is still stored when a transport starts was left by a process that ended before. It is
/// sent first, as a new message, so a message of QoS 2 may arrive twice. Calls come from any thread, and should return
/// soon.
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
    func messages() throws -> [StoredMessage]

    /// Removes everything.
    func removeAll()

    /// Durably replaces the stored list of topic filters that have no listener any more.
    ///
    /// The server may still have subscriptions for these filters. By default nothing happens.
    func setPendingUnsubscribes(_ filters: [String])

    /// Returns the list of filters that was stored last; empty by default.
    ///
    /// The transport unsubscribes them when the server still has the session.
    func pendingUnsubscribes() -> [String]
}

extension SessionStore {
    /// Does nothing.
    public func setPendingUnsubscribes(_ filters: [String]) {}

    /// Returns no filters.
    public func pendingUnsubscribes() -> [String] { [] }
}

/// A store in memory, for several transports of one process and for tests.
public final class InMemorySessionStore: SessionStore {
    private struct State: Sendable {
        var messages: [StoredMessage.ID: StoredMessage] = [:]
        var last: StoredMessage.ID = 0
        var filters: [String] = []
    }

    private let state = Locked(State())

    /// Makes an empty store.
    public init() {}

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
        }
    }

    /// Stores filters.
    public func setPendingUnsubscribes(_ filters: [String]) {
        state.withLock { $0.filters = filters }
    }

    /// Returns the filters that were stored last.
    public func pendingUnsubscribes() -> [String] { state.withLock { $0.filters } }
}
