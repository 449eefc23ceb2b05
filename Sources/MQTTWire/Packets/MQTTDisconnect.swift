import WireCore

/// DISCONNECT: the last packet of a connection (MQTT 5, 3.14).
package struct MQTTDisconnect: Hashable, Sendable {
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(
        reasonCode: MQTTReasonCode = .normalDisconnection,
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.reasonCode = reasonCode
        self.properties = properties
    }

    /// The packet, the packet without texts, and its shortest form, which a connected server always accepts.
    var attempts: [MQTTPacket] {
        var terse = MQTTDisconnect(reasonCode: reasonCode)
        let shortest = terse
        terse.properties.sessionExpiryInterval = properties.sessionExpiryInterval
        return [.disconnect(self), .disconnect(terse), .disconnect(shortest)]
    }
}

/// AUTH: a step of enhanced authentication (MQTT 5, 3.15).
package struct MQTTAuth: Hashable, Sendable {
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(
        reasonCode: MQTTReasonCode = .success,
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.reasonCode = reasonCode
        self.properties = properties
    }

    /// The packet, and the packet without Reason String and User Properties, which may not make it exceed the peer's
    /// limit (MQTT 5, 3.15.2-2 and 3.15.2-3).
    var attempts: [MQTTPacket] {
        var terse = self
        terse.properties.reasonString = nil
        terse.properties.userProperties = []
        return terse == self ? [.auth(self)] : [.auth(self), .auth(terse)]
    }
}

/// The body of DISCONNECT and AUTH: a reason and properties, either of which may be omitted at the end.
enum MQTTReasonBody {
    static func encode(
        _ kind: MQTTPacketKind,
        _ place: MQTTPropertyPlace,
        _ reasonCode: MQTTReasonCode,
        _ properties: MQTTProperties,
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        guard MQTTReasonCode.isAllowed(reasonCode, in: kind, version: version) else {
            throw version == .v5 ? .reasonCodeNotAllowed(reasonCode) : .needsVersion5
        }
        try writer.append(packet: kind) { (body) throws(MQTTEncodingError) in
            guard !properties.isEmpty || reasonCode != .success else { return }
            guard version == .v5 else { throw .needsVersion5 }
            body.append(reasonCode.rawValue)
            if !properties.isEmpty { try body.append(properties, place, version) }
        }
    }

    static func decode(
        _ kind: MQTTPacketKind,
        _ place: MQTTPropertyPlace,
        from reader: inout ByteReader,
        version: MQTTVersion
    ) throws(MQTTViolation) -> (MQTTReasonCode, MQTTProperties) {
        guard version == .v5, reader.remaining > 0 else {
            try reader.expectEnd(kind)
            return (.success, MQTTProperties())
        }
        let reasonCode = MQTTReasonCode(rawValue: try reader.uint8(kind))
        guard MQTTReasonCode.isAllowed(reasonCode, in: kind, version: version) else {
            throw .reasonCodeNotAllowed(kind)
        }
        guard reader.remaining > 0 else { return (reasonCode, MQTTProperties()) }
        let properties = try reader.properties(place, kind, version)
        try reader.expectEnd(kind)
        return (reasonCode, properties)
    }
}

extension MQTTAuth: CustomStringConvertible {
    /// The packet in one line, without its data.
    package var description: String {
        let method = properties.authenticationMethod.map { " method=\($0)" } ?? ""
        let data = properties.authenticationData == nil ? "" : " data=<redacted>"
        return "AUTH \(reasonCode)\(method)\(data)"
    }
}
