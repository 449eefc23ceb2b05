/// Whether a request asks for a receipt.
package enum STOMPReceiptDemand: Hashable, Sendable {
    case none
    /// Unless the server has shown that it sends none.
    case automatic
    case required

    /// Whether the request asks for a receipt where the server may send one.
    package var asks: Bool { self != .none }
}

/// When SEND has a content-length.
package enum STOMPContentLength: Hashable, Sendable {
    /// Left out for text where the server would take text with a length for bytes.
    case automatic
    case always
    case unlessText
}
