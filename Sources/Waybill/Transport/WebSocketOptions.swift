/// How a transport asks for the WebSocket that it runs over, where its URL says `ws` or `wss`.
public struct WebSocketOptions: Sendable {
    /// Further fields of the request for the upgrade: tokens, cookies, an origin.
    ///
    /// Values are never logged. What the handshake itself sets is refused with `invalidEntry`.
    public var headers: Headers
    /// Whether compression is offered (RFC 7692); it takes some 300 KB a connection.
    ///
    /// Where the system has no zlib, it is not.
    public var offersCompression: Bool

    /// Collects options.
    public init(headers: Headers = [:], offersCompression: Bool = false) {
        self.headers = headers
        self.offersCompression = offersCompression
    }
}
