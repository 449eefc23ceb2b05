/// A violation of HTTP/1.1 by the peer, or of a size limit.
package enum HTTPViolation: Error, Hashable, Sendable {
    /// The head has more bytes than allowed.
    case headTooLarge(maximum: Int)
    /// The head has more fields than allowed.
    case tooManyFields(maximum: Int)
    /// The first line is not a status line (RFC 9112, 4).
    case malformedStatusLine
    /// The first line is not a request line (RFC 9112, 3).
    case malformedRequestLine
    /// The version is not HTTP/1.0 or HTTP/1.1, or it is HTTP/1.0 with the status 101.
    case unsupportedVersion
    /// A line without a colon, or with a name that is not a token (RFC 9112, 5.1).
    case malformedField
    /// A control character in a value (RFC 9110, 5.5).
    case invalidFieldValue
    /// A line that continues the one before (RFC 9112, 5.2).
    case obsoleteLineFolding
    /// A carriage return that no line feed follows (RFC 9112, 2.2).
    case bareCarriageReturn
    /// A content length that is no number, several that differ, or one beside a transfer coding (RFC 9112, 6.3).
    case invalidContentLength
    /// A transfer coding other than chunked (RFC 9112, 6.1).
    case unsupportedTransferCoding
    /// A chunk that does not begin with its size, or does not end where it should (RFC 9112, 7.1).
    case malformedChunk
    /// The connection ended within the body (RFC 9112, 8).
    case incompleteBody
}
