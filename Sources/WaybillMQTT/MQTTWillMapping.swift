import MQTTWire
import Waybill
import WaybillSession

/// Converts wills into the will of a CONNECT packet.
enum MQTTWillMapping {
    /// Converts a will.
    ///
    /// - Throws: `unsupported` for properties in 3.1.1; `invalidEntry` for a body that is declared as text and is none.
    static func will(
        _ will: Will,
        _ request: Request,
        _ version: MQTTVersion
    ) throws(WaybillError) -> MQTTWill {
        var packet = MQTTWill(
            topic: will.topic,
            payload: will.body.bytes,
            qos: MQTTMapping.quality(will.qos),
            isRetained: will.retain
        )
        guard version == .v5 else {
            try MQTTMapping.refuse(
                [.willDelay: will.delay != nil, .willProperties: will.hasProperties],
                request,
                version
            )
            return packet
        }
        try MQTTMapping.checkText(will.body, isText: will.isText, request)
        packet.properties.willDelayInterval = will.delay.map(MQTTMapping.seconds)
        packet.properties.payloadFormatIndicator = will.isText.map { $0 ? 1 : 0 }
        packet.properties.messageExpiryInterval = will.expiry.map(MQTTMapping.seconds)
        packet.properties.contentType = will.contentType
        packet.properties.responseTopic = will.responseTopic
        packet.properties.correlationData = will.correlationData
        packet.properties.userProperties = will.headers.pairs
        return packet
    }
}
