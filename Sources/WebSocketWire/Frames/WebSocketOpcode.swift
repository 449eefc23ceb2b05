/// What a frame is (RFC 6455, 5.2 and 11.8).
package enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether the frame is about the connection (RFC 6455, 5.5): short, whole, and free to come between
    /// the fragments of a message.
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// Which end of a connection one is.
package enum WebSocketRole: Sendable {
    /// Opens the connection and masks what it sends.
    case client
    /// Answers, and masks nothing.
    case server
}
