import STOMPWire
import Waybill
import WaybillSession

/// Names a message that is to be acknowledged.
package struct STOMPDeliveryName: Sendable {
    let token: STOMPAckToken
    /// The number of the connection over which the message came.
    let connection: UInt64
    /// The number of the message in its subscription, from 1.
    let number: UInt64
    /// The length of the body.
    let byteCount: UInt64
    /// The length of all bodies of the subscription up to this one.
    let totalByteCount: UInt64
}

/// A subscription, over as many connections as it takes.
package struct STOMPSubscription: Sendable {
    /// What the server knows of the subscription.
    package enum State: Hashable, Sendable {
        /// SUBSCRIBE is under way, and the server has never confirmed it.
        case subscribing
        /// The next connection subscribes for the first time.
        case wanted
        /// The server has confirmed it, so that each connection makes it again.
        case subscribed
    }

    package let id: String
    let request: STOMPMapping.Subscription
    let listener: MessageListener
    let policy: BufferPolicy
    /// Whether the server is held back when too many messages wait; otherwise the subscription fails.
    let holdsBack: Bool
    package internal(set) var state: State
    /// The number of the connection over which it was made.
    private(set) var connection: UInt64
    /// Whether an acknowledgement covers all messages before its own.
    private(set) var isCumulative: Bool
    /// The messages that came and are to be acknowledged, and the length of their bodies.
    private(set) var received = (messages: UInt64(0), bytes: UInt64(0))
    /// The messages of these that were acknowledged or refused.
    private var acknowledged = (messages: UInt64(0), bytes: UInt64(0))

    init(
        _ id: String,
        _ request: STOMPMapping.Subscription,
        listener: MessageListener,
        policy: BufferPolicy,
        state: State,
        connection: UInt64,
        version: STOMPVersion
    ) {
        self.id = id
        self.request = request
        self.listener = listener
        self.policy = policy
        // An app that acknowledges by hand waits for receipts, which could then not be read.
        holdsBack = policy.overflow == .holdBack && !listener.isManual
        self.state = state
        self.connection = connection
        isCumulative = request.ackMode(in: version) == .client
    }

    /// Goes over to another connection, which delivers again what was not acknowledged.
    mutating func move(to connection: UInt64, _ version: STOMPVersion) {
        self.connection = connection
        isCumulative = request.ackMode(in: version) == .client
        received = (0, 0)
        acknowledged = (0, 0)
    }

    mutating func noteReceived(byteCount: Int) {
        received.messages &+= 1
        received.bytes &+= UInt64(clamping: byteCount)
    }

    mutating func noteAcknowledged(_ name: STOMPDeliveryName) {
        guard name.connection == connection else { return }
        if isCumulative {
            acknowledged.messages = max(acknowledged.messages, name.number)
            acknowledged.bytes = max(acknowledged.bytes, name.totalByteCount)
        } else {
            acknowledged.messages &+= 1
            acknowledged.bytes &+= name.byteCount
        }
    }

    /// Whether more waits to be acknowledged than may; one message may, whatever its length.
    var isTooSlow: Bool {
        let waiting = received.messages &- acknowledged.messages
        return waiting > 1
            && (waiting > UInt64(clamping: policy.messageLimit)
                || received.bytes &- acknowledged.bytes > UInt64(clamping: policy.byteLimit))
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
