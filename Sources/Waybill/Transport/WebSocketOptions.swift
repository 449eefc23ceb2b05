/// Options of the WebSocket below a transport, for the URL schemes `ws` and `wss`.
public struct WebSocketOptions: Sendable {
    /// Further fields of the upgrade request: tokens, cookies, an origin.
    ///
    /// Values are never logged. Fields that the handshake itself sets are refused with `invalidEntry`.
    public var headers: Headers
    /// Whether the client offers compression (RFC 7692), which takes about 300 KB per connection.
    ///
    /// On a system without zlib it is not offered.
    public var offersCompression: Bool
    /// The silence after which a ping is sent if the protocol above has no heart-beat; 20 seconds by default.
    ///
    /// Nil and zero mean never.
    ///
    /// This concerns MQTT with a keep alive of zero, whether set by the client or the server, and STOMP without
    /// heart-beats on both sides.
    public var pingInterval: Duration?
    /// The time that the server may then stay silent before the connection counts as lost; 20 seconds by default.
    public var pingTimeout: Duration

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        headers: Headers = [:],
        offersCompression: Bool = false,
        pingInterval: Duration? = .seconds(20),
        pingTimeout: Duration = .seconds(20)
    ) {
        self.headers = headers
        self.offersCompression = offersCompression
        self.pingInterval = pingInterval
        self.pingTimeout = pingTimeout
    }
}
