import HTTPWire
import WebSocketWire
import WireCore
import WireTestSupport

/// One end of a connection, with a literal clock and a literal key.
struct SocketHarness {
    var core: WebSocketConnection
    var buffer = ReceiveBuffer(capacity: 16)
    var now = WireInstant.zero

    /// The masking key of the examples in RFC 6455, 5.7: 37 FA 21 3D.
    static let key: UInt32 = 0x3D21_FA37

    static func configuration(
        deflate: PermessageDeflate? = nil,
        maximumMessageSize: Int? = 1 << 20
    ) -> WebSocketConfiguration {
        var configuration = WebSocketConfiguration { count in
            Array(repeating: UInt64(key) << 32 | UInt64(key), count: count)
        }
        configuration.deflate = deflate
        configuration.maximumMessageSize = maximumMessageSize
        configuration.compressionThreshold = 0
        return configuration
    }

    init(_ core: WebSocketConnection) {
        self.core = core
    }

    /// A client that has sent its request.
    static func connecting(
        _ configuration: WebSocketConfiguration = configuration(),
        subprotocols: [String] = [],
        requiresSubprotocol: Bool = false
    ) throws -> SocketHarness {
        let request = WebSocketClientHandshake.Request(
            host: "example.com",
            target: "/chat",
            subprotocols: subprotocols,
            requiresSubprotocol: requiresSubprotocol
        )
        return SocketHarness(
            try WebSocketConnection(connecting: request, configuration: configuration, at: .zero)
        )
    }

    /// A client with an open connection and no bytes or events left over from the handshake.
    static func open(
        _ configuration: WebSocketConfiguration = configuration(),
        extensions: String? = nil
    ) throws -> SocketHarness {
        var harness = try connecting(configuration)
        let key = harness.sentHeader("Sec-WebSocket-Key") ?? ""
        let line = extensions.map { "Sec-WebSocket-Extensions: \($0)\r\n" } ?? ""
        harness.receive(
            Array(
                "\(Self.switching)Sec-WebSocket-Accept: \(acceptKey(for: key))\r\n\(line)\r\n".utf8
            )
        )
        _ = harness.core.takeEvents()
        _ = harness.core.outbound.takeBytes()
        return harness
    }

    /// A server with an open connection and no bytes or events left over from the handshake.
    static func server(
        _ configuration: WebSocketConfiguration = configuration()
    ) -> SocketHarness {
        var harness = SocketHarness(WebSocketConnection(serverWith: configuration, at: .zero))
        harness.receive(
            Array(
                """
                GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n
                """.utf8
            )
        )
        harness.core.accept()
        _ = harness.core.takeEvents()
        _ = harness.core.outbound.takeBytes()
        return harness
    }

    static let switching =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

    /// The accept key for a key, which a server core computes.
    static func acceptKey(for key: String) -> String {
        let request = HTTPRequestHead(
            method: "GET",
            target: "/",
            headers: ["Sec-WebSocket-Key": key]
        )
        let response = WebSocketServerHandshake.response(
            to: request,
            subprotocol: nil,
            deflate: nil,
            headers: [:]
        )
        return response.head.headers.first("sec-websocket-accept") ?? ""
    }

    /// The value of a header field in the request that waits to be sent.
    func sentHeader(_ name: String) -> String? {
        var buffer = ReceiveBuffer()
        buffer.append(core.outbound.bytes)
        var decoder = HTTPHeadDecoder()
        return try? decoder.nextRequest(&buffer)?.headers.first(name)
    }

    mutating func receive(_ bytes: [UInt8]) {
        buffer.append(bytes)
        core.receiveAll(&buffer, at: now)
    }

    mutating func receive(_ hex: Hex) { receive(hex.bytes) }

    mutating func advance(_ duration: Duration) {
        now = now.advanced(by: duration)
        core.advance(to: now)
    }

    /// Takes the bytes that wait to be sent.
    mutating func sent() -> [UInt8] { core.outbound.takeBytes() }

    /// Takes the bytes that wait to be sent, in hexadecimal.
    mutating func sentHex() -> String { Hex.text(sent()) }

    /// Takes the events, except `violationAhead`.
    mutating func events() -> [WebSocketEvent] {
        core.takeEvents().filter { $0 != .violationAhead }
    }
}

extension WebSocketEvent {
    static func text(_ text: String) -> WebSocketEvent {
        .message(WebSocketMessage(kind: .text, payload: ByteSlice(copying: Array(text.utf8))))
    }

    static func binary(_ bytes: [UInt8]) -> WebSocketEvent {
        .message(WebSocketMessage(kind: .binary, payload: ByteSlice(copying: bytes)))
    }

    static func ping(_ text: String) -> WebSocketEvent {
        .ping(ByteSlice(copying: Array(text.utf8)))
    }

    static func pong(_ text: String) -> WebSocketEvent {
        .pong(ByteSlice(copying: Array(text.utf8)))
    }
}

/// Frames as a server sends them.
enum Frame {
    static func server(
        _ opcode: WebSocketOpcode,
        _ payload: [UInt8],
        isFinal: Bool = true,
        isCompressed: Bool = false
    ) -> [UInt8] {
        var writer = ByteWriter()
        let header = WebSocketFrameHeader(
            opcode: opcode,
            isFinal: isFinal,
            isCompressed: isCompressed,
            payloadByteCount: payload.count
        )
        header.encode(into: &writer)
        writer.append(contentsOf: payload)
        return writer.bytes
    }

    static func text(_ text: String, isFinal: Bool = true) -> [UInt8] {
        server(.text, Array(text.utf8), isFinal: isFinal)
    }

    static func close(_ code: UInt16, _ reason: String = "") -> [UInt8] {
        server(.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8))
    }
}
