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

    /// Describes an answer.
    public init(
        status: Int,
        reason: String,
        headers: Headers,
        body: Payload,
        isFromProxy: Bool = false
    ) {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
        self.isFromProxy = isFromProxy
    }
}

extension HTTPRefusal: CustomStringConvertible {
    /// Status and words; never fields or body.
    public var description: String { reason.isEmpty ? "\(status)" : "\(status) \(reason)" }
}
