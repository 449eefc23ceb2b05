import STOMPWire
import Waybill
import WaybillSession

/// What names a message that is to be acknowledged.
struct STOMPDeliveryName: Sendable {
    let token: STOMPAckToken
    /// The connection over which it came, as ``STOMPSubscriptions`` counts them.
    let connection: UInt64
    /// Which message of its subscription it is, from 1.
    let number: UInt64
    /// The length of its body.
    let byteCount: UInt64
    /// The length of all bodies of its subscription up to its own.
    let totalByteCount: UInt64
}

/// One subscription, over as many connections as it takes.
struct STOMPSubscription: Sendable {
    let request: STOMPMapping.Subscription
    let listener: MessageListener
    let policy: BufferPolicy
    /// Whether the server is held back when too many messages wait; else the subscription fails.
    let holdsBack: Bool
    /// Whether the server has confirmed it at any time, so that it is made again.
    var isEstablished = false
    /// Whether it waits for the first connection that there is.
    var isDeferred = false
    /// Over which connection it was made, as ``STOMPSubscriptions`` counts them.
    private(set) var connection: UInt64
    /// Whether an acknowledgement covers all messages before its own.
    private(set) var isCumulative: Bool
    /// How many messages came that are to be acknowledged, and the length of their bodies.
    private(set) var received = (messages: UInt64(0), bytes: UInt64(0))
    /// How many of them were, one way or the other.
    private var settled = (messages: UInt64(0), bytes: UInt64(0))

    init(
        _ request: STOMPMapping.Subscription,
        listener: MessageListener,
        policy: BufferPolicy,
        connection: UInt64,
        version: STOMPVersion
    ) {
        self.request = request
        self.listener = listener
        self.policy = policy
        // Whoever acknowledges by hand waits for receipts, which could then not be read.
        holdsBack = policy.overflow == .holdBack && !listener.isManual
        self.connection = connection
        isCumulative = request.ackMode(in: version) == .client
    }

    /// Goes over to another connection, which delivers again what was not acknowledged.
    mutating func move(to connection: UInt64, _ version: STOMPVersion) {
        self.connection = connection
        isCumulative = request.ackMode(in: version) == .client
        received = (0, 0)
        settled = (0, 0)
    }

    mutating func noteReceived(byteCount: Int) {
        received.messages &+= 1
        received.bytes &+= UInt64(clamping: byteCount)
    }

    mutating func noteSettled(_ name: STOMPDeliveryName) {
        guard name.connection == connection else { return }
        if isCumulative {
            settled.messages = max(settled.messages, name.number)
            settled.bytes = max(settled.bytes, name.totalByteCount)
        } else {
            settled.messages &+= 1
            settled.bytes &+= name.byteCount
        }
    }

    /// Whether more waits to be acknowledged than may; one message may, whatever its length.
    var isTooSlow: Bool {
        let waiting = received.messages &- settled.messages
        return waiting > 1
            && (waiting > UInt64(clamping: policy.messageLimit)
                || received.bytes &- settled.bytes > UInt64(clamping: policy.byteLimit))
    }
}

extension STOMPMapping.Subscription {
    /// How messages are acknowledged in a version.
    func ackMode(in version: STOMPVersion) -> STOMPAckMode {
        // 1.0 knows no acknowledgement of single messages; in order, the cumulative one amounts to it.
        let isOld = version == .v1_0 && isModeImplied
        return isOld && ackMode == .clientIndividual ? .client : ackMode
    }
}
