package import WireCore

/// Turns messages into frames: masked by a client, and compressed if that was agreed.
package struct WebSocketWriter: Sendable {
    private let role: WebSocketRole
    private let randomWords: @Sendable (Int) -> [UInt64]
    /// Random words with two masking keys each.
    private var keys: ArraySlice<UInt64> = []
    private var spareKey: UInt32?
    var deflater: Deflater?
    private let compressionThreshold: Int
    /// The payload of a ping that could not be answered yet because too much data waits.
    private var owedPong: ByteSlice?

    /// Above this number of bytes to send, only the last ping is answered (RFC 6455, 5.5.3).
    private static let pongLimit = 1 << 20

    /// The frames to send.
    package var outbound = ByteWriter()

    package init(
        role: WebSocketRole,
        compressionThreshold: Int = 0,
        randomWords: @escaping @Sendable (Int) -> [UInt64]
    ) {
        self.role = role
        self.compressionThreshold = compressionThreshold
        self.randomWords = randomWords
    }

    /// Returns the next masking key.
    ///
    /// Keys are fetched 64 at a time, because a call to the system takes longer than masking a small message.
    private mutating func nextKey() -> UInt32? {
        guard role == .client else { return nil }
        if let key = spareKey {
            spareKey = nil
            return key
        }
        if keys.isEmpty { keys = randomWords(32)[...] }
        let word = keys.popFirst() ?? 0
        spareKey = UInt32(truncatingIfNeeded: word >> 32)
        return UInt32(truncatingIfNeeded: word)
    }

    /// Writes a message as one frame.
    package mutating func write(_ kind: WebSocketMessage.Kind, _ payload: UnsafeRawBufferPointer) {
        let opcode: WebSocketOpcode = kind == .text ? .text : .binary
        guard let deflater, payload.count >= compressionThreshold,
            let compressed = deflater.compress(payload)
        else { return write(opcode, payload) }
        compressed.withUnsafeBytes { write(opcode, $0, isCompressed: true) }
    }

    package mutating func write(
        _ opcode: WebSocketOpcode,
        _ payload: UnsafeRawBufferPointer,
        isFinal: Bool = true,
        isCompressed: Bool = false
    ) {
        let key = nextKey()
        let header = WebSocketFrameHeader(
            opcode: opcode,
            isFinal: isFinal,
            isCompressed: isCompressed,
            maskingKey: key,
            payloadByteCount: payload.count
        )
        outbound.reserve(total: payload.count + 14)
        header.encode(into: &outbound)
        if let key {
            outbound.append(payload, maskedBy: key)
        } else {
            outbound.append(payload)
        }
    }

    /// Answers a ping, at once or as soon as there is room.
    mutating func writePong(_ payload: ByteSlice) {
        owedPong = payload
        writeOwedPong()
    }

    /// Answers the last of the pings that arrived while too much data waited.
    mutating func writeOwedPong() {
        guard let payload = owedPong, outbound.count < Self.pongLimit else { return }
        owedPong = nil
        payload.withUnsafeBytes { write(.pong, $0) }
    }

    /// Writes a Close; it has no code if none was given (RFC 6455, 5.5.1).
    mutating func writeClose(_ code: WebSocketCloseCode, reason: String) {
        guard code.isSendable else {
            return write(.close, UnsafeRawBufferPointer(start: nil, count: 0))
        }
        let bytes = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + Array(reason.utf8)
        bytes.withUnsafeBytes { write(.close, $0) }
    }
}
