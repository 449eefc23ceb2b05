import WireCore

/// An HTTP response that refuses a WebSocket, an event stream, or a send that is an HTTP request.
///
/// It is the `underlying` error of the ``WaybillError`` of that failure.
public struct HTTPRefusal: Error, Sendable {
    /// The status code, such as 401.
    public var status: Int
    /// The reason phrase after the status code.
    public var reason: String
    /// The fields of the response; compare names without regard to case.
    public var headers: Headers
    /// The body, up to its first 64 KiB.
    public var body: Payload
    /// Whether the response came from the proxy and not from the server.
    public var isFromProxy: Bool
    /// Whether the response refused a switch to WebSocket; no request was sent then.
    public var isOfUpgrade: Bool

    /// Describes a response.
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

    /// Whether the server may have carried out the request although it answered with an error.
    ///
    /// False where the status says that the server did not try (RFC 9110, 15.5 and 15.6.4; RFC 6585, 4; RFC 8470, 5.2).
    var mayHaveBeenCarriedOut: Bool {
        status >= 500 && status != 503 && !isFromProxy && !isOfUpgrade
    }
}

extension HTTPRefusal: CustomStringConvertible {
    /// Status and reason phrase; never fields or body.
    public var description: String { reason.isEmpty ? "\(status)" : "\(status) \(reason.excerpt)" }
}
