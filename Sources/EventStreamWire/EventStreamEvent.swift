package import WireCore

/// An event as dispatched (HTML Standard, 9.2.6).
package struct EventStreamEvent: Hashable, Sendable {
    /// The event type; `message` if the stream names none.
    package var type: String
    /// The values of its data fields, joined by line feeds; not yet decoded.
    package var data: ByteSlice
    /// The last event ID after this event, set by this event or an earlier one.
    package var lastEventID: String

    package init(type: String = "message", data: ByteSlice, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }

    /// The data as text; bytes that are not UTF-8 become U+FFFD (HTML Standard, 9.2.5).
    package var text: String {
        data.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

/// The limits of data that is gathered from a stream.
package struct EventStreamLimits: Hashable, Sendable {
    /// The longest line, in bytes without its end.
    package var lineByteCount: Int
    /// The most data of an event, in bytes.
    package var eventByteCount: Int

    /// Makes limits; by default 1 MiB and 6 bytes for a line, and 1 MiB for an event.
    package init(lineByteCount: Int = 1 << 20 + 6, eventByteCount: Int = 1 << 20) {
        // As much as the name of a field, which decides what becomes of a longer line.
        self.lineByteCount = max(lineByteCount, 6)
        self.eventByteCount = eventByteCount
    }
}

/// A violation of a limit; nothing in an event stream can be malformed.
package enum EventStreamViolation: Error, Hashable, Sendable {
    /// A line of an `id`, `event` or `retry` field is longer than the limit.
    case lineTooLong(maximum: Int)
}

/// Events above the limit, which were not kept.
package struct EventStreamSkipped: Hashable, Sendable {
    package let count: Int
    /// The bytes of their data.
    package let byteCount: Int
}
