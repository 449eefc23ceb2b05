import MQTTWire
import WaybillSession

/// The server's answer to a request.
enum MQTTAnswer: Sendable {
    case published(MQTTReasonCode, MQTTProperties)
    case subscribed(MQTTSuback)
    case unsubscribed(MQTTUnsuback)
}

/// One request that waits for its acknowledgement.
typealias MQTTPendingCall = PendingCall<MQTTAnswer>

extension PendingCall: MQTTCall where Answer == MQTTAnswer {}
