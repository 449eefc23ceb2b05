package import WireCore

// Messages, control frames and the closing handshake (RFC 6455, 5 to 7).
extension WebSocketConnection {
    // MARK: Sending

    /// Sends a message in one frame.
    ///
    /// - Parameters:
    ///   - kind: The kind of message; text must be UTF-8.
    ///   - payload: The bytes.
    /// - Throws: `notOpen`.
    package mutating func send(
        _ kind: WebSocketMessage.Kind,
        _ payload: some WireBytes
    ) throws(WebSocketSendError) {
        guard isOpen else { throw .notOpen }
        payload.withWireBytes { writer.write(kind, $0) }
    }

    /// Sends a message in one frame, from memory that is valid only during the call.
    package mutating func send(
        _ kind: WebSocketMessage.Kind,
        _ payload: UnsafeRawBufferPointer
    ) throws(WebSocketSendError) {
        guard isOpen else { throw .notOpen }
        writer.write(kind, payload)
    }

    /// Sends an uncompressed fragment of a message; unless it is final, the next fragment continues the message.
    package mutating func sendFragment(
        _ opcode: WebSocketOpcode,
        _ payload: some WireBytes,
        isFinal: Bool
    ) throws(WebSocketSendError) {
        guard isOpen else { throw .notOpen }
        payload.withWireBytes { writer.write(opcode, $0, isFinal: isFinal) }
    }

    /// Sends a ping; the peer echoes its payload of at most 125 bytes.
    package mutating func ping(_ payload: [UInt8] = []) throws(WebSocketSendError) {
        guard isOpen else { throw .notOpen }
        guard payload.count <= WebSocketFrameHeader.maximumControlPayload else {
            throw .controlPayloadTooLong(payload.count)
        }
        payload.withUnsafeBytes { writer.write(.ping, $0) }
    }

    /// Starts the closing handshake (RFC 6455, 7.1.2); messages of the peer are still received.
    ///
    /// A connection that is not open yet ends at once.
    ///
    /// - Parameters:
    ///   - code: The code; `noStatusReceived` to send none.
    ///   - reason: The reason in words: at most 123 bytes of UTF-8.
    ///   - now: The current time; the peer must answer within the close timeout.
    /// - Throws: `invalidCloseCode`, `controlPayloadTooLong`.
    package mutating func close(
        _ code: WebSocketCloseCode = .normalClosure,
        reason: String = "",
        at now: WireInstant
    ) throws(WebSocketSendError) {
        try code.check(with: reason)
        switch state {
        case .open:
            writer.writeClose(code, reason: reason)
            state = .closing(deadline: now.advanced(by: configuration.closeTimeout))
        case .opening:
            finish(.closed(.abnormalClosure, reason: "", isByPeer: false))
        case .closing, .lingering, .finished: break
        }
    }

    /// Fails the connection because of data that the protocol above does not accept (RFC 6455, 7.1.7).
    package mutating func fail(_ violation: WebSocketViolation, at now: WireInstant) {
        switch state {
        case .open, .closing: violate(violation, at: now)
        default: break
        }
    }

    // MARK: Receiving

    mutating func receiveFrames(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        if let violation = pendingViolation {
            pendingViolation = nil
            buffer.removeAll()
            return violate(violation, at: now)
        }
        let limit = events.count + ReceiveTurn.maximumEventCount
        var byteCount = 0
        var hasMessages = false
        while true {
            guard events.count < limit, byteCount < ReceiveTurn.maximumByteCount else {
                hasMoreInput = true
                return
            }
            do throws(WebSocketViolation) {
                guard let input = try reader.next(&buffer) else { return }
                switch input {
                case .message(let message):
                    hasMessages = true
                    byteCount += message.payload.count
                    events.append(.message(message))
                case .ping(let payload): answer(payload)
                case .pong(let payload): events.append(.pong(payload))
                case .close(let code, let reason):
                    buffer.removeAll()
                    return receiveClose(code, reason: reason, at: now)
                }
            } catch {
                guard hasMessages, isOpen else {
                    buffer.removeAll()
                    return violate(error, at: now)
                }
                // The messages before are valid: the application's replies to them are sent before the Close.
                pendingViolation = error
                hasMoreInput = true
                return events.append(.violationAhead)
            }
        }
    }

    private mutating func answer(_ payload: ByteSlice) {
        events.append(.ping(payload))
        // After this side's Close nothing more is sent (RFC 6455, 5.5.1).
        if isOpen { writer.writePong(payload) }
    }

    /// Handles the peer's Close, and answers it with its own code unless it is itself an answer (RFC 6455, 5.5.1).
    private mutating func receiveClose(
        _ code: WebSocketCloseCode,
        reason: String,
        at now: WireInstant
    ) {
        let isByPeer = isOpen
        if isByPeer { writer.writeClose(code, reason: "") }
        end(.closed(code, reason: reason, isByPeer: isByPeer), at: now)
    }

    private mutating func violate(_ violation: WebSocketViolation, at now: WireInstant) {
        if isOpen { writer.writeClose(violation.closeCode, reason: "") }
        linger(.violation(violation), at: now)
    }

    /// Ends the connection: the server closes the stream, and the client waits for that (RFC 6455, 7.1.1).
    private mutating func end(_ closure: WebSocketEnding, at now: WireInstant) {
        switch role {
        case .client: linger(closure, at: now)
        case .server: finish(closure)
        }
    }
}
