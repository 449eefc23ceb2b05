import WireCore

/// A server's answer that is not the one hoped for: to a request for a WebSocket, for an event stream, or to a
/// send that is an HTTP request.
///
/// The `underlying` error of a ``WaybillError`` that failed for that.
public struct HTTPRefusal: Error, Sendable {
    /// The status code, such as 401.
    public var status: Int
    /// The words behind it.
    public var reason: String
    /// The fields of the answer; names are to be compared without regard to case.
    public var headers: Headers
    /// The body, up to its first 64 KiB.
    public var body: Payload
    /// Whether the proxy has answered so, and not the server.
    public var isFromProxy: Bool
    /// Whether a switch to WebSocket was refused, so that nothing else was asked for yet.
    public var isOfUpgrade: Bool

    /// Describes an answer.
    public init(
        status: Int,
        reason: String,
        headers: Headers,
        body: Payload,
        isFromProxy: Bool = false,
        isOfUpgrade: Bool = false
    ) {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
        self.isFromProxy = isFromProxy
        self.isOfUpgrade = isOfUpgrade
    }

    /// Whether the server may have done what was asked, and failed to say so.
    ///
    /// It has not where it says that it did not try (RFC 9110, 15.5 and 15.6.4; RFC 6585, 4; RFC 8470, 5.2).
    var mayHaveBeenCarriedOut: Bool {
        status >= 500 && status != 503 && !isFromProxy && !isOfUpgrade
    }
}

extension HTTPRefusal: CustomStringConvertible {
    /// Status and words; never fields or body.
    public var description: String { reason.isEmpty ? "\(status)" : "\(status) \(reason.escaped)" }
}
