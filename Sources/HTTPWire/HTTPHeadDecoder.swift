package import WireCore

/// The limits of a head.
package struct HTTPHeadLimits: Hashable, Sendable {
    /// The number of bytes, from the first to the empty line.
    package var byteCount: Int
    package var fieldCount: Int

    /// Makes limits; by default 64 KiB and 100 fields.
    package init(byteCount: Int = 65_536, fieldCount: Int = 100) {
        self.byteCount = byteCount
        self.fieldCount = fieldCount
    }
}

/// Takes complete heads from the front of a receive buffer.
///
/// Lines may end with a line feed alone (RFC 9112, 2.2). A carriage return elsewhere and folded lines are refused.
/// Values keep every byte: a value that is not UTF-8 is read as Latin-1.
package struct HTTPHeadDecoder: Sendable {
    private let limits: HTTPHeadLimits
    private var failure: HTTPViolation?
    /// The position where the search for the next line continues, and the start of that line.
    private var scanned = 0
    private var lineStart = 0
    /// The lines found so far, without their ends.
    private var lines: [Range<Int>] = []

    package init(limits: HTTPHeadLimits = HTTPHeadLimits()) {
        self.limits = limits
    }

    /// Takes the head of a response.
    ///
    /// - Returns: The head, or nil when more bytes are needed.
    /// - Throws: `HTTPViolation`, and again at every later call.
    package mutating func nextResponse(
        _ buffer: inout ReceiveBuffer
    ) throws(HTTPViolation) -> HTTPResponseHead? {
        // Said at once: what is no HTTP may never have an end of a line.
        if failure == nil, lines.isEmpty, !Self.mayBeResponse(buffer) {
            failure = .malformedStatusLine
        }
        return try next(&buffer) { (line, headers) throws(HTTPViolation) in
            try Self.response(line, headers)
        }
    }

    private static func mayBeResponse(_ buffer: ReceiveBuffer) -> Bool {
        buffer.withUnsafeBytes { bytes in zip(bytes, "HTTP/".utf8).allSatisfy { $0 == $1 } }
    }

    /// Takes the head of a request; empty lines before it are skipped (RFC 9112, 2.2).
    ///
    /// - Returns: The head, or nil when more bytes are needed.
    /// - Throws: `HTTPViolation`, and again at every later call.
    package mutating func nextRequest(
        _ buffer: inout ReceiveBuffer
    ) throws(HTTPViolation) -> HTTPRequestHead? {
        if scanned == 0 { Self.skipEmptyLines(&buffer) }
        return try next(&buffer) { (line, headers) throws(HTTPViolation) in
            try Self.request(line, headers)
        }
    }

    /// Takes trailer fields and the empty line after them.
    mutating func nextTrailers(
        _ buffer: inout ReceiveBuffer
    ) throws(HTTPViolation) -> HTTPHeaders? {
        try next(&buffer, hasStartLine: false) { _, headers in headers }
    }

    private mutating func next<Head>(
        _ buffer: inout ReceiveBuffer,
        hasStartLine: Bool = true,
        _ make: (String, HTTPHeaders) throws(HTTPViolation) -> Head
    ) throws(HTTPViolation) -> Head? {
        if let failure { throw failure }
        do throws(HTTPViolation) {
            guard let byteCount = try scan(buffer, hasStartLine: hasStartLine) else { return nil }
            let lines = lines
            let head = try buffer.withUnsafeBytes { bytes throws(HTTPViolation) in
                var fields = HTTPHeaders()
                for line in lines.dropFirst(hasStartLine ? 1 : 0) {
                    try Self.appendField(bytes[line], to: &fields)
                }
                let startLine = hasStartLine ? lines.first.map { Self.text(bytes[$0]) } : nil
                return try make(startLine ?? "", fields)
            }
            buffer.consume(byteCount)
            scanned = 0
            lineStart = 0
            self.lines = []
            return head
        } catch {
            failure = error
            throw error
        }
    }

    /// Finds the lines up to the empty line.
    ///
    /// - Returns: The length of the whole head, or nil when its end has not arrived yet.
    private mutating func scan(
        _ buffer: ReceiveBuffer,
        hasStartLine: Bool
    ) throws(HTTPViolation) -> Int? {
        try buffer.withUnsafeBytes { bytes throws(HTTPViolation) in
            while scanned < bytes.count {
                guard scanned < limits.byteCount else {
                    throw .headTooLarge(maximum: limits.byteCount)
                }
                let byte = bytes[scanned]
                scanned += 1
                guard byte == UInt8(ascii: "\n") else { continue }
                var end = scanned - 1
                if end > lineStart, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
                let line = lineStart..<end
                guard !bytes[line].contains(UInt8(ascii: "\r")) else { throw .bareCarriageReturn }
                lineStart = scanned
                guard !line.isEmpty else {
                    guard !lines.isEmpty || !hasStartLine else { throw .malformedStatusLine }
                    return scanned
                }
                lines.append(line)
                guard lines.count <= limits.fieldCount + (hasStartLine ? 1 : 0) else {
                    throw .tooManyFields(maximum: limits.fieldCount)
                }
            }
            guard scanned < limits.byteCount else {
                throw .headTooLarge(maximum: limits.byteCount)
            }
            return nil
        }
    }

    private static func skipEmptyLines(_ buffer: inout ReceiveBuffer) {
        let count = buffer.withUnsafeBytes { bytes in
            bytes.prefix { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }.count
        }
        buffer.consume(count)
    }

    // MARK: Lines

    private static func appendField(
        _ line: Slice<UnsafeRawBufferPointer>,
        to headers: inout HTTPHeaders
    ) throws(HTTPViolation) {
        guard let first = line.first, first != UInt8(ascii: " "), first != UInt8(ascii: "\t") else {
            throw .obsoleteLineFolding
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(HTTPSyntax.isTokenByte)
        else { throw .malformedField }
        let value = line[(colon + 1)...]
        guard value.allSatisfy(HTTPSyntax.isValueByte) else { throw .invalidFieldValue }
        headers.append(name: text(line[..<colon]), value: HTTPSyntax.trimmed(text(value)))
    }

    private static func response(
        _ line: String,
        _ headers: HTTPHeaders
    ) throws(HTTPViolation) -> HTTPResponseHead {
        let parts = words(line, maxSplits: 2)
        let isVersion1_0 = try version(parts[0], otherwise: .malformedStatusLine)
        guard parts.count > 1, parts[1].utf8.count == 3, let status = HTTPSyntax.number(parts[1]),
            (100...599).contains(status)
        else { throw .malformedStatusLine }
        // HTTP/1.0 has no upgrade (RFC 9110, 7.8; RFC 6455, 4.1).
        guard status != 101 || !isVersion1_0 else { throw .unsupportedVersion }
        let reason = parts.count > 2 ? String(parts[2]) : ""
        guard reason.utf8.allSatisfy(HTTPSyntax.isValueByte) else { throw .malformedStatusLine }
        return HTTPResponseHead(
            status: status,
            reason: reason,
            headers: headers,
            isVersion1_0: isVersion1_0
        )
    }

    private static func request(
        _ line: String,
        _ headers: HTTPHeaders
    ) throws(HTTPViolation) -> HTTPRequestHead {
        let parts = words(line, maxSplits: .max)
        guard parts.count == 3, HTTPSyntax.isToken(parts[0]), !parts[1].isEmpty,
            parts[1].utf8.allSatisfy(HTTPSyntax.isTargetByte)
        else { throw .malformedRequestLine }
        let isVersion1_0 = try version(parts[2], otherwise: .malformedRequestLine)
        return HTTPRequestHead(
            method: String(parts[0]),
            target: String(parts[1]),
            headers: headers,
            isVersion1_0: isVersion1_0
        )
    }

    /// Splits at single spaces, by bytes: a combining mark after a space would form another character with it.
    private static func words(_ line: String, maxSplits: Int) -> [Substring] {
        line.utf8
            .split(
                separator: UInt8(ascii: " "),
                maxSplits: maxSplits,
                omittingEmptySubsequences: false
            )
            .map { Substring($0) }
    }

    private static func version(
        _ text: Substring,
        otherwise violation: HTTPViolation
    ) throws(HTTPViolation) -> Bool {
        switch text {
        case "HTTP/1.1": return false
        case "HTTP/1.0": return true
        default: throw text.hasBytePrefix("HTTP/") ? .unsupportedVersion : violation
        }
    }

    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        let isWellFormed = UTF8Validation.scan(UnsafeRawBufferPointer(rebasing: bytes)).isWellFormed
        if isWellFormed { return String(decoding: bytes, as: UTF8.self) }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
