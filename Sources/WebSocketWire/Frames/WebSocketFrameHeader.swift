package import WireCore

/// The header of a frame, before its payload (RFC 6455, 5.2).
///
/// ```
///  byte 0            byte 1          then
/// +-+-+-+-+-------+-+-------------+------------------------+---------------+
/// |F|R|R|R| op-   |M| length      | longer length, 2 or 8  | masking key   |
/// |I|S|S|S| code  |A| 0...125,    | bytes if the length    | 4 bytes if    |
/// |N|1|2|3|       |S| 126, 127    | is 126 or 127          | masked        |
/// +-+-+-+-+-------+-+-------------+------------------------+---------------+
/// ```
package struct WebSocketFrameHeader: Hashable, Sendable {
    /// Whether the frame is the last of its message.
    package var isFinal: Bool
    /// Whether the message is compressed (RFC 7692, 6): RSV1, on its first frame.
    package var isCompressed: Bool
    package var opcode: WebSocketOpcode
    /// The masking key, its first byte lowest; nil for a frame that is not masked.
    package var maskingKey: UInt32?
    /// The length of the payload in bytes.
    package var payloadByteCount: Int

    package init(
        opcode: WebSocketOpcode,
        isFinal: Bool = true,
        isCompressed: Bool = false,
        maskingKey: UInt32? = nil,
        payloadByteCount: Int
    ) {
        self.isFinal = isFinal
        self.isCompressed = isCompressed
        self.opcode = opcode
        self.maskingKey = maskingKey
        self.payloadByteCount = payloadByteCount
    }

    // Byte 0.
    private static let finalBit: UInt8 = 0x80
    private static let compressedBit: UInt8 = 0x40
    private static let otherReservedBits: UInt8 = 0x30
    // Byte 1.
    private static let maskedBit: UInt8 = 0x80

    /// The longest payload of a control frame (RFC 6455, 5.5).
    package static let maximumControlPayload = 125

    /// Reads a header, and refuses it as soon as a fault is visible.
    ///
    /// - Parameters:
    ///   - bytes: The available bytes from the start of the frame.
    ///   - role: The side that reads.
    ///   - allowsCompression: Whether RSV1 has a meaning.
    /// - Returns: The header and its length in bytes; nil when more bytes are needed.
    /// - Throws: `WebSocketViolation`.
    package static func decode(
        _ bytes: UnsafeRawBufferPointer,
        role: WebSocketRole,
        allowsCompression: Bool
    ) throws(WebSocketViolation) -> (header: WebSocketFrameHeader, byteCount: Int)? {
        guard let first = bytes.first else { return nil }
        let isFinal = first & finalBit != 0
        let isCompressed = first & compressedBit != 0
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw .reservedOpcode(first & 0x0F)
        }
        guard first & otherReservedBits == 0 else { throw .reservedBits }
        if isCompressed {
            guard allowsCompression, opcode == .text || opcode == .binary else {
                throw .reservedBits
            }
        }
        guard isFinal || !opcode.isControl else { throw .fragmentedControlFrame }

        guard bytes.count >= 2 else { return nil }
        let isMasked = bytes[1] & maskedBit != 0
        switch role {
        case .client: guard !isMasked else { throw .maskedFrame }
        case .server: guard isMasked else { throw .unmaskedFrame }
        }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(2)))
        guard let length = try payloadLength(bytes[1] & 0x7F, opcode, &reader) else { return nil }
        var header = WebSocketFrameHeader(
            opcode: opcode,
            isFinal: isFinal,
            isCompressed: isCompressed,
            payloadByteCount: length
        )
        if isMasked {
            guard let key = reader.readUInt32() else { return nil }
            header.maskingKey = key.byteSwapped
        }
        return (header, 2 + reader.position)
    }

    private static func payloadLength(
        _ short: UInt8,
        _ opcode: WebSocketOpcode,
        _ reader: inout ByteReader
    ) throws(WebSocketViolation) -> Int? {
        guard short > 125 else { return Int(short) }
        guard !opcode.isControl else { throw .controlFrameTooLong }
        if short == 126 {
            guard let length = reader.readUInt16() else { return nil }
            guard length > 125 else { throw .malformedLength }
            return Int(length)
        }
        guard let high = reader.readUInt32() else { return nil }
        guard high < 0x8000_0000 else { throw .malformedLength }
        guard let low = reader.readUInt32() else { return nil }
        let length = Int(high) << 32 | Int(low)
        guard length > 65_535 else { throw .malformedLength }
        return length
    }

    package func encode(into writer: inout ByteWriter) {
        var first = opcode.rawValue
        if isFinal { first |= Self.finalBit }
        if isCompressed { first |= Self.compressedBit }
        let masked = maskingKey == nil ? 0 : Self.maskedBit
        writer.append(first)
        switch payloadByteCount {
        case ...125: writer.append(masked | UInt8(truncatingIfNeeded: payloadByteCount))
        case ...65_535:
            writer.append(masked | 126)
            writer.append(UInt16(truncatingIfNeeded: payloadByteCount))
        default:
            writer.append(masked | 127)
            writer.append(UInt32(truncatingIfNeeded: payloadByteCount >> 32))
            writer.append(UInt32(truncatingIfNeeded: payloadByteCount))
        }
        if let maskingKey { writer.append(maskingKey.byteSwapped) }
    }
}
