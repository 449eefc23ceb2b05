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
        var options = OptionReader(Request(topic: will.topic, command: will.command))
        var packet = MQTTWill(
            topic: will.topic,
            payload: will.body.bytes,
            qos: MQTTMapping.quality(will.qos),
            isRetained: options.take(.retained)
        )
        guard version == .v5 else {
            try finish(options, request, version)
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
        let format = options.take(.payloadFormat)
        packet.properties.willDelayInterval = will.delay.map(MQTTMapping.seconds)
        packet.properties.payloadFormatIndicator = format?.rawValue
        packet.properties.messageExpiryInterval = options.take(.expiry).map(MQTTMapping.seconds)
        packet.properties.contentType = will.contentType
        packet.properties.responseTopic = options.take(.responseTopic)
        packet.properties.correlationData = options.take(.correlationData)
        packet.properties.userProperties = will.headers.pairs
        try finish(options, request, version)
        try MQTTMapping.checkText(will.body, format, request)
        return packet
    }

    /// Refuses the first option that was not taken.
    ///
    /// The error is about the connect request, which is the one that can leave the option out.
    private static func finish(
        _ options: consuming OptionReader,
        _ request: Request,
        _ version: MQTTVersion
    ) throws(WaybillError) {
        let name = MQTTMapping.name(of: version)
        do {
            try options.finish(for: name)
        } catch {
            guard let option = error.option else { throw error }
            throw .unsupported(option, "\(name) does not support \(option) for a will", in: request)
        }
    }
}
