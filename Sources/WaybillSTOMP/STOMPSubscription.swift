import STOMPWire
import Waybill
import WaybillSession

/// Names a message that is to be acknowledged.
package struct STOMPDeliveryName: Sendable {
    let token: STOMPAckToken
    /// The ``STOMPSubscription/order`` of the subscription: another one may have the id later.
    let generation: UInt64
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

    /// Messages, and the length of their bodies.
    struct Tally: Sendable {
        var messages: UInt64 = 0
        var bytes: UInt64 = 0
    }

    package let id: String
    /// The place in the order of subscribing, which no other subscription has.
    let order: UInt64
    let request: STOMPSubscribe
    let listener: MessageListener
    let policy: BufferPolicy
    package internal(set) var state: State
    /// The number of the connection over which it was made, and its version.
    private(set) var connection: UInt64
    private(set) var version: STOMPVersion
    /// The messages that came and are to be acknowledged.
    private(set) var received = Tally()
    /// The messages of these that were acknowledged or refused.
    private(set) var acknowledged = Tally()
    /// The skipped messages whose acknowledgement would cover earlier messages: rows without a gap, each with the number
    /// of its first message and the name of its last one.
    private(set) var skipped: [(first: UInt64, last: STOMPDeliveryName)] = []

    /// Whether the server is held back when too many messages wait; otherwise the subscription fails.
    ///
    /// An app that acknowledges by hand waits for receipts, which could then not be read.
    var holdsBack: Bool { policy.overflow == .holdBack && !listener.isManual }

    /// Whether an acknowledgement covers all messages before its own.
    var isCumulative: Bool { request.ackMode(in: version) == .client }

    /// Whether the app was told that the server's messages cannot be acknowledged.
    private(set) var isToldUnacknowledged = false

    /// Notes a message that cannot be acknowledged, although the subscription asks for it.
    /// - Returns: Whether the app is to be told.
    mutating func noteUnacknowledged() -> Bool {
        guard request.ackMode != .auto, !isToldUnacknowledged else { return false }
        isToldUnacknowledged = true
        return true
    }

    /// Goes over to another connection, which delivers again what was not acknowledged.
    mutating func move(to connection: UInt64, _ version: STOMPVersion) {
        self.connection = connection
        self.version = version
        received = Tally()
        acknowledged = Tally()
        skipped = []
    }

    mutating func noteReceived(byteCount: Int) {
        received.messages &+= 1
        received.bytes &+= UInt64(clamping: byteCount)
    }

    mutating func noteAcknowledged(_ name: STOMPDeliveryName) {
        guard name.connection == connection, name.generation == order else { return }
        if isCumulative {
            acknowledged.messages = max(acknowledged.messages, name.number)
            acknowledged.bytes = max(acknowledged.bytes, name.totalByteCount)
        } else {
            acknowledged.messages &+= 1
            acknowledged.bytes &+= name.byteCount
        }
    }

    /// Notes a message that was skipped, and whose acknowledgement covers all before it.
    mutating func noteSkipped(_ token: STOMPAckToken) {
        noteReceived(byteCount: 0)
        let name = STOMPDeliveryName(
            token: token,
            generation: order,
            connection: connection,
            number: received.messages,
            byteCount: 0,
            totalByteCount: received.bytes
        )
        if let row = skipped.last, row.last.number &+ 1 == name.number {
            skipped[skipped.count - 1].last = name
        } else {
            skipped.append((name.number, name))
        }
    }

    /// Takes the last skipped message before which everything is acknowledged; nil if there is none, or a later
    /// acknowledgement has covered it.
    mutating func takeSkipped() -> STOMPAckToken? {
        guard let row = skipped.first, row.first <= acknowledged.messages &+ 1 else { return nil }
        skipped.removeFirst()
        guard row.last.number > acknowledged.messages else { return takeSkipped() }
        noteAcknowledged(row.last)
        return row.last.token
    }

    /// Whether more waits to be acknowledged than may; one message may, whatever its length.
    var isTooSlow: Bool {
        let waiting = received.messages &- acknowledged.messages
        return waiting > 1
            && (waiting > UInt64(clamping: policy.messageLimit)
                || received.bytes &- acknowledged.bytes > UInt64(clamping: policy.byteLimit))
    }
}
