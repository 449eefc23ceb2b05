package import WireCore

/// Reads an event stream, exactly as the HTML Standard says (9.2.5 and 9.2.6).
///
/// Works on the bytes as they come: every byte is looked at once, a line that is not complete stays in the
/// buffer, and the data of an event in one line leaves as a slice of it.
package struct EventStreamParser: Sendable {
    private let limits: EventStreamLimits
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
    package init(lastEventID: String = "", limits: EventStreamLimits = EventStreamLimits()) {
        self.lastEventID = lastEventID
        idBuffer = lastEventID
        self.limits = limits
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
        while true {
            if mayContinueLineEnd {
                guard buffer.count > 0 else { return nil }
                mayContinueLineEnd = false
                if buffer.withUnsafeBytes({ $0[0] }) == Self.lineFeed { buffer.consume(1) }
            }
            guard let length = try lineLength(buffer) else { return nil }
            scanned = 0
            let end = buffer.withUnsafeBytes { $0[length] }
            mayContinueLineEnd = end == Self.carriageReturn
            if length == 0 {
                buffer.consume(1)
                if let event = dispatch() { return event }
            } else {
                try process(buffer, length)
                buffer.consume(length + 1)
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

    /// The length of the line at the front; nil when its end is not there yet.
    private mutating func lineLength(
        _ buffer: ReceiveBuffer
    ) throws(EventStreamViolation) -> Int? {
        let found = buffer.withUnsafeBytes { LineEnd.firstIndex(in: $0, from: scanned) }
        scanned = found ?? buffer.count
        guard scanned <= limits.lineByteCount else {
            throw .lineTooLong(maximum: limits.lineByteCount)
        }
        return found
    }

    /// Does what a line says (HTML Standard, 9.2.6: "process the field").
    private mutating func process(
        _ buffer: ReceiveBuffer,
        _ length: Int
    ) throws(EventStreamViolation) {
        let (field, start) = buffer.withUnsafeBytes { bytes in
            EventStreamField.read(UnsafeRawBufferPointer(rebasing: bytes[..<length]))
        }
        switch field {
        case .data:
            try data.append(
                buffer.slice(at: start, count: length - start),
                limit: limits.eventByteCount
            )
        case .event: type = text(buffer, start, length)
        case .id:
            let hasNull = buffer.withUnsafeBytes { $0[start..<length].contains(0) }
            if !hasNull { idBuffer = text(buffer, start, length) }
        case .retry: readRetry(buffer, start, length)
        case .other: break
        }
    }

    private func text(_ buffer: ReceiveBuffer, _ start: Int, _ end: Int) -> String {
        buffer.withUnsafeBytes { String(decoding: $0[start..<end], as: UTF8.self) }
    }

    /// ASCII digits alone, at least one; more than fit count as the most.
    private mutating func readRetry(_ buffer: ReceiveBuffer, _ start: Int, _ end: Int) {
        let milliseconds: Int64? = buffer.withUnsafeBytes { bytes in
            guard start < end else { return nil }
            var number: Int64 = 0
            for byte in bytes[start..<end] {
                guard byte &- UInt8(ascii: "0") <= 9 else { return nil }
                number = min(number &* 10 &+ Int64(byte &- UInt8(ascii: "0")), 1 << 53)
            }
            return number
        }
        if let milliseconds { reconnectionTime = .milliseconds(milliseconds) }
    }

    /// Ends a block at its blank line (HTML Standard, 9.2.6: "dispatch the event").
    private mutating func dispatch() -> EventStreamEvent? {
        lastEventID = idBuffer
        defer { type = "" }
        guard let data = data.take() else { return nil }
        return EventStreamEvent(
            type: type.isEmpty ? "message" : type,
            data: data,
            lastEventID: lastEventID
        )
    }
}
