import WireCore

/// Writes the data types of MQTT 5, 1.5, after a check.
extension ByteWriter {
    /// The longest string or binary field, in bytes.
    static var maximumFieldByteCount: Int { 65_535 }

    mutating func append(
        string: String,
        _ field: @autoclosure () -> String
    ) throws(MQTTEncodingError) {
        let count = string.utf8.count
        guard count <= Self.maximumFieldByteCount else { throw .fieldTooLong(field()) }
        let start = self.count
        guard !appendFindingNull(string) else {
            truncate(to: start)
            throw .nullCharacter(field())
        }
    }

    /// Appends a string after its length; returns whether it holds U+0000.
    private mutating func appendFindingNull(_ string: String) -> Bool {
        let isFound = string.utf8.withContiguousStorageIfAvailable { bytes in
            append(UInt16(truncatingIfNeeded: bytes.count))
            append(UnsafeRawBufferPointer(bytes))
            for byte in bytes where byte == 0 { return true }
            return false
        }
        if let isFound { return isFound }
        // A bridged string is copied once to a native string, which has contiguous storage.
        var native = string
        native.makeContiguousUTF8()
        return appendFindingNull(native)
    }

    mutating func append(
        binary: [UInt8],
        _ field: @autoclosure () -> String
    ) throws(MQTTEncodingError) {
        guard binary.count <= Self.maximumFieldByteCount else { throw .fieldTooLong(field()) }
        append(UInt16(binary.count))
        binary.withUnsafeBytes { append($0) }
    }

    mutating func append(packetIdentifier: UInt16) throws(MQTTEncodingError) {
        guard packetIdentifier != 0 else { throw .packetIdentifierMissing }
        append(packetIdentifier)
    }

    /// Appends a value below 2^28 in the fewest bytes (MQTT 5, 1.5.5-1).
    mutating func append(variableByteInteger value: UInt32) {
        let (word, byteCount) = Self.variableByteInteger(Int(value))
        append(lowBytes: byteCount, of: word)
    }

    /// Appends at most the first seven bytes of a PUBLISH; they are composed in a register and stored at once.
    mutating func append(headerOf firstByte: UInt8, _ remainingLength: Int, _ topicCount: Int) {
        let (length, byteCount) = Self.variableByteInteger(remainingLength)
        let topic = UInt64(UInt16(topicCount).byteSwapped) << UInt64(8 + 8 * byteCount)
        append(lowBytes: byteCount + 3, of: UInt64(firstByte) | length << 8 | topic)
    }

    /// The number of bytes of a variable byte integer.
    static func byteCount(ofVariableByteInteger value: Int) -> Int {
        value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : 4
    }

    /// Appends a fixed header and then a body whose length is only known after writing it.
    mutating func append(
        packet kind: MQTTPacketKind,
        flags: UInt8 = 0,
        _ body: (inout ByteWriter) throws(MQTTEncodingError) -> Void
    ) throws(MQTTEncodingError) {
        var scratch = ByteWriter(capacity: 128)
        try body(&scratch)
        guard scratch.count <= MQTTPublish.maximumRemainingLength else {
            throw .packetTooLarge(byteCount: scratch.count)
        }
        append(kind.rawValue << 4 | flags)
        append(variableByteInteger: UInt32(scratch.count))
        scratch.withUnsafeBytes { append($0) }
    }

    /// Appends the properties of a place: a zero length for none (MQTT 5, 2.2.2-1), and nothing before version 5.
    mutating func append(
        _ properties: MQTTProperties,
        _ place: MQTTPropertyPlace,
        _ version: MQTTVersion
    ) throws(MQTTEncodingError) {
        guard version == .v5 else {
            guard properties.isEmpty else { throw .needsVersion5 }
            return
        }
        guard !properties.isEmpty else { return append(0 as UInt8) }
        let byteCount = properties.byteCount
        guard byteCount <= MQTTPublish.maximumRemainingLength else {
            throw .packetTooLarge(byteCount: byteCount)
        }
        let start = count
        append(variableByteInteger: UInt32(byteCount))
        do throws(MQTTEncodingError) {
            try append(list: properties, place)
            for property in properties.userProperties {
                append(MQTTPropertyIdentifier.userProperty.rawValue)
                try append(string: property.name, "user property name")
                try append(string: property.value, "user property value")
            }
        } catch {
            truncate(to: start)
            throw error
        }
    }

    /// A variable byte integer as the lowest bytes of an integer, and their number.
    static func variableByteInteger(_ value: Int) -> (word: UInt64, byteCount: Int) {
        var word: UInt64 = 0
        var shift: UInt64 = 0
        var rest = UInt64(value)
        while rest >= 0x80 {
            word |= (rest & 0x7F | 0x80) << shift
            rest >>= 7
            shift += 8
        }
        return (word | rest << shift, Int(shift / 8) + 1)
    }

    private mutating func append(
        list properties: MQTTProperties,
        _ place: MQTTPropertyPlace
    ) throws(MQTTEncodingError) {
        var seen: UInt64 = 0
        for property in properties.list {
            let identifier = property.identifier
            let bit: UInt64 = 1 << UInt64(identifier.rawValue)
            guard identifier.isAllowed(in: place),
                seen & bit == 0 || identifier.isRepeatable(in: place)
            else { throw .propertyNotAllowed(identifier) }
            seen |= bit
            append(identifier.rawValue)
            switch property.value {
            case .integer(let number): try append(number, of: identifier)
            case .string(let string):
                if identifier == .responseTopic { try MQTTTopicName.validate(string) }
                try append(string: string, "\(identifier)")
            case .binary(let bytes): try append(binary: bytes, "\(identifier)")
            }
        }
    }

    private mutating func append(
        _ number: UInt32,
        of identifier: MQTTPropertyIdentifier
    ) throws(MQTTEncodingError) {
        guard identifier.allows(number) else { throw .propertyOutOfRange(identifier) }
        switch identifier.shape {
        case .byte: append(UInt8(truncatingIfNeeded: number))
        case .twoByte: append(UInt16(truncatingIfNeeded: number))
        case .variable:
            guard number <= 268_435_455 else { throw .propertyOutOfRange(identifier) }
            append(variableByteInteger: number)
        default: append(number)
        }
    }
}
