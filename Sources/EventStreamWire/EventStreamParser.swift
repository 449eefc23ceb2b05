package import WireCore

/// Reads an event stream, exactly as the HTML Standard says (9.2.5 and 9.2.6).
///
/// Works on the bytes as they come: every byte is looked at once, a line that is not complete stays in the
/// buffer, and the data of an event in one line leaves as a slice of it.
package struct EventStreamParser: Sendable {
    private let limits: EventStreamLimits
    /// Whether comments are kept for ``takeComments()``.
    private let keepsComments: Bool
    private var comments: [String] = []
    private var failure: EventStreamViolation?

    /// Whether a byte order mark may still come: at the very start only.
    private var isAtStart = true
    /// Whether the line before ended with a carriage return, so that a line feed belongs to it.
    private var mayContinueLineEnd = false
    /// How much of the line under way has been searched for its end.
    private var scanned = 0

    /// The event under way.
    private var data = EventStreamData()
    private var type = ""
    /// What an `id` field has set and no blank line has confirmed yet.
    private var idBuffer: String

    /// The last event ID: of the last block that was complete, or as it was given.
    package private(set) var lastEventID: String

    /// The reconnection time that the stream has set last; nil if it has set none.
    package private(set) var reconnectionTime: Duration?

    /// - Parameters:
    ///   - lastEventID: Where an earlier stream stopped.
    ///   - limits: How much may be gathered.
    ///   - keepsComments: Whether comments are kept, which the specification has ignored.
    package init(
        lastEventID: String = "",
        limits: EventStreamLimits = EventStreamLimits(),
        keepsComments: Bool = false
    ) {
        self.lastEventID = lastEventID
        self.keepsComments = keepsComments
        idBuffer = lastEventID
        self.limits = limits
    }

    /// Takes the comments that were read before the last event, or since.
    ///
    /// Each is the text behind the colon, without one space at its front.
    package mutating func takeComments() -> [String] {
        guard !comments.isEmpty else { return [] }
        defer { comments = [] }
        return comments
    }

    /// Takes the next event.
    /// - Returns: The event, or nil when more bytes are needed.
    /// - Throws: `EventStreamViolation`, again at every call after the first.
    package mutating func next(
        _ buffer: inout ReceiveBuffer
    ) throws(EventStreamViolation) -> EventStreamEvent? {
        if let failure { throw failure }
        do throws(EventStreamViolation) {
            return try nextEvent(&buffer)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func nextEvent(
        _ buffer: inout ReceiveBuffer
    ) throws(EventStreamViolation) -> EventStreamEvent? {
        if isAtStart {
            guard skipByteOrderMark(&buffer) else { return nil }
        }
        var cursor = 0
        let event = try buffer.withUnsafeBytes { bytes throws(EventStreamViolation) in
            try readEvent(bytes, of: buffer, from: &cursor)
        }
        data.keep(buffer)
        buffer.consume(cursor)
        return event
    }

    /// Reads lines up to the end of an event.
    ///
    /// - Parameters:
    ///   - bytes: All that waits in the buffer.
    ///   - buffer: The buffer itself, for slices of it.
    ///   - cursor: How much has been read; moved on.
    /// - Returns: The event, or nil when more bytes are needed.
    /// - Throws: `EventStreamViolation`.
    private mutating func readEvent(
        _ bytes: UnsafeRawBufferPointer,
        of buffer: ReceiveBuffer,
        from cursor: inout Int
    ) throws(EventStreamViolation) -> EventStreamEvent? {
        while true {
            if mayContinueLineEnd {
                guard cursor < bytes.count else { return nil }
                mayContinueLineEnd = false
                if bytes[cursor] == Self.lineFeed { cursor += 1 }
            }
            guard let end = try lineEnd(bytes, from: cursor) else { return nil }
            scanned = 0
            mayContinueLineEnd = bytes[end] == Self.carriageReturn
            let start = cursor
            cursor = end + 1
            if end > start {
                try process(bytes, start, end)
            } else if let event = dispatch(buffer) {
                return event
            }
        }
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// - Returns: Whether it is clear that there is none left.
    private mutating func skipByteOrderMark(_ buffer: inout ReceiveBuffer) -> Bool {
        let count = buffer.withUnsafeBytes { bytes in
            zip(bytes, Self.byteOrderMark).prefix { $0 == $1 }.count
        }
        guard count == 3 || count < buffer.count else { return false }
        if count == 3 { buffer.consume(3) }
        isAtStart = false
        return true
    }

    // MARK: Lines

    /// Where the line that begins at `start` ends; nil when its end is not there yet.
    private mutating func lineEnd(
        _ bytes: UnsafeRawBufferPointer,
        from start: Int
    ) throws(EventStreamViolation) -> Int? {
        let found = LineEnd.firstIndex(in: bytes, from: start + scanned)
        scanned = (found ?? bytes.count) - start
        guard scanned <= limits.lineByteCount else {
            throw .lineTooLong(maximum: limits.lineByteCount)
        }
        return found
    }

    /// Does what a line says (HTML Standard, 9.2.6: "process the field").
    private mutating func process(
        _ bytes: UnsafeRawBufferPointer,
        _ start: Int,
        _ end: Int
    ) throws(EventStreamViolation) {
        let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
        let (field, valueStart) = EventStreamField.read(line)
        let value = UnsafeRawBufferPointer(rebasing: line[valueStart...])
        switch field {
        case .data:
            try data.append(
                value,
                at: start + valueStart,
                in: bytes,
                limit: limits.eventByteCount
            )
        case .event: type = String(decoding: value, as: UTF8.self)
        case .id: if !value.contains(0) { idBuffer = String(decoding: value, as: UTF8.self) }
        case .retry: readRetry(value)
        case .other: if keepsComments { keepComment(line) }
        }
    }

    private mutating func keepComment(_ line: UnsafeRawBufferPointer) {
        guard line.first == UInt8(ascii: ":") else { return }
        let hasSpace = line.count > 1 && line[1] == UInt8(ascii: " ")
        comments.append(String(decoding: line.dropFirst(hasSpace ? 2 : 1), as: UTF8.self))
    }

    /// ASCII digits alone, at least one; more than fit count as the most.
    private mutating func readRetry(_ digits: UnsafeRawBufferPointer) {
        guard !digits.isEmpty else { return }
        var number: Int64 = 0
        for byte in digits {
            guard byte &- UInt8(ascii: "0") <= 9 else { return }
            number = min(number &* 10 &+ Int64(byte &- UInt8(ascii: "0")), 1 << 53)
        }
        reconnectionTime = .milliseconds(number)
    }

    /// Ends a block at its blank line (HTML Standard, 9.2.6: "dispatch the event").
    private mutating func dispatch(_ buffer: ReceiveBuffer) -> EventStreamEvent? {
        lastEventID = idBuffer
        let type = type
        self.type = ""
        guard let data = data.take(buffer) else { return nil }
        return EventStreamEvent(
            type: type.isEmpty ? "message" : type,
            data: data,
            lastEventID: lastEventID
        )
    }
}
