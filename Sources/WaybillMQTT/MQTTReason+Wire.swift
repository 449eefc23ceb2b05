import MQTTWire
import Waybill

extension MQTTReason {
    /// What a packet of the server says.
    init(_ code: MQTTReasonCode, _ properties: MQTTProperties) {
        self.init(
            Code(rawValue: code.rawValue),
            text: properties.reasonString,
            userProperties: Headers(properties.userProperties),
            serverReference: properties.serverReference
        )
    }
}
