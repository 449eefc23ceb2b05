/// The reason why a server's connection ended.
package enum HTTPServerClosure: Hashable, Sendable {
    /// This side ended it, or the last response announced its end.
    case closed
    /// The client violated HTTP/1.1, and got an error response.
    case violation(HTTPViolation)
    /// The body of a request exceeds the limit, and the client got an error response.
    case bodyTooLarge(maximum: Int)
    /// A request did not arrive completely in time, and the client got an error response.
    case requestTimedOut
    /// The client sent more than one further request before the response.
    case tooEager
    /// The client closed the stream.
    case endOfStream
}

/// The reason why a response was not sent.
package enum HTTPResponseError: Error, Hashable, Sendable {
    /// No request waits for a response.
    case notAsked
    /// The head cannot be written.
    case encoding(HTTPEncodingError)
}
