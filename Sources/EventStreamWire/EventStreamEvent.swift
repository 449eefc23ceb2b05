package import WireCore

/// An event as it is dispatched (HTML Standard, 9.2.6).
package struct EventStreamEvent: Hashable, Sendable {
    /// The event's type; `message` where the stream names none.
    package var type: String
    /// The values of its data fields, joined by line feeds; not yet decoded.
    package var data: ByteSlice
    /// The last event ID at its end, of this event or of one before.
    package var lastEventID: String

    package init(type: String = "message", data: ByteSlice, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }

    /// The data as text; what is not UTF-8 becomes U+FFFD (HTML Standard, 9.2.5).
    package var text: String {
        data.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

/// How much of a stream may be gathered before it makes sense.
package struct EventStreamLimits: Hashable, Sendable {
    /// The longest line, in bytes without its end.
    package var lineByteCount: Int
    /// The most data of an event, in bytes.
    package var eventByteCount: Int

    /// By default 64 KiB and 1 MiB.
    package init(lineByteCount: Int = 1 << 20 + 6, eventByteCount: Int = 1 << 20) {
        self.lineByteCount = lineByteCount
        self.eventByteCount = eventByteCount
    }
}

/// What a stream may not do: nothing in it is malformed, but something may be too long.
package enum EventStreamViolation: Error, Hashable, Sendable {
    /// A line is longer than the limit.
    case lineTooLong(maximum: Int)
    /// The data of an event is longer than the limit.
    case eventTooLong(maximum: Int)
}
