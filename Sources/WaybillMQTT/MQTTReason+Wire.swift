import MQTTWire
import Waybill

extension MQTTReason {
    /// Converts the reason of a server's packet.
    init(_ code: MQTTReasonCode, _ properties: MQTTProperties) {
        self.init(
            Code(rawValue: code.rawValue),
            text: properties.reasonString,
            userProperties: Headers(properties.userProperties),
            serverReference: properties.serverReference
        )
    }
}
