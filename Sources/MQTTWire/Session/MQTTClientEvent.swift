package import WireCore

/// What a client's core tells its driver.
package enum MQTTClientEvent: Sendable {
    /// The server has accepted the connection.
    case connected(MQTTConnack)
    /// An application message; one of QoS 1 or 2 comes with the receipt to give back when it is taken.
    case message(MQTTPublish, receipt: MQTTDeliveryReceipt?)
    /// The server has taken over a message of QoS 1 or 2, or has refused it (reason 0x80 and above).
    case published(any MQTTCall, MQTTReasonCode, MQTTProperties)
    /// The server has answered a SUBSCRIBE, one code per filter. With a backlog, unacknowledged messages may make the
    /// server hold back retained messages of an earlier SUBSCRIBE.
    case subscribed(any MQTTCall, MQTTSuback, hasBacklog: Bool)
    /// The server has answered an UNSUBSCRIBE.
    case unsubscribed(any MQTTCall, MQTTUnsuback)
    /// A call has waited for its acknowledgement long enough.
    case timedOut(any MQTTCall)
    /// A call will never be answered, since the connection is over.
    case abandoned(any MQTTCall)
    /// A packet as it went over the wire, while tracing is on.
    case trace(MQTTTrace)
    /// The connection is over; nothing follows.
    case closed(MQTTClosure)
}

/// Names an inbound message of QoS 1 or 2 until it is acknowledged.
package struct MQTTDeliveryReceipt: Hashable, Sendable {
    /// `atLeastOnce` or `exactlyOnce`.
    package let qos: MQTTQoS
    /// The message's number within its quality of service and connection.
    package let serial: UInt64
}

/// Why a connection is over.
package enum MQTTClosure: Hashable, Sendable {
    /// This side sent DISCONNECT.
    case disconnected
    /// The server refused the connection.
    case refused(MQTTReasonCode, MQTTProperties)
    /// The server takes no packet longer than this many bytes, fewer than an acknowledgement has.
    case packetSizeTooSmall(Int)
    /// The server sent DISCONNECT.
    case disconnectedByServer(MQTTReasonCode, MQTTProperties)
    /// The server broke the protocol.
    case violation(MQTTViolation)
    /// No CONNACK in time.
    case connectTimedOut
    /// No sign of life after a PINGREQ.
    case keepAliveTimedOut
    /// The server closed the stream.
    case endOfStream
}

/// One packet as it went over the wire.
package struct MQTTTrace: Hashable, Sendable {
    /// Whether this side sent it.
    package let isOutbound: Bool
    /// The packet in one line, without secrets or payload.
    package let text: String
    /// Its length on the wire in bytes.
    package let byteCount: Int
    /// The payload of a PUBLISH, which is shown only where the app has asked for it; empty for other packets.
    package let payload: ByteSlice
}

/// What a caller asked for that cannot be sent; nothing was written.
package enum MQTTSendError: Error, Hashable, Sendable {
    /// There is no connection.
    case notConnected
    /// The packet would break the rules of encoding.
    case encoding(MQTTEncodingError)
    /// The packet is longer than the server takes.
    case packetTooLarge(byteCount: Int, maximum: Int)
    /// The server takes this quality of service at the most.
    case qualityOfServiceNotSupported(maximum: MQTTQoS)
    /// The server keeps no retained messages.
    case retainNotSupported
    /// The server takes no wildcards.
    case wildcardSubscriptionsNotSupported
    /// The server takes no shared subscriptions.
    case sharedSubscriptionsNotSupported
    /// A client does not send subscription identifiers in PUBLISH (MQTT 5, 3.3.4-6).
    case subscriptionIdentifierNotAllowed
    /// All 65,535 packet identifiers are in use.
    case noPacketIdentifierLeft
}
