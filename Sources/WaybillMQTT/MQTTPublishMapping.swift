import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// Converts sends into PUBLISH packets, and received PUBLISH packets into messages.
enum MQTTPublishMapping {
    // MARK: Sends

    /// Converts a send.
    ///
    /// - Throws: `unsupported`, `invalidEntry`.
    static func packet(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTPublish {
        if request.expectsReply { try checkReply(request, version: version) }
        let hasOptions = !request.command.isPlain
        let isPlain = request.headers.isEmpty && request.contentType == nil && !hasOptions
        let properties = isPlain ? MQTTProperties() : try properties(request, version: version)
        // Assembled at the end, because the compiler copies a value that a later error may discard.
        return MQTTPublish(
            topic: request.topic ?? "",
            qos: MQTTMapping.quality(request.command.qos),
            isRetained: hasOptions && request.command.isSet(.retained),
            properties: properties
        )
    }

    private static func properties(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTProperties {
        var properties = MQTTProperties()
        if version == .v5 {
            // Checked first, because setting nil searches the properties.
            if let contentType = request.contentType { properties.contentType = contentType }
        } else if !request.headers.isEmpty {
            try MQTTMapping.refuse([.headers: request.statesHeaders], request, version)
        }
        if !request.command.isPlain { try add(request, to: &properties, version: version) }
        if version == .v5 { properties.userProperties = request.headers.pairs }
        return properties
    }

    /// Adds the options of a send to the properties of its packet.
    private static func add(
        _ request: Request,
        to properties: inout MQTTProperties,
        version: MQTTVersion
    ) throws(WaybillError) {
        var options = OptionReader(request)
        // Read where the packet is assembled or sent.
        _ = options.take(.retained)
        _ = options.take(.timeout)
        _ = options.take(.idempotent)
        _ = options.take(.waitsForConnection)
        let isSentOnce: Bool = options.take(.sentOnce)
        if isSentOnce, request.command.qos == .exactlyOnce {
            // An exchange of QoS 2 that is given up half-way blocks its packet identifier at the server.
            throw .unsupported(.sentOnce, "MQTT does not support sentOnce with QoS 2", in: request)
        }
        if version == .v5 {
            _ = options.take(.expectsReply)
            if let expiry = options.take(.expiry) {
                properties.messageExpiryInterval = MQTTMapping.seconds(expiry)
            }
            if let topic = options.take(.responseTopic) { properties.responseTopic = topic }
            if let data = options.take(.correlationData) { properties.correlationData = data }
            if let format = options.take(.payloadFormat) {
                try MQTTMapping.checkText(request.body, format, request)
                properties.payloadFormatIndicator = format.rawValue
            }
        }
        try options.finish(for: MQTTMapping.name(of: version))
    }

    /// Refuses options that exclude a reply.
    private static func checkReply(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        guard version == .v5 else {
            throw .unsupported(
                .expectsReply,
                "MQTT 3.1.1 does not support replies to a send",
                in: request
            )
        }
        let command = request.command
        guard command[.responseTopic] == nil, command[.correlationData] == nil else {
            throw WaybillError(
                .invalidEntry,
                "the answer is awaited here: response topic and correlation data are not an entry's to set"
            ).about(request)
        }
    }

    /// Checks whether a message can be sent.
    ///
    /// - Throws: `unsupported`, `invalidEntry`, `limitExceeded`.
    static func check(
        _ publish: MQTTPublish,
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) {
        let writer = MQTTPacketWriter(version: version, isTracing: false)
        do {
            try writer.check(MQTTOutgoingMessage(publish: publish, payload: request.body))
        } catch {
            throw MQTTErrorMapping.error(error, request)
        }
    }

    // MARK: Messages

    /// Makes a received message, with a copy of its payload.
    static func message(
        _ arrivals: MQTTArrivals,
        _ index: Int,
        _ run: MQTTArrivals.Run,
        _ copier: inout SliceCopier
    ) -> Message {
        guard !run.hasProperties else { return message(arrivals.publish(at: index)) }
        return .plain(
            run.topic,
            Payload(sharing: arrivals.payload(at: index, copiedBy: &copier)),
            MQTTMapping.quality(arrivals.qos(at: index)),
            isRetained: run.isRetained,
            isDuplicate: arrivals.isDuplicate(at: index)
        )
    }

    /// Notes the numbers of the app's choice that a received message matched.
    static func name(_ message: inout Message, _ identifiers: [UInt32]) {
        message[.subscriptionIdentifiers] = identifiers
    }

    static func message(_ publish: MQTTPublish) -> Message {
        guard !publish.properties.isEmpty else {
            return Message(
                topic: publish.topic,
                body: Payload(publish.payload),
                qos: MQTTMapping.quality(publish.qos),
                isRetained: publish.isRetained,
                isDuplicate: publish.isDuplicate
            )
        }
        let properties = publish.properties
        var values = KeyedValues()
        values[.responseTopic] = properties.responseTopic
        values[.correlationData] = properties.correlationData
        values[.expiry] = properties.messageExpiryInterval.map { .seconds(Int64($0)) }
        values[.payloadFormat] = properties.payloadFormatIndicator.map { $0 == 1 ? .text : .bytes }
        return Message(
            topic: publish.topic,
            body: Payload(publish.payload),
            headers: Headers(properties.userProperties),
            contentType: properties.contentType,
            qos: MQTTMapping.quality(publish.qos),
            isRetained: publish.isRetained,
            isDuplicate: publish.isDuplicate,
            values: values
        )
    }
}
