import MQTTWire
import Waybill
import WaybillSession

/// Acknowledges received messages, over whatever connection has the session by then.
final class MQTTDeliveries: MessageAcknowledger {
    private let session: MQTTSession
    /// The messages that wait for the app to acknowledge them.
    let manual = ManualDeliveries<MQTTDeliveries>()

    init(session: MQTTSession) { self.session = session }

    /// Acknowledges a message that was subscribed to with manual acknowledgement.
    func acknowledge(
        _ id: Message.ID,
        isAccepted: Bool,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try manual.acknowledge(id, Acknowledgement(isAccepted: isAccepted), request)
    }

    /// Acknowledges a message without a listener, as the server expects (MQTT 5, 4.5.0-2).
    func drop(_ receipt: MQTTDeliveryReceipt) {
        acknowledge(receipt, Acknowledgement())
    }

    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ acknowledgement: Acknowledgement) {
        _ = take(receipt, acknowledgement)
    }

    func take(_ receipt: MQTTDeliveryReceipt, _ acknowledgement: Acknowledgement) -> MessageValidity
    {
        let reason: MQTTReasonCode = acknowledgement.isAccepted ? .success : .unspecifiedError
        return session.acknowledge(receipt, reason) ? .valid : .comesAgain
    }

    func validity(of receipt: MQTTDeliveryReceipt) -> MessageValidity {
        session.repeatedSerials.contains(receipt) ? .comesAgain : .valid
    }
}
