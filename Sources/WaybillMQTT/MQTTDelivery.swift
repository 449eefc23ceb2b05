import MQTTWire
import Waybill
import WireCore

/// A received message of QoS 1 or 2 until all its listeners are done with it; then it is acknowledged.
final class MQTTDelivery: MessageDelivery {
    private let receipt: MQTTDeliveryReceipt
    private weak let session: MQTTSession?
    private let state: Locked<(left: Int, reason: MQTTReasonCode)>

    init(_ receipt: MQTTDeliveryReceipt, session: MQTTSession, listeners: Int) {
        self.receipt = receipt
        self.session = session
        state = Locked((listeners, .success))
    }

    func messageWasTaken() { settle(.success) }

    /// A message that nobody takes is acknowledged, too (MQTT 5, 4.5.0-2): else it would block the others.
    func messageWasDropped() { settle(.success) }

    /// One listener is done.
    func settle(_ reason: MQTTReasonCode) {
        let (isLast, reason) = state.withLock { state in
            state.left -= 1
            if reason.isFailure { state.reason = reason }
            return (state.left == 0, state.reason)
        }
        if isLast { session?.acknowledge(receipt, reason) }
    }
}

/// A delivery that the app settles by hand, by the message's name.
final class MQTTManualDelivery: MessageDelivery {
    private let identifier: UInt64
    private weak let session: MQTTSession?

    init(identifier: UInt64, session: MQTTSession) {
        self.identifier = identifier
        self.session = session
    }

    func messageWasTaken() {}

    func messageWasDropped() {
        _ = session?.settleManually(identifier, .success)
    }
}
