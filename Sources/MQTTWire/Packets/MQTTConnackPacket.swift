package import WireCore

/// CONNACK: the server's answer to CONNECT (MQTT 5, 3.2).
package struct MQTTConnackPacket: Hashable, Sendable {
    package var sessionPresent: Bool
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(
        sessionPresent: Bool = false,
        reasonCode: MQTTReasonCode = .success,
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.sessionPresent = sessionPresent
        self.reasonCode = reasonCode
        self.properties = properties
    }

    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        let code = try returnCode(version)
        try writer.append(packet: .connack) { (body) throws(MQTTEncodingError) in
            body.append(UInt8(sessionPresent ? 1 : 0))
            body.append(code)
            try body.append(properties, .connack, version)
        }
    }

    /// The code on the wire: 3.1.1 has five return codes of its own (3.2.2.3).
    private func returnCode(_ version: MQTTVersion) throws(MQTTEncodingError) -> UInt8 {
        guard MQTTReasonCode.isAllowed(reasonCode, in: .connack, version: version) else {
            throw .reasonCodeNotAllowed(reasonCode)
        }
        guard version == .v3_1_1, reasonCode != .success else { return reasonCode.rawValue }
        let pair = MQTTReasonCode.connectReturnCodes.first { $0.code == reasonCode }
        return pair?.returnCode ?? reasonCode.rawValue
    }

    init(from reader: inout ByteReader, version: MQTTVersion) throws(MQTTViolation) {
        let flags = try reader.uint8(.connack)
        guard flags & 0xFE == 0 else { throw .reservedBits(.connack) }
        let code = try reader.uint8(.connack)
        sessionPresent = flags == 1
        switch version {
        // A server that lacks the version answers in the form of its own (MQTT 3.1.1, 3.1.2.2; MQTT 5, 3.1.2.2).
        case .v5 where code == 1 && reader.remaining == 0:
            reasonCode = .unsupportedProtocolVersion
            properties = MQTTProperties()
            return
        case .v3_1_1 where code == MQTTReasonCode.unsupportedProtocolVersion.rawValue:
            reasonCode = .unsupportedProtocolVersion
            properties = try reader.properties(.connack, .connack, .v5)
            try reader.expectEnd(.connack)
            return
        case .v5:
            reasonCode = MQTTReasonCode(rawValue: code)
            guard MQTTReasonCode.isAllowed(reasonCode, in: .connack, version: .v5) else {
                throw .reasonCodeNotAllowed(.connack)
            }
        case .v3_1_1 where code == 0: reasonCode = .success
        case .v3_1_1:
            let pair = MQTTReasonCode.connectReturnCodes.first { $0.returnCode == code }
            guard let pair else { throw .reasonCodeNotAllowed(.connack) }
            reasonCode = pair.code
        }
        properties = try reader.properties(.connack, .connack, version)
        try reader.expectEnd(.connack)
    }
}

extension MQTTConnackPacket: CustomStringConvertible {
    package var description: String {
        "CONNACK \(reasonCode)" + (sessionPresent ? " sessionPresent" : "")
    }
}
