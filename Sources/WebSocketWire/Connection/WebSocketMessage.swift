package import HTTPWire
package import WireCore

/// A message, whole and inflated.
package struct WebSocketMessage: Hashable, Sendable {
    /// What its bytes are.
    package enum Kind: Sendable {
        /// UTF-8, and checked.
        case text
        case binary
    }

    package var kind: Kind
    package var payload: ByteSlice

    package init(kind: Kind, payload: ByteSlice) {
        self.kind = kind
        self.payload = payload
    }
}

/// What was agreed on when a connection was opened.
package struct WebSocketOpening: Hashable, Sendable {
    /// The subprotocol that the server chose; nil for none.
    package var subprotocol: String?
    /// How messages may be compressed; nil for not at all.
    package var deflate: PermessageDeflate?
    /// The fields of the server's answer.
    package var headers: HTTPHeaders

    package init(
        subprotocol: String? = nil,
        deflate: PermessageDeflate? = nil,
        headers: HTTPHeaders = [:]
    ) {
        self.subprotocol = subprotocol
        self.deflate = deflate
        self.headers = headers
    }
}

/// What a connection tells its driver.
package enum WebSocketEvent: Hashable, Sendable {
    /// A client asks to be connected; ``WebSocketConnection/accept(_:subprotocol:headers:)`` or
    /// ``WebSocketConnection/refuse(_:body:)`` answers.
    case requested(HTTPRequestHead)
    /// The connection is open.
    case opened(WebSocketOpening)
    case message(WebSocketMessage)
    /// The peer asks for a sign of life; it has been given.
    case ping(ByteSlice)
    /// The peer gives one.
    case pong(ByteSlice)
    /// What follows the messages before breaks the protocol: the connection fails when the core goes on.
    case violationAhead
    /// The connection is over; nothing follows.
    case closed(WebSocketEnding)
}

/// Why a connection is over.
package enum WebSocketEnding: Hashable, Sendable {
    /// Both sides have sent Close (RFC 6455, 7.1.4); the code and the reason are the peer's.
    case closed(WebSocketCloseCode, reason: String, isByPeer: Bool)
    /// The server did not switch protocols: its answer, and up to 64 KiB of its body.
    case refused(HTTPResponseHead, body: [UInt8])
    /// The opening handshake broke the rules.
    case handshakeFailed(WebSocketHandshakeFault)
    /// The peer broke the protocol and has been told.
    case violation(WebSocketViolation)
    /// The peer did not do this in time.
    case timedOut(Wait)
    /// The peer closed the stream without a Close (RFC 6455, 7.1.5: code 1006).
    case endOfStream

    /// Whether it is only known that the stream has ended, not what has broken it.
    package var isLoss: Bool { self == .endOfStream || self == .handshakeFailed(.endOfStream) }

    /// What was waited for.
    package enum Wait: Sendable {
        case handshake
        case pong
        case close
    }
}

/// What is wrong with an opening handshake (RFC 6455, 4.1 and 4.2).
package enum WebSocketHandshakeFault: Error, Hashable, Sendable {
    /// The head is not HTTP/1.1.
    case http(HTTPViolation)
    /// The connection ended before the answer.
    case endOfStream
    /// The answer does not say `Upgrade: websocket`.
    case noUpgrade
    /// The answer does not say `Connection: Upgrade`.
    case noConnectionUpgrade
    /// The accept key is absent or not the one that belongs to the key.
    case wrongAcceptKey
    /// The server chose a subprotocol that was not offered, or several.
    case unexpectedSubprotocol
    /// The server chose none of the subprotocols, and one is needed.
    case missingSubprotocol
    /// The server chose an extension that was not offered, or parameters that it must not choose.
    case unexpectedExtension
}

/// What the sending side may not do.
package enum WebSocketSendError: Error, Hashable, Sendable {
    /// The connection is not open, or Close was sent.
    case notOpen
    /// The code must not be sent (RFC 6455, 7.4).
    case invalidCloseCode(UInt16)
    /// A control frame holds 125 bytes at the most, two of which are a Close's code.
    case controlPayloadTooLong(Int)
}
