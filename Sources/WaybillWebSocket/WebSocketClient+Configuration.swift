public import Waybill
import WebSocketWire
import WireCore

extension WebSocketClient {
    /// How a connection behaves.
    public struct Configuration: Sendable {
        /// What subprotocols are offered, best first (RFC 6455, 1.9).
        public var subprotocols: [String] = []
        /// Whether the server must choose one of them; false by default.
        public var requiresSubprotocol = false
        /// Further fields of the request for the upgrade: tokens, cookies, an origin.
        public var headers: Headers = [:]
        /// What compression is offered; nil for none.
        ///
        /// Where the system has no zlib, none is.
        public var compression: Compression? = Compression()
        /// How short a message is sent without compression, in bytes; 64 by default.
        public var compressionThreshold = 64
        /// How the connection is secured, where the URL says `wss`.
        public var tls = TLSOptions()
        /// The proxy through which connections are made; nil, the default, for none.
        public var proxy: ProxyOptions?
        /// Which other hosts may be connected to; none by default.
        public var failover = FailoverOptions()
        /// The longest message to accept, in bytes, inflated; 1 MiB by default.
        ///
        /// A longer one ends the connection with code 1009.
        public var maximumMessageSize = 1 << 20
        /// How many bytes of messages may wait for the reader before the peer is held back; 1 MiB by
        /// default.
        public var maximumWaitingSize = 1 << 20
        /// How long connecting to a host may take, from the name to the answer; 10 seconds by default.
        public var connectTimeout = Duration.seconds(10)
        /// How long the peer may take to answer a Close, and again to close the stream; 5 seconds by default.
        public var closeTimeout = Duration.seconds(5)
        /// After how much silence a ping is sent; 20 seconds by default, nil for never.
        public var pingInterval: Duration? = .seconds(20)
        /// How long the peer may then stay silent; 20 seconds by default.
        public var pingTimeout = Duration.seconds(20)

        /// The defaults.
        public init() {}

        /// As the core below wants it.
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

    /// What permessage-deflate is asked to do (RFC 7692, 7.1).
    public struct Compression: Hashable, Sendable {
        /// Whether the server must compress each message on its own; false by default.
        public var serverNoContextTakeover = false
        /// Whether the client does; false by default.
        public var clientNoContextTakeover = false
        /// The server's window, as a power of two from 8 to 15; 15 by default.
        public var serverMaxWindowBits = 15
        /// The client's, likewise.
        public var clientMaxWindowBits = 15

        /// The defaults.
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

    /// Why a connection was closed, as a number (RFC 6455, 7.4).
    public typealias CloseCode = WebSocketClosure.Code

    /// How a connection ended.
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

    /// Nothing: content is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
