import MQTTWire
import WaybillSession

/// What the server answers to a request.
enum MQTTAnswer: Sendable {
    case published(MQTTReasonCode, MQTTProperties)
    case subscribed(MQTTSuback)
    case unsubscribed(MQTTUnsuback)
}

/// One request that waits for its acknowledgement.
typealias MQTTPendingCall = PendingCall<MQTTAnswer>

extension PendingCall: MQTTCall where Answer == MQTTAnswer {}
