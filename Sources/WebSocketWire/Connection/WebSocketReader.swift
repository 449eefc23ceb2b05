package import WireCore

/// Turns frames into messages: joins fragments, removes masks, decompresses data, and checks text as it arrives.
///
/// A message in one frame that is neither masked nor compressed is returned as a slice of the receive buffer. Any other
/// message is gathered once. Without a limit no message is gathered: its parts are returned as they arrive.
package struct WebSocketReader: Sendable {
    /// A message or control frame of the peer.
    package enum Input: Hashable, Sendable {
        /// A whole message, or a part of one if there is no limit.
        case message(WebSocketMessage)
        case ping(ByteSlice)
        case pong(ByteSlice)
        case close(WebSocketCloseCode, reason: String)
    }

    private struct Message {
        var kind: WebSocketMessage.Kind
        var isCompressed: Bool
    }

    /// The most memory that is reserved for an announced message: 16 MiB.
    private static let reservationLimit = 16 << 20
    /// The compressed bytes that are decompressed at a time without a limit: 1 KiB, which become at most some 1 MiB.
    private static let compressedStep = 1_024
    /// The size in bytes from which the decompressed part of a message is returned: 64 KiB.
    private static let partSize = 65_536

    private let role: WebSocketRole
    private let maximumMessageSize: Int?
    private let inflater: Inflater?
    private var failure: WebSocketViolation?

    /// The current frame, and the number of its payload bytes that were used.
    private var header: WebSocketFrameHeader?
    private var used = 0
    /// The current message and its gathered part.
    private var message: Message?
    private var gathered = ByteWriter(capacity: 0)
    private var text = UTF8StreamValidator()

    /// - Parameters:
    ///   - role: The side that reads.
    ///   - maximumMessageSize: The longest message to accept, in bytes after decompression; nil to return the parts of
    ///     messages as they arrive.
    ///   - inflater: The decompressor; nil without compression.
    init(role: WebSocketRole, maximumMessageSize: Int?, inflater: Inflater?) {
        self.role = role
        self.maximumMessageSize = maximumMessageSize
        self.inflater = inflater
    }

    package init(role: WebSocketRole, maximumMessageSize: Int?) {
        self.init(role: role, maximumMessageSize: maximumMessageSize, inflater: nil)
    }

    /// Takes the next message or control frame.
    ///
    /// - Returns: The message or frame, or nil when more bytes are needed.
    /// - Throws: `WebSocketViolation`, and again at every later call.
    package mutating func next(
        _ buffer: inout ReceiveBuffer
    ) throws(WebSocketViolation) -> Input? {
        if let failure { throw failure }
        do throws(WebSocketViolation) {
            return try nextInput(&buffer)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func nextInput(
        _ buffer: inout ReceiveBuffer
    ) throws(WebSocketViolation) -> Input? {
        while true {
            guard let header else {
                guard try beginFrame(&buffer) else { return nil }
                continue
            }
            if header.opcode.isControl {
                guard buffer.count >= header.payloadByteCount else { return nil }
                self.header = nil
                return try control(header, take(header, from: &buffer))
            }
            guard let message else { throw .unexpectedContinuation }
            guard maximumMessageSize != nil else {
                let part = try nextPart(header, message, &buffer)
                if part.count > 0 {
                    return .message(WebSocketMessage(kind: message.kind, payload: part))
                }
                if self.header != nil { return nil }
                continue
            }
            let isWhole =
                header.isFinal && header.opcode != .continuation && header.maskingKey == nil
                && !message.isCompressed
            if isWhole {
                guard let payload = try wholePayload(header, message, &buffer) else { return nil }
                return finish(WebSocketMessage(kind: message.kind, payload: payload))
            }
            guard try gather(header, message, &buffer) else { return nil }
            self.header = nil
            used = 0
            guard header.isFinal else { continue }
            return finish(try complete(message))
        }
    }

    private mutating func finish(_ message: WebSocketMessage) -> Input {
        header = nil
        used = 0
        self.message = nil
        return .message(message)
    }

    // MARK: Frames

    /// Reads a header and checks that its frame is allowed here (RFC 6455, 5.4).
    private mutating func beginFrame(
        _ buffer: inout ReceiveBuffer
    ) throws(WebSocketViolation) -> Bool {
        let found = try buffer.withUnsafeBytes { bytes throws(WebSocketViolation) in
            try WebSocketFrameHeader.decode(bytes, role: role, allowsCompression: inflater != nil)
        }
        guard let (header, byteCount) = found else { return false }
        switch header.opcode {
        case .continuation:
            guard message != nil else { throw .unexpectedContinuation }
        case .text, .binary:
            guard message == nil else { throw .messageInterrupted }
            message = Message(
                kind: header.opcode == .text ? .text : .binary,
                isCompressed: header.isCompressed
            )
            text = UTF8StreamValidator()
        case .close, .ping, .pong: break
        }
        // A compressed message is measured during decompression, and none of it is gathered before.
        if let maximumMessageSize, !header.opcode.isControl, message?.isCompressed == false {
            guard header.payloadByteCount <= maximumMessageSize - gathered.count else {
                throw .messageTooBig(maximum: maximumMessageSize)
            }
        }
        buffer.consume(byteCount)
        self.header = header
        return true
    }

    /// Takes a whole payload and removes its mask.
    private func take(_ header: WebSocketFrameHeader, from buffer: inout ReceiveBuffer) -> ByteSlice
    {
        let slice = buffer.slice(at: 0, count: header.payloadByteCount)
        buffer.consume(slice.count)
        guard let key = header.maskingKey else { return slice }
        var plain = ByteWriter(capacity: slice.count)
        slice.withUnsafeBytes { plain.append($0, maskedBy: key) }
        return plain.takeSlice()
    }

    private func control(
        _ header: WebSocketFrameHeader,
        _ payload: ByteSlice
    ) throws(WebSocketViolation) -> Input {
        switch header.opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        default: return try close(payload)
        }
    }

    /// Reads a Close (RFC 6455, 5.5.1).
    private func close(_ payload: ByteSlice) throws(WebSocketViolation) -> Input {
        guard payload.count > 0 else { return .close(.noStatusReceived, reason: "") }
        return try payload.withUnsafeBytes { bytes throws(WebSocketViolation) in
            var reader = ByteReader(bytes)
            guard let code = reader.readUInt16() else { throw .malformedClose }
            let closeCode = WebSocketCloseCode(rawValue: code)
            guard closeCode.isSendable else { throw .invalidCloseCode(code) }
            let reason = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(2))
            guard UTF8Validation.scan(reason).isWellFormed else { throw .invalidText }
            return .close(closeCode, reason: String(decoding: reason, as: UTF8.self))
        }
    }

    // MARK: Messages

    /// Returns the payload of a message in one frame when it is complete; text is checked as it arrives.
    private mutating func wholePayload(
        _ header: WebSocketFrameHeader,
        _ message: Message,
        _ buffer: inout ReceiveBuffer
    ) throws(WebSocketViolation) -> ByteSlice? {
        let available = min(buffer.count, header.payloadByteCount)
        if message.kind == .text, available > used {
            let isValid = buffer.withUnsafeBytes { bytes in
                text.receive(UnsafeRawBufferPointer(rebasing: bytes[used..<available]))
            }
            guard isValid else { throw .invalidText }
            used = available
        }
        guard available == header.payloadByteCount else {
            // Reserves no more than the limit on the peer's announcement; above it, the buffer doubles as bytes arrive.
            buffer.reserve(total: min(header.payloadByteCount, Self.reservationLimit))
            return nil
        }
        guard message.kind == .binary || text.isComplete else { throw .invalidText }
        let payload = buffer.slice(at: 0, count: available)
        buffer.consume(available)
        return payload
    }

    /// Takes the part of a message that has arrived; empty if there is none.
    private mutating func nextPart(
        _ header: WebSocketFrameHeader,
        _ message: Message,
        _ buffer: inout ReceiveBuffer
    ) throws(WebSocketViolation) -> ByteSlice {
        var part = ByteSlice.empty
        if header.maskingKey == nil, !message.isCompressed {
            part = buffer.slice(at: 0, count: header.payloadByteCount - used)
            if message.kind == .text {
                guard part.withUnsafeBytes({ text.receive($0) }) else { throw .invalidText }
            }
            buffer.consume(part.count)
            used += part.count
        } else {
            let step = message.isCompressed ? Self.compressedStep : .max
            repeat {
                guard try !gather(header, message, &buffer, atMost: step) else { break }
            } while buffer.count > 0 && gathered.count < Self.partSize
        }
        if used == header.payloadByteCount {
            self.header = nil
            used = 0
            if header.isFinal {
                self.message = nil
                let rest = try complete(message).payload
                if part.count == 0 { part = rest }
            }
        }
        return part.count > 0 ? part : gathered.takeSlice()
    }

    /// Takes the available part of a frame that must be unmasked, decompressed or joined.
    ///
    /// - Returns: Whether the frame is complete.
    private mutating func gather(
        _ header: WebSocketFrameHeader,
        _ message: Message,
        _ buffer: inout ReceiveBuffer,
        atMost limit: Int = .max
    ) throws(WebSocketViolation) -> Bool {
        let available = min(buffer.count, header.payloadByteCount - used, limit)
        let before = gathered.count
        if available > 0 {
            let piece = buffer.slice(at: 0, count: available)
            try append(piece, header, message)
            buffer.consume(available)
            used += available
        }
        try checkText(message, from: before)
        return used == header.payloadByteCount
    }

    private mutating func append(
        _ piece: ByteSlice,
        _ header: WebSocketFrameHeader,
        _ message: Message
    ) throws(WebSocketViolation) {
        guard message.isCompressed, let inflater else {
            piece.withUnsafeBytes { bytes in
                guard let key = header.maskingKey else { return gathered.append(bytes) }
                gathered.append(bytes, maskedBy: key, offset: used)
            }
            return
        }
        var plain = piece
        if let key = header.maskingKey {
            var unmasked = ByteWriter(capacity: piece.count)
            piece.withUnsafeBytes { unmasked.append($0, maskedBy: key, offset: used) }
            plain = unmasked.takeSlice()
        }
        try plain.withUnsafeBytes { bytes throws(WebSocketViolation) in
            try inflater.decompress(bytes, into: &gathered, limit: maximumMessageSize ?? .max)
        }
    }

    private mutating func checkText(
        _ message: Message,
        from offset: Int
    ) throws(WebSocketViolation) {
        guard message.kind == .text, gathered.count > offset else { return }
        let isValid = gathered.withUnsafeBytes { bytes in
            text.receive(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
        }
        guard isValid else { throw .invalidText }
    }

    /// Ends a gathered message.
    private mutating func complete(
        _ message: Message
    ) throws(WebSocketViolation) -> WebSocketMessage {
        let before = gathered.count
        if message.isCompressed {
            try inflater?.finishMessage(into: &gathered, limit: maximumMessageSize ?? .max)
            try checkText(message, from: before)
        }
        guard message.kind == .binary || text.isComplete else { throw .invalidText }
        return WebSocketMessage(kind: message.kind, payload: gathered.takeSlice())
    }
}
