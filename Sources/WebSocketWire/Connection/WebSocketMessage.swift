package import HTTPWire
package import WireCore

/// A complete message, decompressed.
package struct WebSocketMessage: Hashable, Sendable {
    package enum Kind: Sendable {
        /// Valid UTF-8.
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

/// The result of opening a connection.
package struct WebSocketOpening: Hashable, Sendable {
    /// The subprotocol that the server chose; nil for none.
    package var subprotocol: String?
    /// The agreed compression; nil for none.
    package var deflate: PermessageDeflate?
    /// The fields of the server's response.
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

/// An event for the driver.
package enum WebSocketEvent: Hashable, Sendable {
    /// A client requests a connection.
    ///
    /// Answer with ``WebSocketConnection/accept(_:subprotocol:headers:)`` or ``WebSocketConnection/refuse(_:body:)``.
    case requested(HTTPRequestHead)
    case opened(WebSocketOpening)
    /// A message, or a part of one; see ``WebSocketConfiguration/maximumMessageSize``.
    case message(WebSocketMessage)
    /// The peer sent a ping; the pong is already written.
    case ping(ByteSlice)
    case pong(ByteSlice)
    /// The data after the messages so far violates the protocol: the connection fails when the core continues.
    case violationAhead
    /// The connection ended; no event follows.
    case closed(WebSocketEnding)
}

/// The reason why a connection ended.
package enum WebSocketEnding: Hashable, Sendable {
    /// Both sides have sent Close (RFC 6455, 7.1.4); the code and the reason are the peer's.
    case closed(WebSocketCloseCode, reason: String, isByPeer: Bool)
    /// The server did not switch protocols: its response, and up to 64 KiB of its body.
    case refused(HTTPResponseHead, body: [UInt8])
    /// The opening handshake was invalid.
    case handshakeFailed(WebSocketHandshakeFault)
    /// The peer violated the protocol, and got a Close.
    case violation(WebSocketViolation)
    /// The peer was too late.
    case timedOut(Wait)
    /// The peer closed the stream without a Close (RFC 6455, 7.1.5: code 1006).
    case endOfStream

    /// Whether only the end of the stream is known, and not its cause.
    package var isLoss: Bool { self == .endOfStream || self == .handshakeFailed(.endOfStream) }

    /// The event that the connection waited for.
    package enum Wait: Sendable {
        case handshake
        case pong
        case close
    }
}

/// A fault in an opening handshake (RFC 6455, 4.1 and 4.2).
package enum WebSocketHandshakeFault: Error, Hashable, Sendable {
    /// The head is not HTTP/1.1.
    case http(HTTPViolation)
    /// The connection ended before the response.
    case endOfStream
    /// The response has no `Upgrade: websocket`.
    case noUpgrade
    /// The response has no `Connection: Upgrade`.
    case noConnectionUpgrade
    /// The accept key is missing or does not belong to the key.
    case wrongAcceptKey
    /// The server chose a subprotocol that was not offered, or several.
    case unexpectedSubprotocol
    /// The server chose no subprotocol, and one is required.
    case missingSubprotocol
    /// The server chose an extension that was not offered, or parameters that are not allowed.
    case unexpectedExtension
}

/// An invalid call of a sending method.
package enum WebSocketSendError: Error, Hashable, Sendable {
    /// The connection is not open, or Close was sent.
    case notOpen
    /// The code must not be sent (RFC 6455, 7.4).
    case invalidCloseCode(UInt16)
    /// A control frame holds at most 125 bytes, two of which are a Close's code.
    case controlPayloadTooLong(Int)
}
