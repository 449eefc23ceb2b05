import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// Messages that the server answers by ending the connection (``WireCore/ReplaySuspicion``).
extension MQTTSession {
    /// Stores the number of suspicious ends in a row, if the message is in a store.
    func storeEnds(_ count: Int, of number: UInt64?) {
        if let number { messageStore?.setSuspiciousEnds(count, of: number) }
    }

    /// Carries out what the end of a connection says about a message.
    ///
    /// A message that has failed is reported, also if no call waits for it.
    ///
    /// - Parameters:
    ///   - finding: What it says.
    ///   - cause: The cause of the end.
    ///   - events: Receives the report, unless the call makes one.
    func note(
        _ finding: MQTTReplayFinding,
        _ cause: WaybillError?,
        reportingTo events: TransportEventSource
    ) {
        switch finding {
        case .none, .unclear: break
        case .counted(let ends, let number): storeEnds(ends, of: number)
        case .rejected(let rejected):
            let mapped = MQTTErrorMapping.error(rejected.dropped.cause)
            let isUnauthorized = cause?.mqttReason?.code == .notAuthorized
            let code = isUnauthorized ? .unauthorized : mapped.code
            let error = WaybillError(code, mapped.message, restating: cause).arriving(true)
            switch rejected.dropped.call {
            case let call as MQTTPendingCall: return call.fail(error)
            case let call as MQTTStoredCall: if call.drop(rejected.dropped) { return }
            default: break
            }
            let publish = rejected.message.publish
            events.reportSend(
                publish.topic,
                byteCount: rejected.message.payload.wireByteCount,
                qos: MQTTMapping.quality(publish.qos),
                error,
                since: nil
            )
        }
    }
}
