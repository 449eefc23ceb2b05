package import WireCore

/// SUBACK: one code for each filter, in their order (MQTT 5, 3.9).
package struct MQTTSuback: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var reasonCodes: [MQTTReasonCode]
    package var properties: MQTTProperties

    package init(
        packetIdentifier: UInt16,
        reasonCodes: [MQTTReasonCode],
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.packetIdentifier = packetIdentifier
        self.reasonCodes = reasonCodes
        self.properties = properties
    }

    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        try writer.append(packet: .suback) { (body) throws(MQTTEncodingError) in
            try body.append(packetIdentifier: packetIdentifier)
            try body.append(properties, .suback, version)
            try body.append(reasonCodes, .suback, version)
        }
    }

    init(from reader: inout ByteReader, version: MQTTVersion) throws(MQTTViolation) {
        packetIdentifier = try reader.packetIdentifier(.suback)
        properties = try reader.properties(.suback, .suback, version)
        reasonCodes = try reader.reasonCodes(.suback, version)
    }
}

/// UNSUBACK: in MQTT 5 one code for each filter, in 3.1.1 none (MQTT 5, 3.11).
package struct MQTTUnsuback: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var reasonCodes: [MQTTReasonCode]
    package var properties: MQTTProperties

    package init(
        packetIdentifier: UInt16,
        reasonCodes: [MQTTReasonCode] = [],
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.packetIdentifier = packetIdentifier
        self.reasonCodes = reasonCodes
        self.properties = properties
    }

    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        try writer.append(packet: .unsuback) { (body) throws(MQTTEncodingError) in
            try body.append(packetIdentifier: packetIdentifier)
            try body.append(properties, .unsuback, version)
            guard version == .v5 else {
                guard reasonCodes.isEmpty else { throw .needsVersion5 }
                return
            }
            try body.append(reasonCodes, .unsuback, version)
        }
    }

    init(from reader: inout ByteReader, version: MQTTVersion) throws(MQTTViolation) {
        packetIdentifier = try reader.packetIdentifier(.unsuback)
        properties = try reader.properties(.unsuback, .unsuback, version)
        guard version == .v5 else {
            reasonCodes = []
            try reader.expectEnd(.unsuback)
            return
        }
        reasonCodes = try reader.reasonCodes(.unsuback, version)
    }
}

extension ByteWriter {
    fileprivate mutating func append(
        _ reasonCodes: [MQTTReasonCode],
        _ kind: MQTTPacketKind,
        _ version: MQTTVersion
    ) throws(MQTTEncodingError) {
        guard !reasonCodes.isEmpty else { throw .noFilter }
        for code in reasonCodes {
            guard MQTTReasonCode.isAllowed(code, in: kind, version: version) else {
                throw .reasonCodeNotAllowed(code)
            }
            append(code.rawValue)
        }
    }
}

extension ByteReader {
    fileprivate mutating func reasonCodes(
        _ kind: MQTTPacketKind,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> [MQTTReasonCode] {
        guard remaining > 0 else { throw .listEmpty(kind) }
        var codes: [MQTTReasonCode] = []
        codes.reserveCapacity(remaining)
        while remaining > 0 {
            let code = MQTTReasonCode(rawValue: try uint8(kind))
            guard MQTTReasonCode.isAllowed(code, in: kind, version: version) else {
                throw .reasonCodeNotAllowed(kind)
            }
            codes.append(code)
        }
        return codes
    }
}
