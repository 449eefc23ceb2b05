import WireCore

/// A send that its transport has taken on and the peer has not acknowledged.
public struct StoredMessage: Hashable, Codable, Sendable, Identifiable {
    /// Which one it is; the store gives numbers out in the order of the calls.
    public var id: UInt64
    /// Where to.
    public var topic: String
    /// What.
    public var body: [UInt8]
    /// What kind of body it is.
    public var contentType: String?
    /// What is said beside it, in pairs of name and value.
    public var headers: [[String]]
    /// How surely it is delivered: 1 or 2.
    public var qos: Int
    /// Whether the server keeps it for those who subscribe later.
    public var isRetained: Bool

    /// Describes a message; the store sets its number.
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

/// Keeps what a transport has taken on until it is acknowledged, also beyond the end of the process: messages, and
/// that nobody listens any longer.
///
/// A message is stored before it is sent and removed when its call has ended, whichever way: then its caller knows. What
/// is still there when a transport begins was left by a process that ended in between; it goes out again, first and as new
/// messages, so that one of QoS 2 may arrive twice. Calls come from any thread, and should return soon.
public protocol SessionStore: Sendable {
    /// Stores a message for good before it returns.
    ///
    /// - Parameter message: The message, whose number counts for nothing.
    /// - Returns: Its number, greater than all before.
    /// - Throws: Anything; the send fails with `limitExceeded` and this as `underlying`, and nothing is sent.
    func insert(_ message: StoredMessage) throws -> StoredMessage.ID

    /// Forgets a message; one that is not there is none.
    func remove(_ id: StoredMessage.ID)

    /// All messages, in the order of their numbers.
    func messages() throws -> [StoredMessage]

    /// Forgets everything.
    func removeAll()

    /// Stores the topic filters that nobody listens to any longer, while the server is not known to have heard of
    /// that, for good and in place of those that are stored; by default nothing happens.
    func setPendingUnsubscribes(_ filters: [String])

    /// The topic filters that were stored last, which the server is told about when it still has the session; by default
    /// none.
    func pendingUnsubscribes() -> [String]
}

extension SessionStore {
    /// Does nothing.
    public func setPendingUnsubscribes(_ filters: [String]) {}

    /// None.
    public func pendingUnsubscribes() -> [String] { [] }
}

/// Keeps messages as long as the process lives, for several transports one after another and for tests.
public final class InMemorySessionStore: SessionStore {
    private struct State: Sendable {
        var messages: [StoredMessage.ID: StoredMessage] = [:]
        var last: StoredMessage.ID = 0
        var filters: [String] = []
    }

    private let state = Locked(State())

    /// Empty.
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

    /// Forgets a message.
    public func remove(_ id: StoredMessage.ID) {
        state.withLock { _ = $0.messages.removeValue(forKey: id) }
    }

    /// All messages, in the order of their numbers.
    public func messages() -> [StoredMessage] {
        state.withLock { $0.messages.values.sorted { $0.id < $1.id } }
    }

    /// Forgets everything.
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

    /// The filters that were stored last.
    public func pendingUnsubscribes() -> [String] { state.withLock { $0.filters } }
}
