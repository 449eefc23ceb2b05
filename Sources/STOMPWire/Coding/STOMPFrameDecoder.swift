package import WireCore

/// Takes complete frames from the front of a receive buffer.
///
/// No byte is read twice, however small the arriving pieces are.
package struct STOMPFrameDecoder: Sendable {
    /// The version of the connection; nil until it is agreed.
    ///
    /// A client's decoder learns it from the CONNECTED that it decodes. A server sets it between CONNECT and the next
    /// frame.
    package var version: STOMPVersion?
    /// The number of line ends between frames so far; each is a heart-beat (Heart-beating).
    package private(set) var heartBeatCount = 0
    /// The bytes of these line ends.
    package private(set) var heartBeatByteCount = 0

    /// The most memory that is reserved for an announced body; above it, memory grows as bytes arrive.
    private static let reservationLimit = 1 << 20

    private let role: STOMPRole
    private let limits: STOMPLimits
    private var failure: STOMPViolation?
    /// The head of the frame at the front; nil between frames.
    private var scanner: STOMPHeadScanner?
    private var isHeadComplete = false
    /// The offset up to which a body without a length was searched for its NUL.
    private var searched = 0
    /// Whether the body of a MESSAGE above the limit is skipped, instead of refused.
    var skipsLongMessages = false
    // Out of line, because few connections have one.
    private var skipped: Shared<Skipped>?

    private struct Skipped {
        var message: STOMPSkippedMessage
        /// The bytes of the body that have not arrived yet; nil for a body that ends with its NUL.
        var rest: Int?
        var isComplete = false
    }

    /// - Parameters:
    ///   - role: The side that decodes.
    ///   - version: The version if known; nil before the connection is open.
    ///   - limits: The limits of a frame.
    package init(
        role: STOMPRole,
        version: STOMPVersion? = nil,
        limits: STOMPLimits = STOMPLimits()
    ) {
        self.role = role
        self.version = version
        self.limits = limits
    }

    /// Takes the next frame, together with the line ends before it.
    ///
    /// - Returns: The frame; nil when more bytes are needed, or a message was skipped (``takeSkipped()``).
    /// - Throws: `STOMPViolation`, and again at every later call.
    package mutating func next(
        _ buffer: inout ReceiveBuffer
    ) throws(STOMPViolation) -> STOMPFrame? {
        if let failure { throw failure }
        do throws(STOMPViolation) {
            if skipped != nil {
                try skip(&buffer)
                return nil
            }
            if scanner == nil { try skipLineEnds(&buffer) }
            guard buffer.count > 0 else { return nil }
            return try frame(&buffer)
        } catch {
            failure = error
            throw error
        }
    }

    /// Skips line ends between frames, which are heart-beats; CR LF is allowed in every version.
    private mutating func skipLineEnds(_ buffer: inout ReceiveBuffer) throws(STOMPViolation) {
        var found = 0
        let count = buffer.withUnsafeBytes { bytes in
            var index = 0
            while index < bytes.count {
                var next = index
                if bytes[next] == UInt8(ascii: "\r"), next + 1 < bytes.count { next += 1 }
                guard bytes[next] == UInt8(ascii: "\n") else { break }
                found += 1
                index = next + 1
            }
            return index
        }
        heartBeatCount &+= found
        heartBeatByteCount &+= count
        buffer.consume(count)
        let (first, isMore) = buffer.withUnsafeBytes { ($0.first, $0.count > 1) }
        guard let first else { return }
        if first == UInt8(ascii: "\r") {
            // Half of a line end, or an invalid frame.
            guard !isMore else { throw .commandUnknown }
            return
        }
        scanner = STOMPHeadScanner(
            role: role,
            version: version,
            limits: limits,
            skipsLongMessages: skipsLongMessages
        )
        isHeadComplete = false
    }

    private mutating func frame(_ buffer: inout ReceiveBuffer) throws(STOMPViolation) -> STOMPFrame?
    {
        guard scanner != nil else { return nil }
        if !isHeadComplete {
            isHeadComplete = try buffer.withUnsafeBytes { bytes throws(STOMPViolation) in
                try scanner?.scan(bytes) ?? false
            }
            guard isHeadComplete else { return nil }
            searched = scanner?.position ?? 0
        }
        guard let scanner, let command = scanner.command else { return nil }
        guard let count = try bodyCount(&buffer, scanner, command) else { return nil }
        var headers = headers(buffer, scanner)
        if command == .connected, version == nil { try learnVersion(&headers, scanner) }
        let body = buffer.slice(at: scanner.position, count: count)
        buffer.consume(scanner.position + count + 1)
        self.scanner = nil
        return STOMPFrame(command: command, headers: headers, body: body)
    }

    private func headers(
        _ buffer: ReceiveBuffer,
        _ scanner: STOMPHeadScanner
    ) -> STOMPReceivedHeaders {
        STOMPReceivedHeaders(
            lines: buffer.slice(
                at: scanner.linesStart,
                count: scanner.linesEnd - scanner.linesStart
            ),
            style: scanner.style(version),
            places: scanner.places
        )
    }

    // MARK: Messages above the limit

    /// Takes the message that ``next(_:)`` has skipped to its end; nil if there is none.
    mutating func takeSkipped() -> STOMPSkippedMessage? {
        guard let skipped, skipped.value.isComplete else { return nil }
        self.skipped = nil
        return skipped.value.message
    }

    /// Takes the head of a message above the limit, whose body is skipped as it arrives.
    private mutating func beginSkipping(
        _ buffer: inout ReceiveBuffer,
        _ scanner: STOMPHeadScanner
    ) throws(STOMPViolation) {
        let frame = STOMPFrame(command: .message, headers: headers(buffer, scanner), body: .empty)
        let message = STOMPSkippedMessage(frame: frame, byteCount: scanner.contentLength ?? 0)
        skipped = Shared(Skipped(message: message, rest: scanner.contentLength))
        buffer.consume(scanner.position)
        self.scanner = nil
        try skip(&buffer)
    }

    private mutating func skip(_ buffer: inout ReceiveBuffer) throws(STOMPViolation) {
        guard var value = skipped?.value else { return }
        if let rest = value.rest {
            let count = min(buffer.count, rest)
            buffer.consume(count)
            value.rest = rest - count
            if rest == count, let end = buffer.withUnsafeBytes({ $0.first }) {
                guard end == 0 else { throw .frameEndMissing }
                value.isComplete = true
                buffer.consume(1)
            }
        } else {
            let end = buffer.withUnsafeBytes { STOMPFrameEnd.firstNull(in: $0, from: 0) }
            value.message.byteCount += end ?? buffer.count
            value.isComplete = end != nil
            buffer.consume(end.map { $0 + 1 } ?? buffer.count)
        }
        skipped = Shared(value)
    }

    /// Returns the length of the body when it has arrived completely, including the NUL after it.
    private mutating func bodyCount(
        _ buffer: inout ReceiveBuffer,
        _ scanner: STOMPHeadScanner,
        _ command: STOMPCommand
    ) throws(STOMPViolation) -> Int? {
        let start = scanner.position
        if let length = scanner.contentLength {
            guard length <= limits.maximumBodyByteCount else {
                try beginSkipping(&buffer, scanner)
                return nil
            }
            guard buffer.count > start + length else {
                buffer.reserve(total: min(start + length + 1, Self.reservationLimit))
                return nil
            }
            let isEnded = buffer.withUnsafeBytes { $0[start + length] == 0 }
            guard isEnded else {
                throw command.allowsBody ? .frameEndMissing : .bodyNotAllowed(command)
            }
            return length
        }
        let end = buffer.withUnsafeBytes { STOMPFrameEnd.firstNull(in: $0, from: searched) }
        searched = end ?? buffer.count
        let length = searched - start
        guard length == 0 || command.allowsBody else { throw .bodyNotAllowed(command) }
        guard length <= limits.maximumBodyByteCount else {
            guard skipsLongMessages, command == .message else {
                throw .bodyTooLarge(maximum: limits.maximumBodyByteCount)
            }
            try beginSkipping(&buffer, scanner)
            return nil
        }
        return end == nil ? nil : length
    }

    /// Reads the version from CONNECTED; without one it is 1.0 (STOMP 1.2, Protocol Negotiation).
    private mutating func learnVersion(
        _ headers: inout STOMPReceivedHeaders,
        _ scanner: STOMPHeadScanner
    ) throws(STOMPViolation) {
        if let text = headers.first(STOMPHeaderName.version) {
            guard let told = STOMPVersion(text: text) else { throw .versionNotOffered }
            version = told
        } else {
            version = .v1_0
        }
        headers.style = scanner.style(version)
    }
}

/// A MESSAGE above the limit, whose body was not kept.
package struct STOMPSkippedMessage: Sendable {
    /// The frame without its body.
    package let frame: STOMPFrame
    /// The length of the body in bytes.
    package fileprivate(set) var byteCount: Int
}
