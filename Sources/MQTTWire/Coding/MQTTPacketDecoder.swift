package import WireCore

/// Takes complete packets from the front of a receive buffer.
package struct MQTTPacketDecoder: Sendable {
    /// The protocol version; a server learns it from the CONNECT that it decodes.
    package private(set) var version: MQTTVersion
    private let role: MQTTRole
    private let maximumPacketSize: Int
    /// What few connections have, out of line.
    private var exception: Shared<Exception>?
    /// The last topic name; the next message often has the same.
    private(set) var lastTopic = ""
    /// The number of times that the topic name changed.
    private(set) var topicNumber = 0

    /// - Parameters:
    ///   - version: The protocol version.
    ///   - role: The side that decodes.
    ///   - maximumPacketSize: The longest packet to accept, in bytes, including the fixed header.
    package init(version: MQTTVersion, role: MQTTRole, maximumPacketSize: Int) {
        self.version = version
        self.role = role
        self.maximumPacketSize = maximumPacketSize
    }

    private struct Header {
        var kind: MQTTPacketKind
        var flags: UInt8
        var byteCount: Int
        var remainingLength: Int

        var total: Int { byteCount + remainingLength }
    }

    private enum Exception {
        /// A client skips a PUBLISH above the maximum; the rest are the bytes that have not arrived yet.
        case skipped(MQTTSkippedMessage, head: [UInt8], rest: Int)
        /// A packet broke the protocol; the mark are its first bytes.
        case broken(MQTTViolation?, mark: [UInt8])
    }

    /// The most bytes of a packet that tell it from others: 64.
    static let markLength = 64

    /// The first bytes of the packet that broke the protocol; empty while none has.
    var violationMark: [UInt8] {
        get { if case .broken(_, let mark)? = exception?.value { mark } else { [] } }
        set {
            var violation: MQTTViolation?
            if case .broken(let known, _)? = exception?.value { violation = known }
            exception = Shared(.broken(violation, mark: newValue))
        }
    }

    /// The first bytes of the message that ``takeSkipped()`` returns, without its payload; nil if there is none.
    var skippedHead: [UInt8]? {
        if case .skipped(_, let head, rest: 0)? = exception?.value { head } else { nil }
    }

    /// Takes the message that ``next(_:)`` has skipped to its end; nil if there is none.
    mutating func takeSkipped() -> MQTTSkippedMessage? {
        guard case .skipped(let message, _, rest: 0)? = exception?.value else { return nil }
        exception = nil
        return message
    }

    /// Takes the next packet.
    ///
    /// - Returns: The packet; nil when more bytes are needed, or a message was skipped (``takeSkipped()``).
    /// - Throws: `MQTTViolation`, and again at every later call.
    package mutating func next(
        _ buffer: inout ReceiveBuffer
    ) throws(MQTTViolation) -> MQTTPacket? {
        switch exception?.value {
        case .skipped(let message, let head, let rest):
            skip(message, head, rest, &buffer)
            return nil
        case .broken(let violation?, _): throw violation
        case .broken(nil, _), nil: break
        }
        do throws(MQTTViolation) {
            guard let header = try header(of: buffer) else { return nil }
            let total = header.total
            guard total <= maximumPacketSize else {
                try beginSkipping(header, &buffer)
                return nil
            }
            guard buffer.count >= total else {
                buffer.reserve(total: total)
                return nil
            }
            let packet = try body(of: buffer, header)
            buffer.consume(total)
            return packet
        } catch {
            exception = Shared(.broken(error, mark: []))
            throw error
        }
    }

    // MARK: Messages above the maximum

    /// Reads a PUBLISH above the maximum up to its payload, which is then skipped as it arrives.
    private mutating func beginSkipping(
        _ header: Header,
        _ buffer: inout ReceiveBuffer
    ) throws(MQTTViolation) {
        let violation = MQTTViolation.packetTooLarge(
            byteCount: header.total,
            maximum: maximumPacketSize
        )
        guard role == .client, header.kind == .publish else { throw violation }
        guard let end = payloadStart(header, buffer) else { return }
        guard end <= maximumPacketSize else { throw violation }
        guard buffer.count >= end else { return buffer.reserve(total: end) }
        let publish = try buffer.withUnsafeBytes { bytes throws(MQTTViolation) in
            var reader = ByteReader(
                UnsafeRawBufferPointer(rebasing: bytes[header.byteCount..<min(end, header.total)])
            )
            return try self.publish(header, from: &reader, of: buffer)
        }
        let message = MQTTSkippedMessage(publish: publish, byteCount: header.total - end)
        let head = buffer.slice(at: 0, count: min(end, Self.markLength)).bytes
        skip(message, head, header.total, &buffer)
    }

    private mutating func skip(
        _ message: MQTTSkippedMessage,
        _ head: [UInt8],
        _ rest: Int,
        _ buffer: inout ReceiveBuffer
    ) {
        let count = min(buffer.count, rest)
        buffer.consume(count)
        exception = Shared(.skipped(message, head: head, rest: rest - count))
    }

    /// The offset of the payload of a PUBLISH (MQTT 5, 3.3); nil when more bytes are needed to know it.
    private func payloadStart(_ header: Header, _ buffer: ReceiveBuffer) -> Int? {
        buffer.withUnsafeBytes { bytes in
            var end = header.byteCount + 2
            guard bytes.count >= end else { return nil }
            end += Int(bytes[end - 2]) << 8 | Int(bytes[end - 1])
            if header.flags & 0x06 != 0 { end += 2 }
            guard version == .v5 else { return end }
            var length = 0
            for index in 0..<4 {
                guard bytes.count > end else { return nil }
                let byte = bytes[end]
                end += 1
                length |= Int(byte & 0x7F) << (7 * index)
                if byte & 0x80 == 0 { break }
            }
            return end + length
        }
    }

    // MARK: PUBLISH

    /// Reads the PUBLISH at the front, if it is complete and valid, has a topic, and no property but a subscription
    /// identifier.
    ///
    /// - Returns: The packet, which stays in the buffer, and its length; nil for all that ``next(_:)`` must handle.
    mutating func nextPlainPublish(
        _ buffer: ReceiveBuffer
    ) -> (MQTTPlainPublish, byteCount: Int)? {
        guard exception == nil, let header = try? header(of: buffer), header.kind == .publish else {
            return nil
        }
        let total = header.total
        guard total <= maximumPacketSize, buffer.count >= total else { return nil }
        return buffer.withUnsafeBytes { bytes in
            var reader = ByteReader(
                UnsafeRawBufferPointer(rebasing: bytes[header.byteCount..<total])
            )
            guard let packet = try? plainPublish(header, from: &reader) else { return nil }
            return (packet, total)
        }
    }

    private mutating func plainPublish(
        _ header: Header,
        from reader: inout ByteReader
    ) throws(MQTTViolation) -> MQTTPlainPublish? {
        var packet = MQTTPlainPublish()
        packet.qos = try reader.qos(header.flags >> 1 & 0x03)
        packet.isRetained = header.flags & 0x01 != 0
        packet.isDuplicate = header.flags & 0x08 != 0
        guard !packet.isDuplicate || packet.qos != .atMostOnce else { return nil }
        let topic = try reader.bytes(Int(try reader.uint16(.publish)), .publish)
        guard !topic.isEmpty else { return nil }
        if packet.qos != .atMostOnce {
            packet.packetIdentifier = try reader.packetIdentifier(.publish)
        }
        if version == .v5 {
            let byteCount = Int(try reader.variableByteInteger(.publish))
            if byteCount > 0 {
                let end = reader.position + byteCount
                let name = try reader.uint8(.publish)
                guard name == MQTTPropertyIdentifier.subscriptionIdentifier.rawValue else {
                    return nil
                }
                packet.subscriptionIdentifier = try reader.variableByteInteger(.publish)
                guard packet.subscriptionIdentifier != 0, reader.position == end else { return nil }
            }
        }
        try noteTopic(topic)
        let start = header.byteCount + reader.position
        packet.payload = start..<start + reader.remaining
        return packet
    }

    /// Reads the fixed header (MQTT 5, 2.1), and refuses it as soon as a fault is visible.
    private func header(of buffer: ReceiveBuffer) throws(MQTTViolation) -> Header? {
        try buffer.withUnsafeBytes { bytes throws(MQTTViolation) in
            guard let first = bytes.first else { return nil }
            guard let kind = MQTTPacketKind(rawValue: first >> 4) else { throw .reservedPacketKind }
            let flags = first & 0x0F
            guard kind.fixedFlags == nil || kind.fixedFlags == flags else {
                throw .reservedFlags(kind)
            }
            guard role.accepts(kind, version: version) else { throw .unexpectedPacket(kind) }
            var length = 0
            for index in 1...4 {
                guard bytes.count > index else { return nil }
                let byte = bytes[index]
                length |= Int(byte & 0x7F) << (7 * (index - 1))
                guard byte & 0x80 == 0 else { continue }
                guard index == 1 || byte != 0 else { throw .variableByteIntegerInvalid }
                return Header(
                    kind: kind,
                    flags: flags,
                    byteCount: index + 1,
                    remainingLength: length
                )
            }
            throw .variableByteIntegerInvalid
        }
    }

    private mutating func body(
        of buffer: ReceiveBuffer,
        _ header: Header
    ) throws(MQTTViolation) -> MQTTPacket {
        try buffer.withUnsafeBytes { bytes throws(MQTTViolation) in
            let end = header.byteCount + header.remainingLength
            var reader = ByteReader(
                UnsafeRawBufferPointer(rebasing: bytes[header.byteCount..<end])
            )
            if header.kind == .publish {
                return .publish(try publish(header, from: &reader, of: buffer))
            }
            return try packet(header.kind, from: &reader)
        }
    }

    private mutating func publish(
        _ header: Header,
        from reader: inout ByteReader,
        of buffer: ReceiveBuffer
    ) throws(MQTTViolation) -> MQTTPublish {
        let qos = try reader.qos(header.flags >> 1 & 0x03)
        let isDuplicate = header.flags & 0x08 != 0
        guard !isDuplicate || qos != .atMostOnce else {
            throw .qualityOfServiceInvalid
        }
        let topic = try topic(from: &reader)
        var identifier: UInt16 = 0
        if qos != .atMostOnce { identifier = try reader.packetIdentifier(.publish) }
        let properties = try reader.properties(.publish, .publish, version)
        guard !topic.isEmpty || properties.topicAlias != nil else {
            throw version == .v5 ? .topicNameMissing : .topicNameInvalid
        }
        return MQTTPublish(
            topic: topic,
            qos: qos,
            isRetained: header.flags & 0x01 != 0,
            isDuplicate: isDuplicate,
            packetIdentifier: identifier,
            properties: properties,
            payload: buffer.slice(
                at: header.byteCount + reader.position,
                count: reader.remaining
            )
        )
    }

    private mutating func topic(
        from reader: inout ByteReader
    ) throws(MQTTViolation) -> String {
        try noteTopic(try reader.bytes(Int(try reader.uint16(.publish)), .publish))
        return lastTopic
    }

    /// Checks a topic name and makes it the last one.
    private mutating func noteTopic(_ bytes: UnsafeRawBufferPointer) throws(MQTTViolation) {
        let isLast = lastTopic.utf8.withContiguousStorageIfAvailable { last in
            UTF8Validation.areEqual(UnsafeRawBufferPointer(last), bytes)
        }
        if isLast == true { return }
        try ByteReader.checkString(bytes)
        guard MQTTTopicName.firstForbidden(in: bytes) == nil else { throw .topicNameInvalid }
        lastTopic = String(decoding: bytes, as: UTF8.self)
        topicNumber += 1
    }

    private mutating func packet(
        _ kind: MQTTPacketKind,
        from reader: inout ByteReader
    ) throws(MQTTViolation) -> MQTTPacket {
        switch kind {
        case .connect:
            let packet = try MQTTConnect(from: &reader)
            version = packet.version
            return .connect(packet)
        case .connack: return .connack(try MQTTConnackPacket(from: &reader, version: version))
        case .publish: throw .unexpectedPacket(.publish)
        case .puback: return .puback(try acknowledgement(kind, .puback, &reader))
        case .pubrec: return .pubrec(try acknowledgement(kind, .pubrec, &reader))
        case .pubrel: return .pubrel(try acknowledgement(kind, .pubrel, &reader))
        case .pubcomp: return .pubcomp(try acknowledgement(kind, .pubcomp, &reader))
        case .subscribe: return .subscribe(try MQTTSubscribe(from: &reader, version: version))
        case .suback: return .suback(try MQTTSuback(from: &reader, version: version))
        case .unsubscribe: return .unsubscribe(try MQTTUnsubscribe(from: &reader, version: version))
        case .unsuback: return .unsuback(try MQTTUnsuback(from: &reader, version: version))
        case .pingreq, .pingresp:
            try reader.expectEnd(kind)
            return kind == .pingreq ? .pingreq : .pingresp
        case .disconnect:
            let (reasonCode, properties) = try MQTTReasonBody.decode(
                kind,
                .disconnect,
                from: &reader,
                version: version
            )
            guard MQTTReasonCode.mayDisconnect(reasonCode, heardBy: role) else {
                throw .reasonCodeNotAllowed(kind)
            }
            return .disconnect(MQTTDisconnect(reasonCode: reasonCode, properties: properties))
        case .auth:
            let (reasonCode, properties) = try MQTTReasonBody.decode(
                kind,
                .auth,
                from: &reader,
                version: version
            )
            return .auth(MQTTAuth(reasonCode: reasonCode, properties: properties))
        }
    }

    private func acknowledgement(
        _ kind: MQTTPacketKind,
        _ place: MQTTPropertyPlace,
        _ reader: inout ByteReader
    ) throws(MQTTViolation) -> MQTTAcknowledgement {
        try MQTTAcknowledgement(kind, place, from: &reader, version: version)
    }
}

/// A PUBLISH above the maximum, whose payload was not kept.
package struct MQTTSkippedMessage: Sendable {
    /// The packet without its payload.
    package var publish: MQTTPublish
    /// The length of the payload in bytes.
    package let byteCount: Int
}
