import WireCore

/// The body of PUBACK, PUBREC, PUBREL and PUBCOMP (MQTT 5, 3.4 to 3.7).
package struct MQTTAcknowledgement: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(
        packetIdentifier: UInt16,
        reasonCode: MQTTReasonCode = .success,
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.packetIdentifier = packetIdentifier
        self.reasonCode = reasonCode
        self.properties = properties
    }

    func encode(
        _ kind: MQTTPacketKind,
        _ place: MQTTPropertyPlace,
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        guard MQTTReasonCode.isAllowed(reasonCode, in: kind, version: version) else {
            throw version == .v5 ? .reasonCodeNotAllowed(reasonCode) : .needsVersion5
        }
        let flags = kind.fixedFlags ?? 0
        guard !properties.isEmpty || reasonCode != .success else {
            // Success without properties takes two bytes, in both versions (3.4.2.1).
            guard packetIdentifier != 0 else { throw .packetIdentifierMissing }
            writer.append(kind.rawValue << 4 | flags)
            writer.append(2 as UInt8)
            writer.append(packetIdentifier)
            return
        }
        try writer.append(packet: kind, flags: flags) { (body) throws(MQTTEncodingError) in
            try body.append(packetIdentifier: packetIdentifier)
            body.append(reasonCode.rawValue)
            if !properties.isEmpty { try body.append(properties, place, version) }
        }
    }

    init(
        _ kind: MQTTPacketKind,
        _ place: MQTTPropertyPlace,
        from reader: inout ByteReader,
        version: MQTTVersion
    ) throws(MQTTViolation) {
        packetIdentifier = try reader.packetIdentifier(kind)
        reasonCode = .success
        properties = MQTTProperties()
        guard version == .v5, reader.remaining > 0 else {
            try reader.expectEnd(kind)
            return
        }
        reasonCode = MQTTReasonCode(rawValue: try reader.uint8(kind))
        guard MQTTReasonCode.isAllowed(reasonCode, in: kind, version: .v5) else {
            throw .reasonCodeNotAllowed(kind)
        }
        guard reader.remaining > 0 else { return }
        properties = try reader.properties(place, kind, version)
        try reader.expectEnd(kind)
    }
}
