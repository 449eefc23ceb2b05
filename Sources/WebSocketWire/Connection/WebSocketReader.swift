package import WireCore

/// Frames into messages: fragments joined, masks removed, data inflated, text checked as it comes.
///
/// A message in one frame, neither masked nor compressed, leaves as a slice of the memory it was received
/// in; everything else is gathered once.
package struct WebSocketReader: Sendable {
    /// What the peer sent.
    package enum Input: Hashable, Sendable {
        case message(WebSocketMessage)
        case ping(ByteSlice)
        case pong(ByteSlice)
        case close(WebSocketCloseCode, reason: String)
    }

    private struct Message {
        var kind: WebSocketMessage.Kind
        var isCompressed: Bool
    }

    /// How much memory the announcement of a message is worth: 16 MiB.
    private static let reservationLimit = 16 << 20

    private let role: WebSocketRole
    private let maximumMessageSize: Int
    private let inflater: Inflater?
    private var failure: WebSocketViolation?

    /// The frame under way, and how much of its payload has been used.
    private var header: WebSocketFrameHeader?
    private var used = 0
    /// The message under way and what has been gathered of it.
    private var message: Message?
    private var gathered = ByteWriter(capacity: 0)
    private var text = UTF8StreamValidator()

    /// - Parameters:
    ///   - role: Which end reads.
    ///   - maximumMessageSize: The longest message to accept, in bytes, inflated.
    ///   - inflater: What undoes compression; nil when none was agreed on.
    init(role: WebSocketRole, maximumMessageSize: Int, inflater: Inflater?) {
        self.role = role
        self.maximumMessageSize = maximumMessageSize
        self.inflater = inflater
    }

    /// A reader without compression.
    package init(role: WebSocketRole, maximumMessageSize: Int) {
        self.init(role: role, maximumMessageSize: maximumMessageSize, inflater: nil)
    }

    /// Takes the next message or control frame.
    /// - Returns: What came, or nil when more bytes are needed.
    /// - Throws: `WebSocketViolation`, again at every call after the first.
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

    /// Reads a header and checks that its frame may come here (RFC 6455, 5.4).
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
        // What is compressed is measured as it is inflated, and nothing of it is kept before.
        if !header.opcode.isControl, message?.isCompressed == false {
            guard header.payloadByteCount <= maximumMessageSize - gathered.count else {
                throw .messageTooBig(maximum: maximumMessageSize)
            }
        }
        buffer.consume(byteCount)
        self.header = header
        return true
    }

    /// Takes a whole payload, without its mask.
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

    /// The payload of a message in one frame, once it is there; text is checked before.
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
            // No more than that on the peer's word alone; beyond, the buffer doubles as bytes come.
            buffer.reserve(total: min(header.payloadByteCount, Self.reservationLimit))
            return nil
        }
        guard message.kind == .binary || text.isComplete else { throw .invalidText }
        let payload = buffer.slice(at: 0, count: available)
        buffer.consume(available)
        return payload
    }

    /// Takes what is there of a frame that must be unmasked, inflated or joined with others.
    /// - Returns: Whether the frame is complete.
    private mutating func gather(
        _ header: WebSocketFrameHeader,
        _ message: Message,
        _ buffer: inout ReceiveBuffer
    ) throws(WebSocketViolation) -> Bool {
        let available = min(buffer.count, header.payloadByteCount - used)
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
            try inflater.decompress(bytes, into: &gathered, limit: maximumMessageSize)
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

    /// Ends a message that was gathered.
    private mutating func complete(
        _ message: Message
    ) throws(WebSocketViolation) -> WebSocketMessage {
        let before = gathered.count
        if message.isCompressed {
            try inflater?.finishMessage(into: &gathered, limit: maximumMessageSize)
            try checkText(message, from: before)
        }
        guard message.kind == .binary || text.isComplete else { throw .invalidText }
        return WebSocketMessage(kind: message.kind, payload: gathered.takeSlice())
    }
}
