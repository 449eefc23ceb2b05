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

/// A WebSocket (RFC 6455), for those who want just that.
///
/// ```swift
/// let socket = try await WebSocketClient.connect(to: "ws://localhost:8080/chat")
/// try await socket.send("hello")
/// for try await message in socket.messages {
///     print(message)
/// }
/// ```
///
/// What is received waits for the reader up to a limit, and then the peer is held back; sending waits while
/// the peer does not read. Letting go of the last reference closes the connection with code 1001 without
/// waiting; ``close(_:reason:)`` waits.
public final class WebSocketClient: Sendable {
    let session: WebSocketSession

    /// The subprotocol that the server chose; nil for none.
    public let subprotocol: String?
    /// The fields of the server's answer; names are to be compared without regard to case.
    public let headers: Headers
    /// Whether messages may be compressed.
    public let isCompressed: Bool
    /// How the connection is secured; nil for `ws`.
    public let tls: NegotiatedTLS?

    private init(_ session: WebSocketSession, _ opening: WebSocketSession.Opening) {
        self.session = session
        subprotocol = opening.subprotocol
        headers = opening.headers
        isCompressed = opening.isCompressed
        tls = session.tls
    }

    deinit {
        session.abandon()
    }

    /// Connects.
    ///
    /// - Parameters:
    ///   - url: `ws://host:port/path?query`, or `wss` for TLS; the port is 80 or 443 unless it is named.
    ///   - configuration: How the connection behaves.
    ///   - configure: Changes the configuration, as in `{ $0.maximumMessageSize = 1 << 20 }`.
    /// - Returns: An open connection.
    /// - Throws: `WaybillError`: `unsupported` for another scheme, `invalidEntry` for what is no such URL or
    ///   cannot be asked for, `connectionRefused`, `timedOut`, `tls`, `protocolViolation` for an answer that breaks
    ///   the rules; for one that refuses, `unauthorized` (401, 403, 407), `connectionRefused` (408, 425, 429
    ///   and 5xx) or `rejected`, with an ``Waybill/HTTPRefusal`` as `underlying`. Or `CancellationError`.
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
    ///   - url: As text; see ``connect(to:configuration:configure:)-(URL,_,_)``.
    ///   - configuration: How the connection behaves.
    ///   - configure: Changes the configuration, as in `{ $0.maximumMessageSize = 1 << 20 }`.
    /// - Returns: An open connection.
    /// - Throws: As with a URL.
    public static func connect(
        to url: String,
        configuration: Configuration = Configuration(),
        configure: (inout Configuration) -> Void = { _ in }
    ) async throws -> WebSocketClient {
        var configuration = configuration
        configure(&configuration)
        return try await connect(
            to: ServiceAddress.url(url),
            configuration: configuration,
            environment: .system
        )
    }

    /// Connects over links, a clock and randomness of one's own.
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

    /// What the peer sends, until the connection ends.
    ///
    /// One loop at a time: a second one that begins while the first runs fails with `invalidEntry`.
    public var messages: Messages { Messages(socket: self) }

    /// Sends a message, in its turn.
    ///
    /// - Parameter message: Goes out as one frame.
    /// - Throws: `WaybillError` with `notConnected` when the connection is closed or closing;
    ///   `CancellationError` when the task is cancelled while it waits for the peer to read, which takes
    ///   nothing back.
    public func send(_ message: Message) async throws {
        switch message {
        case .text(let text): try await session.send(.text, Payload(text))
        case .binary(let bytes): try await session.send(.binary, bytes)
        }
    }

    /// Sends text; see ``send(_:)-(Message)``.
    public func send(_ text: String) async throws {
        try await session.send(.text, Payload(text))
    }

    /// Sends bytes; see ``send(_:)-(Message)``.
    public func send(_ bytes: [UInt8]) async throws {
        try await session.send(.binary, bytes)
    }

    /// Sends data; see ``send(_:)-(Message)``.
    public func send(_ data: Data) async throws {
        try await session.send(.binary, Payload(data))
    }

    /// Asks the peer for a sign of life and waits for it.
    ///
    /// - Returns: How long it took.
    /// - Throws: `WaybillError` with `notConnected`, `connectionLost`, or `timedOut` after the ping timeout;
    ///   `CancellationError`.
    @discardableResult
    public func ping() async throws -> Duration {
        try await session.ping()
    }

    // MARK: The end

    /// How the connection ended; nil as long as it has not.
    public var closure: Closure? { session.closure }

    /// Closes, and waits until the peer has closed, too, or its time is over.
    ///
    /// Closing what is closed does nothing.
    ///
    /// - Parameters:
    ///   - code: Why.
    ///   - reason: Why, in words: 123 bytes of UTF-8 at the most.
    /// - Throws: `WaybillError` with `invalidEntry` for a code that must not be sent or a reason that is too
    ///   long; nothing is closed then.
    public func close(_ code: CloseCode = .normalClosure, reason: String = "") async throws {
        try await session.close(code, reason: reason)
    }
}

extension WebSocketClient: CustomReflectable {
    /// Nothing: headers and messages are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
