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
    /// After how much silence a ping is sent while the protocol above has no heart-beat; 20 seconds by default, nil or
    /// zero for never.
    ///
    /// That is so for MQTT with a keep alive of zero, whoever of client and server has the last word, and for STOMP
    /// where neither side beats.
    public var pingInterval: Duration? = .seconds(20)
    /// How long the server may then stay silent before the connection counts as lost; 20 seconds by default.
    public var pingTimeout = Duration.seconds(20)

    /// Collects options.
    public init(headers: Headers = [:], offersCompression: Bool = false) {
        self.headers = headers
        self.offersCompression = offersCompression
    }
}
