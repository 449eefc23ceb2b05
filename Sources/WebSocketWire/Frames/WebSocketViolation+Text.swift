import HTTPWire

extension WebSocketViolation: CustomStringConvertible {
    /// The violation in words; data of the peer is not repeated.
    package var description: String {
        switch self {
        case .reservedBits: "a frame with a reserved bit"
        case .reservedOpcode(let opcode): "a frame with the undefined opcode \(opcode)"
        case .malformedLength: "a frame with a malformed length"
        case .unmaskedFrame: "a frame of a client without a mask"
        case .maskedFrame: "a frame of a server with a mask"
        case .controlFrameTooLong: "a control frame of more than 125 bytes"
        case .fragmentedControlFrame: "a control frame in fragments"
        case .unexpectedContinuation: "a continuation without a message before it"
        case .messageInterrupted: "a new message before the one under way was complete"
        case .invalidText: "a text that is not UTF-8"
        case .messageTooBig(let maximum): "a message of more than \(maximum) bytes"
        case .malformedClose: "a Close with half a code"
        case .invalidCloseCode(let code): "a Close with the code \(code), which must not be sent"
        case .invalidCompressedData: "compressed data that cannot be inflated"
        case .unexpectedText: "a text message, where only binary ones are allowed"
        }
    }
}

extension WebSocketHandshakeFault: CustomStringConvertible {
    /// The fault in words.
    package var description: String {
        switch self {
        case .http(let violation): violation.description
        case .endOfStream: "the connection ended before the answer"
        case .noUpgrade: "the field Upgrade does not say websocket"
        case .noConnectionUpgrade: "the field Connection does not say upgrade"
        case .wrongAcceptKey: "the field Sec-WebSocket-Accept is missing or does not fit the key"
        case .unexpectedSubprotocol: "the server chose a subprotocol that was not offered"
        case .missingSubprotocol: "the server chose none of the subprotocols offered"
        case .unexpectedExtension: "the server chose an extension that was not offered"
        }
    }
}

extension WebSocketClientHandshake.RequestError: CustomStringConvertible {
    /// The reason in words; the value of a field is not repeated.
    package var description: String {
        switch self {
        case .http(let fault): fault.description
        case .invalidSubprotocol(let name):
            "the subprotocol \(name) is not a token, or is named twice"
        case .reservedField(let name): "the header \(name) belongs to the handshake itself"
        }
    }
}
