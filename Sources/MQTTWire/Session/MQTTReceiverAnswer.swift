/// What becomes of a call that waits for the end of an inbound exchange.
package enum MQTTCompletion: Hashable, Sendable {
    /// It waits.
    case waiting
    /// The exchange is over.
    case completed
    /// The server has lost the session of the message.
    case sessionLost
}

/// The application's answer to an inbound message of QoS 1 or 2, which PUBACK or PUBREC carries.
package struct MQTTReceiverAnswer: Hashable, Sendable {
    /// `success`, or the reason of a refusal (MQTT 5; 3.1.1 cannot express one).
    package var reasonCode: MQTTReasonCode
    /// Reason string and user properties; left out where the packet would exceed the server's limit (MQTT 5, 3.4.2-2 and
    /// 3.4.2-3).
    package var properties = MQTTProperties()

    package init(_ reasonCode: MQTTReasonCode) {
        self.reasonCode = reasonCode
    }
}
