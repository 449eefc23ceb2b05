/// Options for acknowledging a message, or for refusing it.
///
/// The headers of the entry become user properties of MQTT 5, or headers of STOMP's frame.
public struct AcknowledgementOptions: Hashable, Sendable {
    /// The transaction to which the acknowledgement belongs (STOMP).
    public var transaction: String?
    /// The reason code of a refusal (MQTT 5, tables 3-4 and 3-5); nil for `.unspecifiedError`.
    ///
    /// The codes are 0x80, 0x83, 0x87, 0x90, 0x91, 0x97 and 0x99; others, and any code of an `ack`, are refused with
    /// `invalidEntry`.
    public var reasonCode: MQTTReason.Code?
    /// A reason string (MQTT 5, 3.4.2.2.2 and 3.5.2.2.2); left out where the packet would exceed the server's limit.
    ///
    /// Reason string and headers are also left out if another connection has followed before the packet is sent.
    public var reason: String?
    /// Whether the request completes only when the exchange of a QoS 2 message is over (MQTT): PUBREC was sent, PUBREL
    /// received, and PUBCOMP sent.
    ///
    /// False by default: the request completes at once. At QoS 1 there is nothing to wait for. A refusal ends the
    /// exchange itself. A lost connection does not end the wait, because the exchange continues over the next
    /// connection. The request fails with `connectionLost` if the server has lost the session, or if no connection
    /// follows, and with `timedOut` after the transport's timeout of acknowledgements. The message counts as
    /// acknowledged in any case.
    public var awaitsCompletion: Bool

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        transaction: String? = nil,
        reasonCode: MQTTReason.Code? = nil,
        reason: String? = nil,
        awaitsCompletion: Bool = false
    ) {
        self.transaction = transaction
        self.reasonCode = reasonCode
        self.reason = reason
        self.awaitsCompletion = awaitsCompletion
    }

    /// Whether the options carry a reason for the server.
    package var statesReason: Bool { reasonCode != nil || reason != nil }
}
