public import Waybill
import WebSocketWire
import WireCore

extension WebSocketClient {
    /// The settings of a connection.
    public struct Configuration: Sendable {
        /// The subprotocols to offer, the preferred one first (RFC 6455, 1.9).
        public var subprotocols: [String] = []
        /// Whether the server must choose one of the subprotocols; false by default.
        public var requiresSubprotocol = false
        /// Further fields of the upgrade request: tokens, cookies, an origin.
        public var headers: Headers = [:]
        /// The compression to offer; nil for none.
        ///
        /// On a system without zlib none is offered.
        public var compression: Compression? = Compression()
        /// The length in bytes from which messages are compressed; 64 by default.
        public var compressionThreshold = 64
        /// The TLS options, for URLs with `wss`.
        public var tls = TLSOptions()
        /// The proxy for connections; nil, the default, for none.
        public var proxy: ProxyOptions?
        /// The other hosts that may be connected to; none by default.
        public var failover = FailoverOptions()
        /// The longest message to accept, in bytes after decompression; 1 MiB by default.
        ///
        /// A longer one ends the connection with code 1009.
        public var maximumMessageSize = 1 << 20
        /// The bytes of messages that may wait for the reader before reading from the peer stops; 1 MiB by default.
        public var maximumWaitingSize = 1 << 20
        /// The time limit for connecting to a host, from resolving its name to its response; 10 seconds by default.
        public var connectTimeout = Duration.seconds(10)
        /// The time limit for the peer's Close, and again for the end of the stream; 5 seconds by default.
        public var closeTimeout = Duration.seconds(5)
        /// The silence after which a ping is sent; 20 seconds by default, nil for never.
        public var pingInterval: Duration? = .seconds(20)
        /// The time that the peer may stay silent after the ping; 20 seconds by default.
        public var pingTimeout = Duration.seconds(20)

        /// Is shown every message, and each ping, pong and Close of the peer, without contents; nil, the default, for none.
        public var wireLogger: (any WireLogger)?
        /// The name of this client in its events and log records; nil, the default, for none.
        public var label: String?

        /// Makes the default configuration.
        public init() {}

        /// Shows a frame to the wire logger, if there is one.
        ///
        /// - Parameters:
        ///   - direction: The direction.
        ///   - name: The name of the frame.
        ///   - text: What is shown; nil for the name.
        ///   - body: The body.
        ///   - byteCount: The length of the body in bytes.
        func log(
            _ direction: WireRecord.Direction,
            _ name: String,
            text: String? = nil,
            _ body: @autoclosure () -> Payload = Payload(),
            byteCount: Int
        ) {
            wireLogger?.logFrame(
                direction,
                text ?? name,
                name: name,
                byteCount: byteCount,
                body: body(),
                of: label
            )
        }

        /// Converts to the configuration of the WebSocket core.
        func wire(_ randomWords: @escaping @Sendable (Int) -> [UInt64]) -> WebSocketConfiguration {
            var wire = WebSocketConfiguration(randomWords: randomWords)
            wire.maximumMessageSize = max(maximumMessageSize, 0)
            wire.deflate = compression.map { compression in
                PermessageDeflate(
                    serverNoContextTakeover: compression.serverNoContextTakeover,
                    clientNoContextTakeover: compression.clientNoContextTakeover,
                    serverMaxWindowBits: compression.serverMaxWindowBits,
                    clientMaxWindowBits: compression.clientMaxWindowBits
                )
            }
            wire.compressionThreshold = compressionThreshold
            wire.closeTimeout = closeTimeout
            wire.pingInterval = pingInterval
            wire.pingTimeout = pingTimeout
            return wire
        }
    }

    /// The parameters of permessage-deflate (RFC 7692, 7.1).
    public struct Compression: Hashable, Sendable {
        /// Whether the server must compress each message separately; false by default.
        public var serverNoContextTakeover = false
        /// Whether the client compresses each message separately; false by default.
        public var clientNoContextTakeover = false
        /// The server's window, as a power of two from 8 to 15; 15 by default.
        public var serverMaxWindowBits = 15
        /// The client's window, as a power of two from 8 to 15; 15 by default.
        public var clientMaxWindowBits = 15

        /// Makes the default parameters.
        public init() {}
    }

    /// A message.
    public enum Message: Hashable, Sendable {
        /// Text, which is UTF-8 on the wire.
        case text(String)
        /// Bytes.
        case binary([UInt8])

        /// The number of bytes on the wire, before compression.
        public var byteCount: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let bytes): bytes.count
            }
        }
    }

    /// The number that says why a WebSocket was closed (RFC 6455, 7.4).
    public typealias CloseCode = WebSocketClosure.Code

    /// The end of a connection.
    public typealias Closure = WebSocketClosure
}

extension WebSocketClient.Message: CustomStringConvertible {
    /// Kind and length, never the content.
    public var description: String {
        switch self {
        case .text: "text of \(byteCount) bytes"
        case .binary: "\(byteCount) bytes"
        }
    }
}

extension WebSocketClient.Message: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: content is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
