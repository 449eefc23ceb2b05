/// What a peer did that RFC 6455 or 7692 does not allow, or that is larger than it may be.
package enum WebSocketViolation: Error, Hashable, Sendable {
    /// A reserved bit that no extension gives a meaning to (5.2).
    case reservedBits
    /// An opcode that is not defined (5.2).
    case reservedOpcode(UInt8)
    /// A length that takes more bytes than it needs, or has its highest bit set (5.2).
    case malformedLength
    /// A client's frame without a mask (5.1).
    case unmaskedFrame
    /// A server's frame with one (5.1).
    case maskedFrame
    /// A control frame of more than 125 bytes (5.5).
    case controlFrameTooLong
    /// A control frame in fragments (5.5).
    case fragmentedControlFrame
    /// A continuation where no message is under way (5.4).
    case unexpectedContinuation
    /// A new message before the one under way is complete (5.4).
    case messageInterrupted
    /// Text that is not UTF-8 (8.1).
    case invalidText
    /// A message of more bytes than allowed, announced or inflated.
    case messageTooBig(maximum: Int)
    /// A Close with half a code (5.5.1).
    case malformedClose
    /// A Close with a code that must not be sent (7.4).
    case invalidCloseCode(UInt16)
    /// Compressed data that cannot be inflated (RFC 7692, 7.2.2).
    case invalidCompressedData
    /// A text where the protocol above has binary messages only (MQTT 5, 6.0.0-1); told by whoever is above.
    case unexpectedText

    /// What the peer is told.
    package var closeCode: WebSocketCloseCode {
        switch self {
        case .invalidText, .invalidCompressedData: .invalidFramePayloadData
        case .messageTooBig: .messageTooBig
        case .unexpectedText: .unsupportedData
        default: .protocolError
        }
    }
}
