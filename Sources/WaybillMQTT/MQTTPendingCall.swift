import MQTTWire
import WaybillSession

/// The server's answer to a request.
enum MQTTAnswer: Sendable {
    case published(MQTTReasonCode, MQTTProperties)
    /// With whether retained messages of an earlier SUBSCRIBE may follow, too.
    case subscribed(MQTTSuback, hasBacklog: Bool)
    case unsubscribed(MQTTUnsuback)
}

/// One request that waits for its acknowledgement.
typealias MQTTPendingCall = PendingCall<MQTTAnswer>

extension PendingCall: MQTTCall where Answer == MQTTAnswer {}
