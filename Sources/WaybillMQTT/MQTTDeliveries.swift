import MQTTWire
import Waybill
import WaybillSession

/// Acknowledges received messages, over whatever connection has the session by then.
final class MQTTDeliveries: DeliverySettler {
    private let session: MQTTSession
    /// The messages that wait for the app to acknowledge them.
    let manual = ManualDeliveries<MQTTDeliveries>()

    init(session: MQTTSession) { self.session = session }

    /// Settles a message that was subscribed to with manual acknowledgement.
    func settle(
        _ id: Message.ID,
        isAccepted: Bool,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try manual.settle(id, Settlement(isAccepted: isAccepted), request)
    }

    /// Acknowledges a message without a listener, as the server expects (MQTT 5, 4.5.0-2).
    func drop(_ receipt: MQTTDeliveryReceipt?) {
        if let receipt { settle(receipt, Settlement()) }
    }

    func settle(_ receipt: MQTTDeliveryReceipt, _ settlement: Settlement) {
        _ = take(receipt, settlement)
    }

    func take(_ receipt: MQTTDeliveryReceipt, _ settlement: Settlement) -> MessageValidity {
        let reason: MQTTReasonCode = settlement.isAccepted ? .success : .unspecifiedError
        return session.acknowledge(receipt, reason) ? .valid : .comesAgain
    }

    func validity(of receipt: MQTTDeliveryReceipt) -> MessageValidity {
        session.repeatedSerials.contains(receipt) ? .comesAgain : .valid
    }
}
