/// Why a server's connection is over.
package enum HTTPServerClosure: Hashable, Sendable {
    /// This side ended it, or the last response said that it ends with it.
    case closed
    /// The client broke HTTP/1.1; it was told so.
    case violation(HTTPViolation)
    /// The body of a request is longer than allowed; the client was told so.
    case bodyTooLarge(maximum: Int)
    /// A request was begun and not finished in time; the client was told so.
    case requestTimedOut
    /// More than one request's worth came before the answer to the one before.
    case tooEager
    /// The client closed the stream.
    case endOfStream
}

/// Why a response was not sent.
package enum HTTPResponseError: Error, Hashable, Sendable {
    /// No request waits for one.
    case notAsked
    /// It cannot be written.
    case encoding(HTTPEncodingError)
}
