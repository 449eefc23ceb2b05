package import WireCore

/// The head of a response (RFC 9112, 4).
package struct HTTPResponseHead: Hashable, Sendable {
    /// The status code, 100 to 599.
    package var status: Int
    /// The reason phrase, which has no meaning for the protocol.
    package var reason: String
    package var headers: HTTPHeaders
    /// Whether the server speaks HTTP/1.0 only.
    package var isVersion1_0: Bool

    package init(
        status: Int,
        reason: String = "",
        headers: HTTPHeaders = [:],
        isVersion1_0: Bool = false
    ) {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.isVersion1_0 = isVersion1_0
    }

    /// Whether another head follows this one (RFC 9110, 15.2); a 101 is final.
    package var isInterim: Bool { (100..<200).contains(status) && status != 101 }

    /// Appends the head as HTTP/1.1; appends nothing when it throws.
    package func encode(into writer: inout ByteWriter) throws(HTTPEncodingError) {
        try headers.check()
        guard reason.utf8.allSatisfy(HTTPSyntax.isValueByte) else {
            throw .invalidFieldValue(name: "reason")
        }
        writer.append(contentsOf: "HTTP/1.1 \(status) \(reason)\r\n".utf8)
        headers.encode(into: &writer)
    }
}
