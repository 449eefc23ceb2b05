import WireCore

/// Scans the head of a frame once, as it arrives.
///
/// Offsets count from the front of the frame, which does not move until the frame is taken.
struct STOMPHeadScanner: Sendable {
    private typealias Style = STOMPReceivedHeaders.Style

    let role: STOMPRole
    let version: STOMPVersion?
    let limits: STOMPLimits
    /// Whether a MESSAGE may announce a body above the limit, which is skipped then.
    let skipsLongMessages: Bool

    /// The first byte that was not scanned; after the end of the head, the first byte behind it.
    private(set) var position = 0
    private(set) var command: STOMPCommand?
    /// The offset of the header lines.
    private(set) var linesStart = 0
    /// The offset of the empty line after the header lines.
    private(set) var linesEnd = 0
    private(set) var contentLength: Int?
    private(set) var places = STOMPReceivedHeaders.Places()
    private(set) var hasEscapes = false

    private var lineStart = 0
    /// The first colon of the line; negative if there was none.
    private var colon = -1
    private var headerCount = 0
    private var isASCII = true
    private var mayHaveEscapes = false

    init(
        role: STOMPRole,
        version: STOMPVersion?,
        limits: STOMPLimits,
        skipsLongMessages: Bool
    ) {
        self.role = role
        self.skipsLongMessages = skipsLongMessages
        self.version = version
        self.limits = limits
    }

    /// Whether CR LF ends a line: in 1.2, and before the version is known.
    private var endsLinesWithCarriageReturn: Bool { version == nil || version == .v1_2 }

    /// Whether servers may write a space before a value: in 1.0, and before the version is known.
    private var mayHavePadding: Bool {
        role == .client && (version == nil || version == .v1_0)
    }

    /// Scans the bytes that have arrived.
    ///
    /// - Returns: Whether the head is complete.
    mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(STOMPViolation) -> Bool {
        var index = position
        while true {
            index = Self.firstSpecial(in: bytes, from: index)
            guard index < bytes.count else { break }
            switch bytes[index] {
            case UInt8(ascii: "\n"):
                let isLast = try endLine(at: index, bytes)
                index += 1
                guard isLast else { continue }
                position = index
                try checkEncoding(bytes)
                return true
            case UInt8(ascii: ":"):
                if colon < 0 { try noteColon(at: index) }
            case UInt8(ascii: "\\") where mayHaveEscapes:
                guard index + 1 < bytes.count else { return try pause(at: index) }
                guard let version, STOMPEscapes.isDefined(bytes[index + 1], in: version) else {
                    throw .escapeUndefined
                }
                hasEscapes = true
                index += 1
            case UInt8(ascii: "\r") where version == .v1_2:
                guard index + 1 < bytes.count else { return try pause(at: index) }
                guard bytes[index + 1] == UInt8(ascii: "\n") else { throw .carriageReturnInvalid }
            case 0: throw .nullInHead
            case 0x80...: isASCII = false
            default: break
            }
            index += 1
        }
        return try pause(at: index)
    }

