package import WireCore

/// The fifteen control packets of both versions (MQTT 5, chapter 3).
package enum MQTTPacket: Hashable, Sendable {
    // Large and rare, so kept out of line: the frequent cases stay cheap to move.
    indirect case connect(MQTTConnect)
    case connack(MQTTConnackPacket)
    case publish(MQTTPublish)
    case puback(MQTTAcknowledgement)
    case pubrec(MQTTAcknowledgement)
    case pubrel(MQTTAcknowledgement)
    case pubcomp(MQTTAcknowledgement)
    case subscribe(MQTTSubscribe)
    case suback(MQTTSuback)
    case unsubscribe(MQTTUnsubscribe)
    case unsuback(MQTTUnsuback)
    case pingreq
    case pingresp
    case disconnect(MQTTDisconnect)
    case auth(MQTTAuth)

    package var kind: MQTTPacketKind {
        switch self {
        case .connect: .connect
        case .connack: .connack
        case .publish: .publish
        case .puback: .puback
        case .pubrec: .pubrec
        case .pubrel: .pubrel
        case .pubcomp: .pubcomp
        case .subscribe: .subscribe
        case .suback: .suback
        case .unsubscribe: .unsubscribe
        case .unsuback: .unsuback
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect: .disconnect
        case .auth: .auth
        }
    }

    /// The topic of a PUBLISH, or the first filter of a SUBSCRIBE or UNSUBSCRIBE; nil for other packets.
    ///
    /// It is nil for a PUBLISH that names its topic by an alias, too.
    package var topic: String? {
        switch self {
        case .publish(let packet): packet.topic.isEmpty ? nil : packet.topic
        case .subscribe(let packet): packet.subscriptions.first?.filter
        case .unsubscribe(let packet): packet.filters.first
        default: nil
        }
    }

    /// Writes the packet.
    ///
    /// - Throws: `MQTTEncodingError`; nothing was written then.
    package func encode(
        into writer: inout ByteWriter,
        version: MQTTVersion
    ) throws(MQTTEncodingError) {
        switch self {
        case .connect(let packet): try packet.encode(into: &writer)
        case .connack(let packet): try packet.encode(into: &writer, version: version)
        case .publish(let packet): try packet.encode(into: &writer, version: version)
        case .puback(let packet):
            try packet.encode(.puback, .puback, into: &writer, version: version)
        case .pubrec(let packet):
            try packet.encode(.pubrec, .pubrec, into: &writer, version: version)
        case .pubrel(let packet):
            try packet.encode(.pubrel, .pubrel, into: &writer, version: version)
        case .pubcomp(let packet):
            try packet.encode(.pubcomp, .pubcomp, into: &writer, version: version)
        case .subscribe(let packet): try packet.encode(into: &writer, version: version)
        case .suback(let packet): try packet.encode(into: &writer, version: version)
        case .unsubscribe(let packet): try packet.encode(into: &writer, version: version)
        case .unsuback(let packet): try packet.encode(into: &writer, version: version)
        case .pingreq, .pingresp:
            writer.append(kind.rawValue << 4)
            writer.append(0 as UInt8)
        case .disconnect(let packet):
            try MQTTReasonBody.encode(
                .disconnect,
                .disconnect,
                packet.reasonCode,
                packet.properties,
                into: &writer,
                version: version
            )
        case .auth(let packet):
            guard version == .v5 else { throw .needsVersion5 }
            try MQTTReasonBody.encode(
                .auth,
                .auth,
                packet.reasonCode,
                packet.properties,
                into: &writer,
                version: version
            )
        }
    }
}

extension MQTTPacket: CustomStringConvertible {
    /// The packet in one line, without payload, credentials or the application's values.
    package var description: String {
        switch self {
        case .connect(let packet): packet.description
        case .connack(let packet): packet.description
        case .publish(let packet): packet.description
        case .puback(let packet): "PUBACK \(describe(packet))"
        case .pubrec(let packet): "PUBREC \(describe(packet))"
        case .pubrel(let packet): "PUBREL \(describe(packet))"
        case .pubcomp(let packet): "PUBCOMP \(describe(packet))"
        case .subscribe(let packet): packet.description
        case .suback(let packet):
            "SUBACK id=\(packet.packetIdentifier) \(describe(packet.reasonCodes))"
        case .unsubscribe(let packet): packet.description
        case .unsuback(let packet):
            "UNSUBACK id=\(packet.packetIdentifier) \(describe(packet.reasonCodes))"
        case .pingreq: "PINGREQ"
        case .pingresp: "PINGRESP"
        case .disconnect(let packet): "DISCONNECT \(packet.reasonCode)"
        case .auth(let packet): packet.description
        }
    }

    private func describe(_ packet: MQTTAcknowledgement) -> String {
        let reason = packet.reasonCode == .success ? "" : " \(packet.reasonCode)"
        return "id=\(packet.packetIdentifier)\(reason)"
    }

    private func describe(_ codes: [MQTTReasonCode]) -> String {
        codes.map(\.description).joined(separator: ", ")
    }
}
