import MQTTWire
import WireCore

/// An MQTT session: what the broker keeps of a client beyond its connection (MQTT 5, 4.1).
struct LoopbackSession: Sendable {
    /// A client whose connection waits until the previous one of its session is over.
    struct Successor: Sendable {
        let client: UInt64
        let connect: MQTTConnect
    }

    let clientIdentifier: String
    /// The filters of its subscriptions without the names of shares, to find them again.
    var filters: Set<WireName> = []
    /// The connection that has the session; nil while the client is away.
    var client: UInt64?
    /// True when the connection is accepted: messages go to it.
    var isOpen = false
    /// The connection that gets the session next.
    var successor: Successor?
    /// The Session Expiry Interval in seconds; 0 ends the session with its connection, `.max` never.
    var expiry: UInt32 = 0
    /// The end of the session while the client is away; nil for never.
    var endsAt: WireInstant?
    /// The will, which is published if the connection ends without DISCONNECT.
    var will: MQTTWill?
    /// Messages under way in both directions, while no connection has them.
    var state = MQTTSessionState()
    private(set) var waiting: ArraySlice<MQTTOutgoingMessage> = []
    private(set) var waitingByteCount = 0

    init(clientIdentifier: String) {
        self.clientIdentifier = clientIdentifier
    }

    /// The interval that a CONNECT asks for: 3.1.1 knows only sessions that never expire (3.1.2.4).
    static func expiry(of connect: MQTTConnect) -> UInt32 {
        switch connect.version {
        case .v3_1_1: connect.cleanStart ? 0 : .max
        case .v5: connect.properties.sessionExpiryInterval ?? 0
        }
    }

    /// The number of messages of QoS 1 and 2 for a client that is away.
    var messageCount: Int { state.messageCount + waiting.count }

    /// The bytes of the messages that wait here.
    var byteCount: Int { waitingByteCount + state.queuedByteCount }

    // MARK: Messages for a client that is away

    /// Keeps a message for the next connection.
    ///
    /// Messages of QoS 0 are not kept, which is the server's choice (MQTT 5, 4.1).
    /// - Returns: How many messages were dropped instead, the oldest first.
    mutating func keep(_ message: MQTTOutgoingMessage, within limits: Limits) -> Int {
        guard message.publish.qos > .atMostOnce else { return 0 }
        waiting.append(message)
        waitingByteCount += Self.byteCount(message)
        var dropped = 0
        while waiting.count > limits.messageCount || waitingByteCount > limits.byteCount,
            let first = waiting.popFirst()
        {
            waitingByteCount -= Self.byteCount(first)
            dropped += 1
        }
        return dropped
    }

    /// Takes what the next connection sends.
    mutating func takeWaiting() -> ArraySlice<MQTTOutgoingMessage> {
        defer {
            waiting = []
            waitingByteCount = 0
        }
        return waiting
    }

    private static func byteCount(_ message: MQTTOutgoingMessage) -> Int {
        message.publish.topic.utf8.count + message.payload.wireByteCount
    }

    /// The limits of the messages that a session keeps for a client that is away.
    struct Limits: Sendable {
        let messageCount: Int
        let byteCount: Int
    }
}
