package import WireCore

/// An event of the client's core for its driver.
package enum MQTTClientEvent: Sendable {
    /// The server has accepted the connection.
    case connected(MQTTConnackPacket)
    /// The server asks for the next data of the authentication; ``MQTTClientConnection/authenticate(_:explaining:at:)``
    /// answers.
    case challenged(MQTTProperties)
    /// The server has accepted the connection, and this side has to verify the server with the last data.
    ///
    /// Until ``MQTTClientConnection/acceptServer(at:)`` nothing further is decoded or sent.
    case mustVerify(MQTTProperties)
    /// The server has accepted a re-authentication, with its last data.
    case reauthenticated(MQTTProperties)
    /// Application messages; those of QoS 1 and 2 have a receipt to return when the message is taken.
    case messages(MQTTArrivals)
    /// A message above this side's maximum, which was acknowledged and not kept.
    case skipped(MQTTSkippedMessage)
    /// The server has accepted a message of QoS 1 or 2, or has refused it (reason 0x80 and above).
    case published(any MQTTCall, MQTTReasonCode, MQTTProperties)
    /// The server has answered a SUBSCRIBE, with one code per filter.
    ///
    /// With a backlog, unacknowledged messages may make the server hold back retained messages of an earlier SUBSCRIBE.
    case subscribed(any MQTTCall, MQTTSuback, hasBacklog: Bool)
    /// The server has answered an UNSUBSCRIBE.
    case unsubscribed(any MQTTCall, MQTTUnsuback)
    /// The exchange of a received QoS 2 message is over.
    case completed(any MQTTCall)
    /// The exchange of a received QoS 2 message does not continue, because the server has lost the session.
    case sessionLost(any MQTTCall)
    /// The stored message with this number is no suspect any more (``ReplaySuspicion``).
    case cleared(UInt64)
    /// A step that has to be stored before the core goes on with it.
    case mustStore(MQTTStorageStep)
    /// The time limit of a call has passed.
    case timedOut(any MQTTCall)
    /// A call will get no answer, because the connection has ended.
    case abandoned(any MQTTCall)
    /// A packet on the wire, while tracing is on.
    case trace(MQTTTrace)
    /// The connection ended; no event follows.
    case closed(MQTTClosure)
}

/// Identifies an inbound message of QoS 1 or 2 until it is acknowledged.
package struct MQTTDeliveryReceipt: Hashable, Sendable {
    /// `atLeastOnce` or `exactlyOnce`.
    package let qos: MQTTQoS
    /// The message's number within its quality of service and connection.
    package let serial: UInt64
}

/// The reason why a connection ended.
package enum MQTTClosure: Hashable, Sendable {
    /// This side sent DISCONNECT.
    case disconnected
    /// The server refused the connection.
    case refused(MQTTReasonCode, MQTTProperties)
    /// The server's maximum packet size is smaller than an acknowledgement.
    case packetSizeTooSmall(Int)
    /// The server sent DISCONNECT.
    case disconnectedByServer(MQTTReasonCode, MQTTProperties)
    /// The server violated the protocol.
    case violation(MQTTViolation)
    /// No CONNACK arrived in time.
    case connectTimedOut
    /// This side has given up an authentication.
    case authenticationAbandoned
    /// The server did not complete a re-authentication in time.
    case authenticationTimedOut
    /// Nothing arrived after a PINGREQ.
    case keepAliveTimedOut
    /// The server closed the stream.
    case endOfStream
}

/// A packet on the wire.
package struct MQTTTrace: Hashable, Sendable {
    package let isOutbound: Bool
    package let kind: MQTTPacketKind
    /// The topic of a PUBLISH, also of one that names it by an alias, or the first filter; nil for other packets.
    package let topic: String?
    /// The packet in one line, without secrets or payload.
    package let text: String
    /// Its length on the wire in bytes.
    package let byteCount: Int
    /// The payload of a PUBLISH, shown only if the app asks for it; empty for other packets.
    package let payload: ByteSlice
}

/// The reason why a request cannot be sent; nothing was written.
package enum MQTTSendError: Error, Hashable, Sendable {
    case notConnected
    /// The packet would violate the encoding rules.
    case encoding(MQTTEncodingError)
    /// The packet exceeds the server's maximum.
    case packetTooLarge(byteCount: Int, maximum: Int)
    /// The server supports a lower quality of service only.
    case qualityOfServiceNotSupported(maximum: MQTTQoS)
    /// The server does not support retained messages.
    case retainNotSupported
    /// The server does not support wildcards.
    case wildcardSubscriptionsNotSupported
    /// The server does not support shared subscriptions.
    case sharedSubscriptionsNotSupported
    /// A client does not send subscription identifiers in PUBLISH (MQTT 5, 3.3.4-6).
    case subscriptionIdentifierNotAllowed
    /// No authentication exchange waits for this side, or another one is under way.
    case authenticationNotDue
    /// All 65,535 packet identifiers are in use.
    case noPacketIdentifierLeft
}
