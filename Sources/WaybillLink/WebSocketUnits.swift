import WebSocketWire
import WireCore

/// The division of a stream's bytes into WebSocket messages.
package enum WebSocketUnits: Sendable {
    /// At any place, as binary messages (MQTT 5, 6.0.0-2).
    case anywhere
    /// One unit of the protocol above per message; the closure returns the length of the first unit, zero if it is
    /// incomplete.
    ///
    /// A unit that is UTF-8 becomes a text message, any other a binary message.
    case each(@Sendable (UnsafeRawBufferPointer) -> Int)

    /// The longest message with ``anywhere``: 64 KiB.
    private static let messageSize = 65_536

    /// The number of these bytes, at least one, in the next message.
    func length(of bytes: UnsafeRawBufferPointer) -> Int {
        guard case .each(let measure) = self else { return min(bytes.count, Self.messageSize) }
        let length = measure(bytes)
        return length > 0 ? min(length, bytes.count) : bytes.count
    }

    /// The kind of message for a unit.
    func kind(of unit: UnsafeRawBufferPointer) -> WebSocketMessage.Kind {
        guard case .each = self else { return .binary }
        return UTF8Validation.scan(unit).isWellFormed ? .text : .binary
    }
}
