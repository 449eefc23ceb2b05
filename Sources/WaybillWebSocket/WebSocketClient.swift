public import Waybill
package import WaybillLink
import WaybillSession
import WebSocketWire
import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A WebSocket connection (RFC 6455), for apps that use WebSocket directly.
///
/// ```swift
/// let socket = try await WebSocketClient.connect(to: "ws://localhost:8080/chat")
/// try await socket.send("hello")
/// for try await message in socket.messages {
///     print(message)
/// }
/// ```
///
/// Received messages wait for the reader up to a limit; then reading from the peer stops. A send waits while the peer
/// does not read. Releasing the last reference closes the connection with code 1001 without waiting;
/// ``close(_:reason:)`` waits.
public final class WebSocketClient: Sendable {
    let session: WebSocketSession

    /// The subprotocol that the server chose; nil for none.
    public let subprotocol: String?
    /// The fields of the server's response; compare names without regard to case.
    public let headers: Headers
    /// Whether messages may be compressed.
    public let isCompressed: Bool
    /// The properties of the TLS connection; nil for `ws`.
    public let tls: NegotiatedTLS?

    /// The states of the connection: connected first, disconnected at the end.
    public var states: ConnectionStates { session.states.states }
    /// The events of the connection and its messages, from now on.
    public var events: TransportEvents { session.events.events }

    private init(_ session: WebSocketSession, _ opening: WebSocketOpening) {
        self.session = session
        subprotocol = opening.subprotocol
        headers = Headers(opening.headers)
        isCompressed = opening.deflate != nil
        tls = session.tls
    }

    deinit {
        session.abandon()
    }

    /// Connects.
    ///
    /// - Parameters:
    ///   - url: `ws://host:port/path?query`, or `wss` for TLS; the default port is 80 or 443.
    ///   - configuration: The settings of the connection.
    ///   - configure: Changes the configuration, as in `{ $0.maximumMessageSize = 1 << 20 }`.
    /// - Returns: An open connection.
    /// - Throws: `WaybillError` or `CancellationError`. The codes are `unsupported` for another scheme, `invalidEntry`
    ///   for an invalid URL or request, `connectionRefused`, `timedOut`, `tls`, and `protocolViolation` for an invalid
    ///   response. When the server refuses, the code is `unauthorized` (401, 403, 407), `connectionRefused` (408, 425,
    ///   429 and 5xx) or `rejected`, with an ``Waybill/HTTPRefusal`` as `underlying`.
    public static func connect(
        to url: URL,
        configuration: Configuration = Configuration(),
        configure: (inout Configuration) -> Void = { _ in }
    ) async throws -> WebSocketClient {
        var configuration = configuration
        configure(&configuration)
        return try await connect(to: url, configuration: configuration, environment: .system)
    }

    /// Connects.
    ///
    /// - Parameters:
    ///   - url: The URL as text; see ``connect(to:configuration:configure:)-(URL,_,_)``.
    ///   - configuration: The settings of the connection.
    ///   - configure: Changes the configuration, as in `{ $0.maximumMessageSize = 1 << 20 }`.
    /// - Returns: An open connection.
    /// - Throws: The same errors as with a URL.
    public static func connect(
        to url: String,
        configuration: Configuration = Configuration(),
        configure: (inout Configuration) -> Void = { _ in }
    ) async throws -> WebSocketClient {
        try await connect(
            to: ServiceAddress.url(url),
            configuration: configuration,
            configure: configure
        )
    }

    /// Connects with a custom environment: links, clock and randomness.
    package static func connect(
        to url: URL,
        configuration: Configuration,
        environment: LinkEnvironment
    ) async throws -> WebSocketClient {
        let (session, opening) = try await WebSocketSession.open(
            url,
            configuration: configuration,
            environment: environment
        )
        return WebSocketClient(session, opening)
    }

    // MARK: Messages

    /// The messages of the peer, until the connection ends.
    ///
    /// One iteration at a time: a second one that begins meanwhile fails with `invalidEntry`.
    public var messages: Messages { Messages(socket: self) }

    /// Sends a message after those sent before it.
    ///
    /// - Parameter message: The message, sent as one frame.
    /// - Throws: `WaybillError` with `notConnected` if the connection is closed or closing. `CancellationError` if the
    ///   task is cancelled while it waits for the peer to read; the message is sent all the same.
    public func send(_ message: Message) async throws {
        switch message {
        case .text(let text): try await session.send(.text, Payload(text))
        case .binary(let bytes): try await session.send(.binary, Payload(bytes))
        }
    }

    /// Sends text; see ``send(_:)-(Message)``.
    public func send(_ text: String) async throws {
        try await session.send(.text, Payload(text))
    }

    /// Sends bytes; see ``send(_:)-(Message)``.
    public func send(_ bytes: [UInt8]) async throws {
        try await session.send(.binary, Payload(bytes))
    }

    /// Sends data; see ``send(_:)-(Message)``.
    public func send(_ data: Data) async throws {
        try await session.send(.binary, Payload(data))
    }

    /// Sends a ping and waits for the pong.
    ///
    /// - Returns: The time until the pong.
    /// - Throws: `WaybillError` with `notConnected`, `connectionLost`, or `timedOut` after the ping timeout;
    ///   `CancellationError`.
    @discardableResult
    public func ping() async throws -> Duration {
        try await session.ping()
    }

    // MARK: The end

    /// The end of the connection; nil before the end.
    public var closure: Closure? { session.closure }

    /// Closes, and waits until the peer has closed as well, or the close timeout has passed.
    ///
    /// On a closed connection the call does nothing.
    ///
    /// - Parameters:
    ///   - code: The close code.
    ///   - reason: The reason in words: at most 123 bytes of UTF-8.
    /// - Throws: `WaybillError` with `invalidEntry` for a code that is not allowed or a reason that is too long;
    ///   nothing is closed then.
    public func close(_ code: CloseCode = .normalClosure, reason: String = "") async throws {
        try await session.close(code, reason: reason)
    }
}

extension WebSocketClient: CustomReflectable {
    /// Empty: headers and messages are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
