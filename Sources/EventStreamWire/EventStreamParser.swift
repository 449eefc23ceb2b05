package import WireCore

/// Reads an event stream as the HTML Standard specifies (9.2.5 and 9.2.6).
///
/// The parser reads the bytes as they arrive and looks at every byte once. An incomplete line stays in the buffer. The
/// data of an event with a single line is returned as a slice of the buffer.
package struct EventStreamParser: Sendable {
    private let limits: EventStreamLimits
    /// Whether comments are kept for ``takeComments()``.
    private let keepsComments: Bool
    private var comments: [String] = []
    private var failure: EventStreamViolation?
    /// The number of lines that ``next(_:)`` may yet read: a few compressed bytes can hold millions.
    package var linesLeft = Int.max

    /// Whether a byte order mark may still come: only at the very start.
    private var isAtStart = true
    /// Whether the previous line ended with a carriage return, so that a following line feed belongs to it.
    private var mayContinueLineEnd = false
    /// The part of the current line that was searched for its end.
    private var scanned = 0

    /// The current event.
    private var data = EventStreamData()
    private var type = ""
    /// The bytes of data so far of an event above the limit, which is skipped; nil for any other event.
    private var skippedByteCount: Int?
    /// The events that were skipped since ``takeSkipped()``.
    private var skipped: EventStreamSkipped?
    /// The field of a line above the limit, of which more bytes are skipped.
    private var longField: EventStreamField?
    /// The value of an `id` field that no blank line has confirmed yet.
    private var idBuffer: String

    /// The last event ID: that of the last complete block, or the initial one.
    package private(set) var lastEventID: String

    /// The reconnection time that the stream set last; nil if it has set none.
    package private(set) var reconnectionTime: Duration?

    /// - Parameters:
    ///   - lastEventID: The id of the last event of an earlier stream.
    ///   - limits: The limits of data that is gathered.
    ///   - keepsComments: Whether comments are kept; the specification ignores them.
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
    /// Each is the text after the colon, without one leading space.
    package mutating func takeComments() -> [String] {
        guard !comments.isEmpty else { return [] }
        defer { comments = [] }
        return comments
    }

    /// Takes the events above the limit that were skipped before the last event, or since.
    package mutating func takeSkipped() -> EventStreamSkipped? { skipped.take() }

    /// Takes the next event.
    ///
    /// An event above a limit is skipped: its data is not kept, and its id counts.
    ///
    /// - Returns: The event, or nil when more bytes are needed, or when ``linesLeft`` is zero.
    /// - Throws: `EventStreamViolation`, and again at every later call.
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
    ///   - bytes: All bytes in the buffer.
    ///   - buffer: The buffer itself, for slices of it.
    ///   - cursor: The offset of the first unread byte; moved forward.
    /// - Returns: The event, or nil when more bytes are needed.
    /// - Throws: `EventStreamViolation`.
    private mutating func readEvent(
        _ bytes: UnsafeRawBufferPointer,
        of buffer: ReceiveBuffer,
        from cursor: inout Int
    ) throws(EventStreamViolation) -> EventStreamEvent? {
        while linesLeft > 0 {
            if mayContinueLineEnd {
                guard cursor < bytes.count else { return nil }
                mayContinueLineEnd = false
                if bytes[cursor] == Self.lineFeed { cursor += 1 }
            }
            if longField != nil {
                guard skipLine(bytes, from: &cursor) else { return nil }
                continue
            }
            let found = lineEnd(bytes, from: cursor)
            guard scanned <= limits.lineByteCount else {
                try beginLongLine(bytes, from: cursor)
                continue
            }
            guard let end = found else { return nil }
            scanned = 0
            linesLeft -= 1
            mayContinueLineEnd = bytes[end] == Self.carriageReturn
            let start = cursor
            cursor = end + 1
            if end > start {
                process(bytes, start, end)
            } else if let event = dispatch(buffer) {
                return event
            }
        }
        return nil
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Skips a byte order mark.
    ///
    /// - Returns: Whether it is certain that none remains.
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

    /// Finds the end of the line that begins at `start`; nil when it has not arrived yet.
    private mutating func lineEnd(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        let found = LineEnd.firstIndex(in: bytes, from: start + scanned)
        scanned = (found ?? bytes.count) - start
        return found
    }

    /// Begins to skip a line above the limit: with data it belongs to an event above the limit, and a comment has no
    /// meaning.
    ///
    /// - Throws: `lineTooLong` for another field, without which the stream has another meaning.
    private mutating func beginLongLine(
        _ bytes: UnsafeRawBufferPointer,
        from start: Int
    ) throws(EventStreamViolation) {
        let line = UnsafeRawBufferPointer(rebasing: bytes[start..<start + scanned])
        scanned = 0
        let (field, valueStart) = EventStreamField.read(line)
        switch field {
        case .data: skipData(-valueStart)
        case .other: break
        case .event, .id, .retry: throw .lineTooLong(maximum: limits.lineByteCount)
        }
        longField = field
    }

    /// Skips the rest of a line above the limit.
    ///
    /// - Returns: Whether the line has ended.
    private mutating func skipLine(
        _ bytes: UnsafeRawBufferPointer,
        from cursor: inout Int
    ) -> Bool {
        let end = LineEnd.firstIndex(in: bytes, from: cursor)
        if case .data? = longField { skipData((end ?? bytes.count) - cursor) }
        cursor = end.map { $0 + 1 } ?? bytes.count
        guard let end else { return false }
        mayContinueLineEnd = bytes[end] == Self.carriageReturn
        longField = nil
        return true
    }

    /// Counts data of an event above the limit.
    private mutating func skipData(_ byteCount: Int) {
        skippedByteCount = (skippedByteCount ?? data.count) + byteCount
        data = EventStreamData()
    }

    /// Processes a line (HTML Standard, 9.2.6: "process the field").
    private mutating func process(
        _ bytes: UnsafeRawBufferPointer,
        _ start: Int,
        _ end: Int
    ) {
        let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
        let (field, valueStart) = EventStreamField.read(line)
        let value = UnsafeRawBufferPointer(rebasing: line[valueStart...])
        switch field {
        case .data:
            let isKept =
                skippedByteCount == nil
                && data.append(
                    value,
                    at: start + valueStart,
                    in: bytes,
                    limit: limits.eventByteCount
                )
            if !isKept { skipData(value.count) }
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

    /// Reads one or more ASCII digits; a larger number than fits counts as the largest.
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
        if let byteCount = skippedByteCount.take() {
            skipped = EventStreamSkipped(
                count: (skipped?.count ?? 0) + 1,
                byteCount: (skipped?.byteCount ?? 0) + byteCount
            )
        }
        guard let data = data.take(buffer) else { return nil }
        return EventStreamEvent(
            type: type.isEmpty ? "message" : type,
            data: data,
            lastEventID: lastEventID
        )
    }
}
