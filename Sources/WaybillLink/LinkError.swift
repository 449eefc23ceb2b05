package import HTTPWire
package import WebSocketWire

/// An error below the protocols; out of line, since every connection has room for two.
package indirect enum LinkError: Error, Hashable, Sendable {
    /// The name has no address; the text is the resolver's.
    case nameNotResolved(host: String, reason: String)
    /// Every address of the host refused the connection, or the last one to fail refused it.
    case refused
    /// No address of the host could be reached; the number is the system's error of the last address.
    case unreachable(errorNumber: Int32)
    /// No connection within the time limit.
    case timedOut
    case reset
    /// The peer has ended its write direction although more data was expected.
    case endOfStream
    /// This side closed the stream.
    case closed
    case cancelled
    /// The system does not let this app connect; the text says what to change.
    case notPermitted(String)
    /// An unexpected error of the system; its error number and the call.
    case system(errorNumber: Int32, call: String)
    /// The server did not switch to WebSocket: its response, and up to 64 KiB of the body.
    case upgradeRefused(HTTPResponseHead, body: [UInt8])
    /// The server's response to the upgrade violates RFC 6455.
    case upgradeFailed(WebSocketHandshakeFault)
    /// The request for the upgrade cannot be sent.
    case upgradeInvalid(WebSocketClientHandshake.RequestError)
    /// The peer closed the WebSocket with a code other than that of a normal end.
    case webSocketClosed(WebSocketCloseCode, reason: String)
    /// The peer violated RFC 6455, and got a Close.
    case webSocketViolation(WebSocketViolation)
    /// The peer was silent for too long.
    case silent
    /// The network of the connection is gone.
    case pathLost
    /// The stream could not be secured, or the peer ended it for that reason.
    case tls(TLSFault)
    /// The TLS handshake exceeded the time limit.
    case tlsTimedOut
    /// The connection ended without TLS's close_notify: data may be missing (RFC 8446, 6.1).
    case truncated
    /// The proxy could not be reached, or ended the connection before the tunnel was open.
    case proxy(LinkError)
    /// The proxy opened no tunnel: its response, and up to 64 KiB of the body.
    case proxyRefused(HTTPResponseHead, body: [UInt8])
    /// The proxy's response violates HTTP/1.1.
    case proxyViolation(HTTPViolation)
    /// The request for a tunnel cannot be sent.
    case proxyInvalid(HTTPEncodingError)
    /// This platform or a simulation has no such link.
    case unsupported(String)
}

extension LinkError {
    /// Whether an error number means that no file descriptor is left for this process (EMFILE) or machine (ENFILE).
    static func isOutOfDescriptors(_ errorNumber: Int32) -> Bool {
        // POSIX numbers, the same on Linux and Apple platforms.
        errorNumber == 24 || errorNumber == 23
    }

    /// Whether no file descriptor was left for the connection.
    package var isOutOfDescriptors: Bool {
        if case .system(let number, _) = self { Self.isOutOfDescriptors(number) } else { false }
    }
}

extension LinkError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .nameNotResolved(let host, let reason): "cannot resolve \(host): \(reason)"
        case .refused: "connection refused"
        case .unreachable(let number): "host unreachable (error \(number))"
        case .timedOut: "no connection within the time allowed"
        case .reset: "connection reset by the peer"
        case .endOfStream: "connection closed by the peer"
        case .closed: "connection closed"
        case .cancelled: "cancelled"
        case .notPermitted(let words): words
        case .system(24, let call):
            "no file descriptor is left to this process: raise its limit or open fewer (EMFILE, \(call))"
        case .system(23, let call):
            "no file descriptor is left on this machine (ENFILE, \(call))"
        case .system(let number, let call): "\(call) failed (error \(number))"
        case .upgradeRefused(let head, _): "the server answered the upgrade with \(head.status)"
        case .upgradeFailed(let fault): "the server's answer to the upgrade is wrong: \(fault)"
        case .upgradeInvalid(let fault): "the upgrade cannot be asked for: \(fault)"
        case .webSocketClosed(let code, let reason):
            "WebSocket closed by the peer: \(code.rawValue) \(reason)"
        case .webSocketViolation(.messageTooBig(let maximum)):
            "a WebSocket message is longer than this client's limit, \(maximum) bytes"
        case .webSocketViolation(let violation): "the peer broke WebSocket: \(violation)"
        case .silent: "no sign of life from the peer"
        case .pathLost: "the network that the connection went over is gone"
        case .tls(let fault): fault.description
        case .tlsTimedOut: "the TLS handshake was not done within the time allowed"
        case .truncated: "connection closed by the peer without an end of TLS"
        case .proxy(let error): "the proxy: \(error)"
        case .proxyRefused(let head, _): "the proxy answered with \(head.status)"
        case .proxyViolation(let violation): "the proxy broke HTTP: \(violation)"
        case .proxyInvalid(let fault): "a tunnel cannot be asked for: \(fault)"
        case .unsupported(let what): "\(what) is not available"
        }
    }
}
