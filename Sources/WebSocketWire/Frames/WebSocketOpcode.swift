/// The type of a frame (RFC 6455, 5.2 and 11.8).
package enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether the frame is a control frame (RFC 6455, 5.5).
    ///
    /// A control frame is short and never fragmented, and may come between the fragments of a message.
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// A side of a connection.
package enum WebSocketRole: Sendable {
    /// Opens the connection and masks what it sends.
    case client
    /// Accepts the connection and masks nothing.
    case server
}
