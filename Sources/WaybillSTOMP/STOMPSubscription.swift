import STOMPWire
import Waybill
import WaybillSession

/// Identifies a message that has to be acknowledged.
struct STOMPDeliveryName: Sendable {
    let token: STOMPAckToken
    /// The number of its connection, as ``STOMPSubscriptions`` counts them.
    let connection: UInt64
    /// The number of the message in its subscription, from 1.
    let number: UInt64
    /// The length of its body in bytes.
    let byteCount: UInt64
    /// The length in bytes of all bodies of its subscription up to and including its own.
    let totalByteCount: UInt64
}

/// One subscription, which outlives connections.
struct STOMPSubscription: Sendable {
    let request: STOMPMapping.Subscription
    let listener: MessageListener
    let policy: BufferPolicy
    /// Whether reading stops when too many messages wait; otherwise the subscription fails.
    let holdsBack: Bool
    /// Whether a server has ever confirmed the subscription, so that each connection subscribes again.
    var isEstablished = false
    /// Whether the next connection sends the first SUBSCRIBE.
    var isDeferred = false
    /// The number of its connection, as ``STOMPSubscriptions`` counts them.
    private(set) var connection: UInt64
    /// Whether an acknowledgement also covers all earlier messages.
    private(set) var isCumulative: Bool
    /// The number of received messages that have to be acknowledged, and the length of their bodies in bytes.
    private(set) var received = (messages: UInt64(0), bytes: UInt64(0))
    /// The part of them that was acknowledged or dropped.
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
        // With manual acknowledgement an ACK waits for its RECEIPT, which could not be read.
        holdsBack = policy.overflow == .holdBack && !listener.isManual
        self.connection = connection
        isCumulative = request.ackMode(in: version) == .client
    }

    /// Changes to another connection, over which the server delivers unacknowledged messages again.
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

    /// Whether the unacknowledged messages exceed the policy's limits; a single message never does.
    var isTooSlow: Bool {
        let waiting = received.messages &- settled.messages
        return waiting > 1
            && (waiting > UInt64(clamping: policy.messageLimit)
                || received.bytes &- settled.bytes > UInt64(clamping: policy.byteLimit))
    }
}

extension STOMPMapping.Subscription {
    /// Returns the ack mode in a version.
    func ackMode(in version: STOMPVersion) -> STOMPAckMode {
        // STOMP 1.0 cannot acknowledge single messages. In order, the cumulative mode has the same effect.
        let isOld = version == .v1_0 && isModeImplied
        return isOld && ackMode == .clientIndividual ? .client : ackMode
    }
}
