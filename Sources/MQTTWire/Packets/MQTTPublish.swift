package import WireCore

/// PUBLISH: an application message (MQTT 5, 3.3).
package struct MQTTPublish: Hashable, Sendable {
    /// The topic name; empty only with a topic alias.
    package var topic: String
    package var qos: MQTTQoS
    package var isRetained: Bool
    package var isDuplicate: Bool
    /// The packet identifier; zero at QoS 0, which has none (MQTT 5, 2.2.1-2).
    package var packetIdentifier: UInt16
    package var properties: MQTTProperties
    /// The message; a decoded one shares the receive buffer's memory.
    package var payload: ByteSlice

    @inlinable
    package init(
        topic: String,
        qos: MQTTQoS = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        packetIdentifier: UInt16 = 0,
        properties: MQTTProperties = MQTTProperties(),
        payload: ByteSlice = .empty
    ) {
        self.topic = topic
        self.qos = qos
        self.isRetained = isRetained
        self.isDuplicate = isDuplicate
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.payload = payload
    }

    /// The largest remaining length: 268,435,455 (MQTT 5, 1.5.5).
    package static let maximumRemainingLength = 268_435_455

    /// The largest packet: the largest remaining length and the five bytes of the fixed header.
    package static let maximumPacketSize = maximumRemainingLength + 5

    /// The first byte of the fixed header (3.3.1).
    private var firstByte: UInt8 {
        MQTTPacketKind.publish.rawValue << 4 | (isDuplicate ? 0x08 : 0)
            | qos.rawValue << 1 | (isRetained ? 0x01 : 0)
    }

    /// Writes the packet with its own payload.
    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        try encode(into: &writer, version: version, payload: payload)
    }

    /// Writes the packet with another payload, which is copied once.
    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion,
        payload: some WireBytes
    ) throws(MQTTEncodingError) {
        let topicCount = topic.utf8.count
        guard topicCount <= MQTTTopicName.maximumByteCount else {
            throw .fieldTooLong("topic name")
        }
        guard topicCount > 0 || properties.topicAlias != nil else { throw .topicNameEmpty }
        let hasIdentifier = qos != .atMostOnce
        try checkIdentifier()
        let remainingLength = remainingLength(version, payloadByteCount: payload.wireByteCount)
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
        if properties.isEmpty {
            if version == .v5 { writer.append(0 as UInt8) }
        } else {
            do throws(MQTTEncodingError) {
                try writer.append(properties, .publish, version)
            } catch {
                writer.truncate(to: start)
                throw error
            }
        }
        payload.withWireBytes { writer.append($0) }
    }

    /// The remaining length for the fixed header.
    @inline(__always)
    private func remainingLength(_ version: MQTTVersion, payloadByteCount: Int) -> Int {
        var propertiesCount = version == .v5 ? 1 : 0
        if !properties.isEmpty {
            let byteCount = properties.byteCount
            propertiesCount = byteCount + ByteWriter.byteCount(ofVariableByteInteger: byteCount)
        }
        return 2 + topic.utf8.count + (qos == .atMostOnce ? 0 : 2) + propertiesCount
            + payloadByteCount
    }

    /// Checks that QoS 0 has neither identifier nor DUP flag (MQTT 5, 2.2.1-2 and 3.3.1-2).
    @inline(__always)
    private func checkIdentifier() throws(MQTTEncodingError) {
        if qos == .atMostOnce {
            guard packetIdentifier == 0 else { throw .packetIdentifierNotAllowed }
            guard !isDuplicate else { throw .duplicateNotAllowed }
        } else {
            guard packetIdentifier != 0 else { throw .packetIdentifierMissing }
        }
    }

    /// Appends the topic name and then checks the copied bytes.
    private static func append(_ topic: String, to writer: inout ByteWriter) -> MQTTEncodingError? {
        let byte = topic.utf8.withContiguousStorageIfAvailable { bytes -> UInt8? in
            writer.append(UnsafeRawBufferPointer(bytes))
            return MQTTTopicName.firstForbidden(in: UnsafeRawBufferPointer(bytes))
        }
        guard let byte else {
            // A bridged string is copied once to a native string, which has contiguous storage.
            var native = topic
            native.makeContiguousUTF8()
            return append(native, to: &writer)
        }
        guard let byte else { return nil }
        return byte == 0 ? .nullCharacter("topic name") : .topicNameHasWildcard
    }

    /// The length of the whole packet in bytes, with a payload of a given length.
    package func encodedSize(version: MQTTVersion, payloadByteCount: Int) -> Int {
        let remainingLength = remainingLength(version, payloadByteCount: payloadByteCount)
        return 1 + ByteWriter.byteCount(ofVariableByteInteger: remainingLength) + remainingLength
    }
}

extension MQTTPublish: CustomStringConvertible {
    package var description: String {
        var text = "PUBLISH topic=\(topic) qos=\(qos.rawValue)"
        if packetIdentifier != 0 { text += " id=\(packetIdentifier)" }
        if let alias = properties.topicAlias { text += " alias=\(alias)" }
        if isRetained { text += " retain" }
        if isDuplicate { text += " dup" }
        return text + " payload=\(payload.count) bytes"
    }
}
