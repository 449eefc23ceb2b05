package import WireCore

/// PUBLISH: an application message (MQTT 5, 3.3).
package struct MQTTPublish: Hashable, Sendable {
    /// The topic name; empty only with a topic alias.
    package var topic: String
    package var qualityOfService: MQTTQualityOfService
    package var isRetained: Bool
    package var isDuplicate: Bool
    /// Zero at QoS 0, which has none (MQTT 5, 2.2.1-2).
    package var packetIdentifier: UInt16
    package var properties: MQTTProperties
    /// The message; decoded ones share the memory they were received in.
    package var payload: ByteSlice

    @inlinable
    package init(
        topic: String,
        qualityOfService: MQTTQualityOfService = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        packetIdentifier: UInt16 = 0,
        properties: MQTTProperties = MQTTProperties(),
        payload: ByteSlice = .empty
    ) {
        self.topic = topic
        self.qualityOfService = qualityOfService
        self.isRetained = isRetained
        self.isDuplicate = isDuplicate
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.payload = payload
    }

    /// The largest remaining length: 268,435,455 (MQTT 5, 1.5.5).
    package static let maximumRemainingLength = 268_435_455

    /// The largest packet: that and the five bytes of the fixed header.
    package static let maximumPacketSize = maximumRemainingLength + 5

    /// The first byte of the fixed header (3.3.1).
    private var firstByte: UInt8 {
        MQTTPacketKind.publish.rawValue << 4 | (isDuplicate ? 0x08 : 0)
            | qualityOfService.rawValue << 1 | (isRetained ? 0x01 : 0)
    }

    /// Writes the packet with its own payload.
    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        try encode(into: &writer, version: version, payload: payload)
    }

    /// Writes the packet with a payload that is not its own, copying it once.
    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion,
        payload: some WireBytes
    ) throws(MQTTEncodingError) {
        guard properties.isEmpty else {
            return try encodeWithProperties(into: &writer, version: version, payload: payload)
        }
        let topicCount = topic.utf8.count
        guard topicCount <= MQTTTopicName.maximumByteCount else {
            throw .fieldTooLong("topic name")
        }
        guard topicCount > 0 else { throw .topicNameEmpty }
        let hasIdentifier = qualityOfService != .atMostOnce
        try checkIdentifier()
        let payloadCount = payload.wireByteCount
        let remainingLength =
            2 + topicCount + (hasIdentifier ? 2 : 0) + (version == .v5 ? 1 : 0) + payloadCount
        guard remainingLength <= Self.maximumRemainingLength else {
            throw .packetTooLarge(byteCount: remainingLength)
        }
        let start = writer.count
        writer.reserve(total: remainingLength + 16)
        writer.append(headerOf: firstByte, remainingLength, topicCount)
        if let error = Self.append(topic, to: &writer) {
            writer.truncate(to: start)
            throw error
        }
        if hasIdentifier { writer.append(packetIdentifier) }
        if version == .v5 { writer.append(0 as UInt8) }
        payload.withWireBytes { writer.append($0) }
    }

    /// QoS 0 has neither identifier nor repetition (MQTT 5, 2.2.1-2 and 3.3.1-2).
    private func checkIdentifier() throws(MQTTEncodingError) {
        if qualityOfService == .atMostOnce {
            guard packetIdentifier == 0 else { throw .packetIdentifierNotAllowed }
            guard !isDuplicate else { throw .duplicateNotAllowed }
        } else {
            guard packetIdentifier != 0 else { throw .packetIdentifierMissing }
        }
    }

    /// Copies the topic name and then looks at what was copied.
    private static func append(_ topic: String, to writer: inout ByteWriter) -> MQTTEncodingError? {
        let byte = topic.utf8.withContiguousStorageIfAvailable { bytes -> UInt8? in
            writer.append(UnsafeRawBufferPointer(bytes))
            return MQTTTopicName.firstForbidden(in: UnsafeRawBufferPointer(bytes))
        }
        guard let byte else {
            // A bridged string: copied once to a native one, which has contiguous storage.
            var native = topic
            native.makeContiguousUTF8()
            return append(native, to: &writer)
        }
        guard let byte else { return nil }
        return byte == 0 ? .nullCharacter("topic name") : .topicNameHasWildcard
    }

    private func encodeWithProperties(
        into writer: inout ByteWriter,
        version: MQTTVersion,
        payload: some WireBytes
    ) throws(MQTTEncodingError) {
        if !topic.isEmpty || properties.topicAlias == nil { try MQTTTopicName.validate(topic) }
        let hasIdentifier = qualityOfService != .atMostOnce
        try checkIdentifier()
        guard payload.wireByteCount <= Self.maximumRemainingLength else {
            throw .packetTooLarge(byteCount: payload.wireByteCount)
        }
        // Behind the place that the fixed header may take, and moved up to what it does take.
        let start = writer.count
        let place = 5
        writer.reserve(total: place + topic.utf8.count + payload.wireByteCount + 256)
        writer.append(lowBytes: place, of: 0)
        do throws(MQTTEncodingError) {
            try writer.append(string: topic, "topic name")
            if hasIdentifier { writer.append(packetIdentifier) }
            try writer.append(properties, .publish, version)
            let remainingLength = writer.count - start - place + payload.wireByteCount
            guard remainingLength <= Self.maximumRemainingLength else {
                throw .packetTooLarge(byteCount: remainingLength)
            }
            let (length, byteCount) = ByteWriter.variableByteInteger(remainingLength)
            let word = UInt64(firstByte) | length << 8
            writer.fillPlace(at: start, of: place, withLow: 1 + byteCount, of: word)
        } catch {
            writer.truncate(to: start)
            throw error
        }
        payload.withWireBytes { writer.append($0) }
    }

    /// The length of the whole packet with a payload of that length, in bytes.
    package func encodedSize(version: MQTTVersion, payloadByteCount: Int) -> Int {
        var propertiesCount = version == .v5 ? 1 : 0
        if !properties.isEmpty {
            var scratch = ByteWriter(capacity: 128)
            try? scratch.append(properties, .publish, version)
            propertiesCount = scratch.count
        }
        let remainingLength =
            2 + topic.utf8.count + (qualityOfService == .atMostOnce ? 0 : 2) + propertiesCount
            + payloadByteCount
        return 1 + ByteWriter.byteCount(ofVariableByteInteger: remainingLength) + remainingLength
    }
}

extension MQTTPublish: CustomStringConvertible {
    package var description: String {
        var text = "PUBLISH topic=\(topic) qos=\(qualityOfService.rawValue)"
        if packetIdentifier != 0 { text += " id=\(packetIdentifier)" }
        if isRetained { text += " retain" }
        if isDuplicate { text += " dup" }
        return text + " payload=\(payload.count) bytes"
    }
}
