import WebSocketWire
import WireCore

/// How the bytes of a stream are cut into the messages of a WebSocket.
package enum WebSocketUnits: Sendable {
    /// Anywhere, as binary messages (MQTT 5, 6.0.0-2).
    case anywhere
    /// One unit of the protocol above in each message, as text where it is UTF-8 and binary where it is
    /// not; the closure gives the length of the first unit, zero if it is not complete.
    case each(@Sendable (UnsafeRawBufferPointer) -> Int)

    /// The longest message that is cut ``anywhere``: 64 KiB.
    private static let messageSize = 65_536

    /// How much of these bytes, at least one, makes the next message.
    func length(of bytes: UnsafeRawBufferPointer) -> Int {
        guard case .each(let measure) = self else { return min(bytes.count, Self.messageSize) }
        let length = measure(bytes)
        return length > 0 ? min(length, bytes.count) : bytes.count
    }

    /// What kind of message a unit makes.
    func kind(of unit: UnsafeRawBufferPointer) -> WebSocketMessage.Kind {
        guard case .each = self else { return .binary }
        return UTF8Validation.scan(unit).isWellFormed ? .text : .binary
    }
}
