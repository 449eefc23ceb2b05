package import WireCore

/// Writes an event stream (HTML Standard, 9.2.5); nothing is repaired.
package enum EventStreamEncoder {
    /// Appends an event and the blank line after it; appends nothing when it throws.
    ///
    /// - Parameters:
    ///   - type: The event type; the field is left out for `message`, the type of events that name none.
    ///   - data: The data. Every kind of line break in it is read as a line feed.
    ///   - id: The last event ID from now on; empty for none, nil to leave it unchanged.
    ///   - retry: The reconnection time from now on, in whole milliseconds; nil to leave it unchanged.
    ///   - writer: The buffer to append to.
    /// - Throws: `EventStreamEncodingError`.
    package static func encode(
        type: String = "message",
        data: some WireBytes,
        id: String? = nil,
        retry: Duration? = nil,
        into writer: inout ByteWriter
    ) throws(EventStreamEncodingError) {
        guard !hasLineBreak(type), !type.isEmpty else { throw .invalidType }
        try check(id)
        if let retry { try encode(retry: retry, into: &writer) }
        if let id { field("id", id, &writer) }
        if type != "message" { field("event", type, &writer) }
        data.withWireBytes { bytes in
            eachLine(of: bytes) { line in
                writer.append(contentsOf: "data: ".utf8)
                writer.append(line)
                writer.append(lineFeed)
            }
        }
        writer.append(lineFeed)
    }

    /// Appends a reconnection time, which takes effect at once.
    ///
    /// - Throws: `invalidRetry` for a negative time.
    package static func encode(
        retry: Duration,
        into writer: inout ByteWriter
    ) throws(EventStreamEncodingError) {
        guard retry >= .zero else { throw .invalidRetry }
        let (seconds, attoseconds) = retry.components
        // A longer time counts as the longest.
        let milliseconds =
            min(seconds, 1 << 43) * 1_000 + attoseconds / 1_000_000_000_000_000
        field("retry", String(milliseconds), &writer)
    }

    /// Appends a comment; each of its lines becomes a comment line.
    package static func encode(comment: String, into writer: inout ByteWriter) {
        Array(comment.utf8).withWireBytes { bytes in
            eachLine(of: bytes) { line in
                writer.append(contentsOf: ": ".utf8)
                writer.append(line)
                writer.append(lineFeed)
            }
        }
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    private static func field(_ name: String, _ value: String, _ writer: inout ByteWriter) {
        writer.append(contentsOf: "\(name): \(value)\n".utf8)
    }

    private static func check(_ id: String?) throws(EventStreamEncodingError) {
        guard let id else { return }
        guard !hasLineBreak(id), !id.utf8.contains(0) else { throw .invalidID }
    }

    private static func hasLineBreak(_ text: String) -> Bool {
        text.utf8.contains { $0 == lineFeed || $0 == carriageReturn }
    }

    /// Calls `body` with each line, without its end: a line feed, a carriage return, or both.
    private static func eachLine(
        of bytes: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        var start = 0
        while let end = LineEnd.firstIndex(in: bytes, from: start) {
            body(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            let isPair =
                bytes[end] == carriageReturn && end + 1 < bytes.count && bytes[end + 1] == lineFeed
            start = end + (isPair ? 2 : 1)
        }
        body(UnsafeRawBufferPointer(rebasing: bytes[start...]))
    }
}

/// Values that an event stream cannot express.
package enum EventStreamEncodingError: Error, Hashable, Sendable {
    /// The type is empty or holds a line break.
    case invalidType
    /// The id holds a line break or NUL.
    case invalidID
    case invalidRetry
}