    /// The position of the first byte that may have a meaning in a head.
    ///
    /// That is a control character, a colon, a backslash, or a byte outside of ASCII.
    ///
    /// - Complexity: O(n), eight bytes at a time.
    @inline(__always)
    private static func firstSpecial(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        var index = start
        while bytes.count - index >= 8 {
            // In bounds: eight bytes are left. The first byte is the lowest in the word.
            let word = UInt64(
                littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            )
            let colons = word ^ (ones &* UInt64(UInt8(ascii: ":")))
            let backslashes = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
            // A high bit marks a byte below 0x20, a zero in one of the differences, or a byte outside of ASCII. Borrows
            // may mark bytes above such a byte, never below, so the lowest mark is correct.
            let marks =
                (((word &- ones &* 0x20) & ~word) | ((colons &- ones) & ~colons)
                    | ((backslashes &- ones) & ~backslashes) | word) & highs
            if marks != 0 { return index + marks.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < bytes.count {
            let byte = bytes[index]
            if byte < 0x20 || byte >= 0x80 || byte == UInt8(ascii: ":")
                || byte == UInt8(ascii: "\\")
            {
                return index
            }
            index += 1
        }
        return index
    }

    /// Stops at the end of the available bytes, unless the line is already too long.
    private mutating func pause(at index: Int) throws(STOMPViolation) -> Bool {
        position = index
        let length = index - lineStart
        // A command may be followed by the CR of its line end.
        guard command != nil || length <= STOMPCommand.longestByteCount + 1 else {
            throw .commandUnknown
        }
        // A header line may be, too; the comparison is written so that it does not overflow for any limit.
        guard length - 1 <= limits.maximumLineByteCount else {
            throw .lineTooLong(maximum: limits.maximumLineByteCount)
        }
        return false
    }

    private mutating func noteColon(at index: Int) throws(STOMPViolation) {
        guard command != nil else { throw .commandUnknown }
        guard index > lineStart else { throw .headerNameEmpty }
        guard headerCount < limits.maximumHeaderCount else {
            throw .tooManyHeaders(maximum: limits.maximumHeaderCount)
        }
        colon = index
    }

    /// Ends a line.
    ///
    /// - Returns: Whether the line is the empty one that ends the head.
    private mutating func endLine(
        at index: Int,
        _ bytes: UnsafeRawBufferPointer
    ) throws(STOMPViolation) -> Bool {
        var end = index
        if endsLinesWithCarriageReturn, end > lineStart, bytes[end - 1] == UInt8(ascii: "\r") {
            end -= 1
        }
        let start = lineStart
        lineStart = index + 1
        guard let command else {
            try noteCommand(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            linesStart = lineStart
            return false
        }
        guard end > start else {
            linesEnd = start
            return true
        }
        guard end - start <= limits.maximumLineByteCount else {
            throw .lineTooLong(maximum: limits.maximumLineByteCount)
        }
        guard colon >= 0 else { throw .headerLineInvalid }
        try noteHeader(start, end, bytes, of: command)
        colon = -1
        return false
    }

    private mutating func noteCommand(
        _ line: UnsafeRawBufferPointer
    ) throws(STOMPViolation) {
        guard let command = STOMPCommand(line) else { throw .commandUnknown }
        guard command.sender != role, command != .nack || version != .v1_0 else {
            throw .commandNotAllowed(command)
        }
        self.command = command
        mayHaveEscapes = command.hasEscapes(in: version)
    }

    private mutating func noteHeader(
        _ start: Int,
        _ end: Int,
        _ bytes: UnsafeRawBufferPointer,
        of command: STOMPCommand
    ) throws(STOMPViolation) {
        headerCount += 1
        // In bounds: the colon lies between the ends of the line.
        let name = UnsafeRawBufferPointer(rebasing: bytes[start..<colon])
        let value = colon + 1..<end
        // Relative to the lines, since the slice of the headers begins there.
        let place = colon + 1 - linesStart..<end - linesStart
        switch name.count {
        case 3: Self.note(place, at: &places.ack, name, "ack")
        case 10:
            Self.note(place, at: &places.messageID, name, "message-id")
            Self.note(place, at: &places.receiptID, name, "receipt-id")
        case 11: Self.note(place, at: &places.destination, name, "destination")
        case 12: Self.note(place, at: &places.subscription, name, "subscription")
        case 14:
            guard contentLength == nil, ("content-length" as StaticString).isEqual(to: name) else {
                return
            }
            contentLength = try length(UnsafeRawBufferPointer(rebasing: bytes[value]), of: command)
        default: break
        }
    }

    /// Notes the place of a value, if it is the first with that name.
    private static func note(
        _ value: Range<Int>,
        at place: inout STOMPReceivedHeaders.Places.Place,
        _ name: UnsafeRawBufferPointer,
        _ expected: StaticString
    ) {
        guard !place.isThere, expected.isEqual(to: name) else { return }
        // Beyond 4 GiB the place is omitted; the limits do not allow such frames.
        guard let offset = UInt32(exactly: value.lowerBound),
            let count = UInt32(exactly: value.count)
        else { return }
        place = .init(offset: offset, count: count, isThere: true)
    }

    /// Reads content-length and checks it against the limits, before any byte of the body is read.
    private func length(
        _ value: UnsafeRawBufferPointer,
        of command: STOMPCommand
    ) throws(STOMPViolation) -> Int {
        let digits = mayHavePadding ? STOMPHeaderLines.unpadded(value) : value
        guard !digits.isEmpty else { throw .contentLengthInvalid }
        var length = 0
        for byte in digits {
            guard byte &- UInt8(ascii: "0") <= 9 else { throw .contentLengthInvalid }
            // Stops counting before an overflow.
            guard length < Int.max / 16 else { continue }
            length = length * 10 + Int(byte &- UInt8(ascii: "0"))
        }
        guard length == 0 || command.allowsBody else { throw .bodyNotAllowed(command) }
        guard
            length <= min(limits.maximumBodyByteCount, Int.max / 16)
                || skipsLongMessages && command == .message
        else {
            throw .bodyTooLarge(maximum: limits.maximumBodyByteCount)
        }
        return length
    }

    private func checkEncoding(_ bytes: UnsafeRawBufferPointer) throws(STOMPViolation) {
        guard !isASCII else { return }
        let head = UnsafeRawBufferPointer(rebasing: bytes[..<position])
        guard UTF8Validation.scan(head).isWellFormed else { throw .invalidUTF8 }
    }

    /// The reading style for the lines of the frame.
    ///
    /// - Parameter version: The version; a CONNECTED that was scanned without a version may have set it.
    /// - Returns: The reading style.
    func style(_ version: STOMPVersion?) -> STOMPReceivedHeaders.Style {
        var style: Style = []
        if endsLinesWithCarriageReturn { style.insert(.carriageReturns) }
        if hasEscapes { style.insert(.escapes) }
        if role == .client, version == .v1_0 { style.insert(.padding) }
        return style
    }
}
