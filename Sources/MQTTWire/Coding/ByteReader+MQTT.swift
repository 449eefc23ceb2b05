import WireCore

/// Reads the data types of MQTT 5, 1.5, strictly.
extension ByteReader {
    @inline(__always)
    mutating func uint8(_ kind: MQTTPacketKind) throws(MQTTViolation) -> UInt8 {
        guard let value = readUInt8() else { throw .fieldTruncated(kind) }
        return value
    }

    @inline(__always)
    mutating func uint16(_ kind: MQTTPacketKind) throws(MQTTViolation) -> UInt16 {
        guard let value = readUInt16() else { throw .fieldTruncated(kind) }
        return value
    }

    mutating func uint32(_ kind: MQTTPacketKind) throws(MQTTViolation) -> UInt32 {
        guard let value = readUInt32() else { throw .fieldTruncated(kind) }
        return value
    }

    @inline(__always)
    mutating func bytes(
        _ count: Int,
        _ kind: MQTTPacketKind
    ) throws(MQTTViolation) -> UnsafeRawBufferPointer {
        guard let bytes = readBytes(count) else { throw .fieldTruncated(kind) }
        return bytes
    }

    mutating func packetIdentifier(_ kind: MQTTPacketKind) throws(MQTTViolation) -> UInt16 {
        let identifier = try uint16(kind)
        guard identifier != 0 else { throw .packetIdentifierZero(kind) }
        return identifier
    }

    mutating func binary(_ kind: MQTTPacketKind) throws(MQTTViolation) -> [UInt8] {
        Array(try bytes(Int(try uint16(kind)), kind))
    }

    mutating func string(_ kind: MQTTPacketKind) throws(MQTTViolation) -> String {
        let bytes = try bytes(Int(try uint16(kind)), kind)
        try Self.checkString(bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Checks the rules for strings (MQTT 5, 1.5.4-1 and 1.5.4-2).
    static func checkString(_ bytes: UnsafeRawBufferPointer) throws(MQTTViolation) {
        let result = UTF8Validation.scan(bytes)
        guard result.isWellFormed else { throw .invalidUTF8 }
        guard !result.containsNull else { throw .nullCharacter }
    }

    mutating func variableByteInteger(_ kind: MQTTPacketKind) throws(MQTTViolation) -> UInt32 {
        var value: UInt32 = 0
        for index in 0..<4 {
            let byte = try uint8(kind)
            value |= UInt32(byte & 0x7F) << UInt32(7 * index)
            guard byte & 0x80 == 0 else { continue }
            // Only the shortest encoding is valid (MQTT 5, 1.5.5-1).
            guard index == 0 || byte != 0 else { throw .variableByteIntegerInvalid }
            return value
        }
        throw .variableByteIntegerInvalid
    }

    func expectEnd(_ kind: MQTTPacketKind) throws(MQTTViolation) {
        guard remaining == 0 else { throw .trailingBytes(kind) }
    }

    mutating func qos(
        _ bits: UInt8
    ) throws(MQTTViolation) -> MQTTQoS {
        guard let qos = MQTTQoS(rawValue: bits) else {
            throw .qualityOfServiceInvalid
        }
        return qos
    }

    /// Reads the properties of a place; before version 5 there are none.
    @inline(__always)
    mutating func properties(
        _ place: MQTTPropertyPlace,
        _ kind: MQTTPacketKind,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> MQTTProperties {
        guard version == .v5 else { return MQTTProperties() }
        let length = Int(try variableByteInteger(kind))
        return length == 0 ? MQTTProperties() : try properties(length, place, kind)
    }

    private mutating func properties(
        _ length: Int,
        _ place: MQTTPropertyPlace,
        _ kind: MQTTPacketKind
    ) throws(MQTTViolation) -> MQTTProperties {
        var properties = MQTTProperties()
        var reader = ByteReader(try bytes(length, kind))
        var seen: UInt64 = 0
        // Stays empty for a message that matches one subscription.
        var named: [UInt32] = []
        while reader.remaining > 0 {
            let number = try reader.variableByteInteger(kind)
            guard let raw = UInt8(exactly: number),
                let identifier = MQTTPropertyIdentifier(rawValue: raw)
            else { throw .propertyUnknown }
            guard identifier.isAllowed(in: place) else { throw .propertyNotAllowed(kind) }
            let bit: UInt64 = 1 << UInt64(raw)
            guard seen & bit == 0 || identifier.isRepeatable(in: place) else {
                throw .propertyRepeated(kind)
            }
            if identifier == .subscriptionIdentifier, seen & bit != 0 {
                try reader.appendSubscriptionIdentifier(to: &properties, &named, kind)
                continue
            }
            seen |= bit
            try reader.append(identifier, to: &properties, kind)
        }
        if named.count > MQTTProperties.subscriptionIdentifierLimit {
            properties.subscriptionIdentifiers = []
        }
        guard !seen.has(.authenticationData) || seen.has(.authenticationMethod) else {
            throw .authenticationMethodMissing(kind)
        }
        return properties
    }

    /// Reads a further subscription identifier of a message; identifiers may repeat (MQTT 5, 3.3.4).
    private mutating func appendSubscriptionIdentifier(
        to properties: inout MQTTProperties,
        _ named: inout [UInt32],
        _ kind: MQTTPacketKind
    ) throws(MQTTViolation) {
        let number = try variableByteInteger(kind)
        guard MQTTPropertyIdentifier.subscriptionIdentifier.allows(number) else {
            throw .propertyOutOfRange(kind)
        }
        if named.isEmpty { named = properties.subscriptionIdentifiers }
        guard named.count <= MQTTProperties.subscriptionIdentifierLimit, !named.contains(number)
        else { return }
        named.append(number)
        let value = MQTTProperty.Value.integer(number)
        properties.list.append(MQTTProperty(identifier: .subscriptionIdentifier, value: value))
    }

    /// Reads the value of a property, and appends identifier and value.
    private mutating func append(
        _ identifier: MQTTPropertyIdentifier,
        to properties: inout MQTTProperties,
        _ kind: MQTTPacketKind
    ) throws(MQTTViolation) {
        let value: MQTTProperty.Value
        switch identifier.shape {
        case .byte: value = .integer(UInt32(try uint8(kind)))
        case .twoByte: value = .integer(UInt32(try uint16(kind)))
        case .fourByte: value = .integer(try uint32(kind))
        case .variable: value = .integer(try variableByteInteger(kind))
        case .string:
            let string = try string(kind)
            if identifier == .responseTopic { try Self.checkResponseTopic(string) }
            value = .string(string)
        case .binary: value = .binary(try binary(kind))
        case .pair:
            let name = try string(kind)
            let value = try string(kind)
            return properties.userProperties.append(MQTTUserProperty(name: name, value: value))
        }
        if case .integer(let number) = value, !identifier.allows(number) {
            throw identifier == .topicAlias ? .topicAliasInvalid : .propertyOutOfRange(kind)
        }
        properties.list.append(MQTTProperty(identifier: identifier, value: value))
    }

    private static func checkResponseTopic(_ topic: String) throws(MQTTViolation) {
        do { try MQTTTopicName.validate(topic) } catch { throw .topicNameInvalid }
    }
}

extension UInt64 {
    /// Whether the bit of a property is set.
    fileprivate func has(_ identifier: MQTTPropertyIdentifier) -> Bool {
        self & 1 << UInt64(identifier.rawValue) != 0
    }
}
