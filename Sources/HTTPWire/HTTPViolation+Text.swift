extension HTTPViolation: CustomStringConvertible {
    /// The violation in words; data of the peer is not repeated.
    package var description: String {
        switch self {
        case .headTooLarge(let maximum): "a head of more than \(maximum) bytes"
        case .tooManyFields(let maximum): "a head of more than \(maximum) fields"
        case .malformedStatusLine: "the first line is not a status line"
        case .malformedRequestLine: "the first line is not a request line"
        case .unsupportedVersion: "the version is not HTTP/1.1, nor HTTP/1.0 where that is allowed"
        case .malformedField: "a line of the head is not a name, a colon and a value"
        case .invalidFieldValue: "the value of a field has a control character"
        case .obsoleteLineFolding: "a field continues on a second line"
        case .bareCarriageReturn: "a carriage return without a line feed"
        case .invalidContentLength:
            "the content length is not a number, differs from another one, or is not allowed"
        case .unsupportedTransferCoding: "a transfer coding other than chunked"
        case .malformedChunk: "a chunk without its size or its end"
        case .incompleteBody: "the connection ended within the body"
        }
    }
}

extension HTTPEncodingError: CustomStringConvertible {
    /// The reason in words; the value of a field is not repeated.
    package var description: String {
        switch self {
        case .invalidMethod: "the method is not a token, as RFC 9110 has it"
        case .invalidTarget: "the path or query is empty, or has something other than visible ASCII"
        case .invalidFieldName(let name): "the name of the header \(name) is not a token"
        case .invalidFieldValue(let name): "the value of the header \(name) has a control character"
        }
    }
}
