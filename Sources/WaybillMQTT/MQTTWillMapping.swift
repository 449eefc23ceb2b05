import MQTTWire
import Waybill
import WaybillSession

/// Converts wills into the will of a CONNECT packet.
enum MQTTWillMapping {
    /// Converts a will.
    ///
    /// - Throws: `unsupported` for properties in 3.1.1, and for options that a will does not have; `invalidEntry` for a
    ///   body that is declared as text and is none.
    static func will(
        _ will: Will,
        _ request: Request,
        _ version: MQTTVersion
    ) throws(WaybillError) -> MQTTWill {
        try checkOptions(will, request, version)
        var packet = MQTTWill(
            topic: will.topic,
            payload: will.body.bytes,
            qos: MQTTMapping.quality(will.qos),
            isRetained: will.command.isSet(.retained)
        )
        guard version == .v5 else {
            try MQTTMapping.refuse(
                [
                    .willDelay: will.delay != nil, .contentType: will.contentType != nil,
                    .headers: !will.headers.isEmpty,
                ],
                request,
                version
            )
            return packet
        }
        let format = will[.payloadFormat]
        try MQTTMapping.checkText(will.body, format, request)
        packet.properties.willDelayInterval = will.delay.map(MQTTMapping.seconds)
        packet.properties.payloadFormatIndicator = format?.rawValue
        packet.properties.messageExpiryInterval = will[.expiry].map(MQTTMapping.seconds)
        packet.properties.contentType = will.contentType
        packet.properties.responseTopic = will[.responseTopic]
        packet.properties.correlationData = will[.correlationData]
        packet.properties.userProperties = will.headers.pairs
        return packet
    }

    // Not by OptionReader: the error is about the connect request, which is the one that leaves the option out.
    private static func checkOptions(
        _ will: Will,
        _ request: Request,
        _ version: MQTTVersion
    ) throws(WaybillError) {
        let known: [OptionName] =
            version == .v5
            ? [.retained, .payloadFormat, .expiry, .responseTopic, .correlationData] : [.retained]
        for option in will.command.options where !known.contains(option) {
            let name = MQTTMapping.name(of: version)
            throw .unsupported(option, "\(name) does not support \(option) for a will", in: request)
        }
    }
}
