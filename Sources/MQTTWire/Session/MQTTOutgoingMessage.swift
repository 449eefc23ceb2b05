package import WireCore

/// A call that waits for the outcome of a request; the core stores it and returns it with the outcome.
package protocol MQTTCall: AnyObject, Sendable {}

/// An application message on its way to the peer.
package struct MQTTOutgoingMessage: Sendable {
    /// Topic name, quality of service, retain flag and properties; its own payload is empty.
    package var publish: MQTTPublish
    /// The payload, kept until the peer has accepted the message.
    package var payload: any WireBytes
    /// The number of the message in a store; nil without one.
    ///
    /// In a store that keeps the exchanges, the message's packet identifier follows from it, so that a later process
    /// knows the identifier. The stage of the exchange is stored before PUBREL is sent (``MQTTStorageStep``).
    package var storedNumber: UInt64?
    /// Whether a message of QoS 2 is sent as a new one when the server has lost the session.
    ///
    /// It may then arrive twice. No caller waits who could decide that.
    package var isSentAnew: Bool
    /// Whether a message of QoS 1 belongs to its connection only: it ends with it, and is never sent again.
    package var isSentOnce: Bool
    /// The second of the clock from which the Message Expiry Interval counts.
    private var acceptance: UInt32 = 0
    /// The connections that the server has ended after this message.
    package var suspicion: ReplaySuspicion.Record
    /// The end of the call as long as the message is not with the server's socket; nil for a time limit that counts from
    /// the call.
    ///
    /// The time limit of the confirmation begins when the last byte is given to the socket. With each loss of the
    /// connection this time counts again.
    package var lastsUntil: WireInstant?

    package init(
        publish: MQTTPublish,
        payload: any WireBytes,
        storedNumber: UInt64? = nil,
        isSentAnew: Bool = false,
        isSentOnce: Bool = false,
        suspicion: ReplaySuspicion.Record = .clear,
        lastsUntil: WireInstant? = nil
    ) {
        self.publish = publish
        self.payload = payload
        self.storedNumber = storedNumber
        self.isSentAnew = isSentAnew
        self.isSentOnce = isSentOnce && publish.qos == .atLeastOnce
        self.suspicion = suspicion
        self.lastsUntil = lastsUntil
    }

    /// Notes the time from which the Message Expiry Interval of the packet counts.
    package mutating func noteAccepted(at now: WireInstant) { acceptance = now.second }

    /// The packet as it is sent now: with the rest of its Message Expiry Interval (MQTT 5, 3.3.2.3.3).
    ///
    /// That is at least one second, because Mosquitto takes zero for no expiry.
    func packet(as identifier: UInt16, isDuplicate: Bool = false, at now: WireInstant)
        -> MQTTPublish
    {
        var packet = publish
        packet.packetIdentifier = identifier
        packet.isDuplicate = isDuplicate
        guard !publish.properties.isEmpty, let interval = publish.properties.messageExpiryInterval,
            case let waited = now.second &- acceptance, waited > 0
        else { return packet }
        packet.properties.messageExpiryInterval = waited < interval ? interval - waited : 1
        return packet
    }

    /// The packet identifier of a stored message; nil for a message with any free identifier.
    var reservedIdentifier: UInt16? { storedNumber.map(Self.reservedIdentifier) }

    /// The packet identifier of a stored message: its number modulo 32,768, plus 32,768.
    package static func reservedIdentifier(_ storedNumber: UInt64) -> UInt16 {
        UInt16(truncatingIfNeeded: storedNumber) | MQTTInflight.firstReserved
    }
}

extension WireInstant {
    /// The whole seconds of the clock; after a century they begin anew.
    fileprivate var second: UInt32 { UInt32(truncatingIfNeeded: nanoseconds / 1_000_000_000) }
}
