/// A violation of RFC 6455 or 7692 by the peer, or of a size limit.
package enum WebSocketViolation: Error, Hashable, Sendable {
    /// A reserved bit without a meaning (5.2).
    case reservedBits
    /// An undefined opcode (5.2).
    case reservedOpcode(UInt8)
    /// A length that takes more bytes than it needs, or has its highest bit set (5.2).
    case malformedLength
    /// A client's frame without a mask (5.1).
    case unmaskedFrame
    /// A server's frame with a mask (5.1).
    case maskedFrame
    /// A control frame of more than 125 bytes (5.5).
    case controlFrameTooLong
    /// A control frame in fragments (5.5).
    case fragmentedControlFrame
    /// A continuation without a message to continue (5.4).
    case unexpectedContinuation
    /// A new message before the current one is complete (5.4).
    case messageInterrupted
    /// Text that is not UTF-8 (8.1).
    case invalidText
    /// A message above the size limit, announced or decompressed.
    case messageTooBig(maximum: Int)
    /// A Close with half a code (5.5.1).
    case malformedClose
    /// A Close with a code that is not allowed (7.4).
    case invalidCloseCode(UInt16)
    /// Compressed data that is invalid (RFC 7692, 7.2.2).
    case invalidCompressedData
    /// A text message where the protocol above allows only binary messages (MQTT 5, 6.0.0-1); reported by that
    /// protocol.
    case unexpectedText

    /// The close code for the peer.
    package var closeCode: WebSocketCloseCode {
        switch self {
        case .invalidText, .invalidCompressedData: .invalidFramePayloadData
        case .messageTooBig: .messageTooBig
        case .unexpectedText: .unsupportedData
        default: .protocolError
        }
    }
}
