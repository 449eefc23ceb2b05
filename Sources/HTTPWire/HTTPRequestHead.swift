package import WireCore

/// The head of a request (RFC 9112, 3).
package struct HTTPRequestHead: Hashable, Sendable {
    package var method: String
    /// Path and query, percent-encoded.
    package var target: String
    package var headers: HTTPHeaders
    /// Whether the client speaks HTTP/1.0 only.
    package var isVersion1_0: Bool

    package init(
        method: String,
        target: String,
        headers: HTTPHeaders = [:],
        isVersion1_0: Bool = false
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.isVersion1_0 = isVersion1_0
    }

    /// Appends the head as HTTP/1.1; appends nothing when it throws.
    package func encode(into writer: inout ByteWriter) throws(HTTPEncodingError) {
        guard HTTPSyntax.isToken(method) else { throw .invalidMethod }
        guard !target.isEmpty, target.utf8.allSatisfy(HTTPSyntax.isTargetByte) else {
            throw .invalidTarget
        }
        try headers.check()
        writer.append(contentsOf: "\(method) \(target) HTTP/1.1\r\n".utf8)
        headers.encode(into: &writer)
    }
}

/// The reason why a head cannot be sent; nothing is repaired.
package enum HTTPEncodingError: Error, Hashable, Sendable {
    /// The method is not a token.
    case invalidMethod
    /// The target is empty or holds characters other than visible ASCII.
    case invalidTarget
    /// The name is not a token.
    case invalidFieldName(String)
    /// The value of this field holds a control character.
    case invalidFieldValue(name: String)
}

extension HTTPHeaders {
    /// Refuses fields that no head can carry, above all line breaks (RFC 9110, 5.5).
    package func check() throws(HTTPEncodingError) {
        for field in self {
            guard HTTPSyntax.isToken(field.name) else { throw .invalidFieldName(field.name) }
            guard field.value.utf8.allSatisfy(HTTPSyntax.isValueByte) else {
                throw .invalidFieldValue(name: field.name)
            }
        }
    }

    /// Appends the fields and the empty line after them.
    func encode(into writer: inout ByteWriter) {
        for field in self {
            writer.append(contentsOf: "\(field.name): \(field.value)\r\n".utf8)
        }
        writer.append(contentsOf: "\r\n".utf8)
    }
}
