/// The number that says why a connection is closed (RFC 6455, 7.4).
package struct WebSocketCloseCode: Hashable, Sendable, RawRepresentable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The purpose is fulfilled.
    package static let normalClosure = WebSocketCloseCode(rawValue: 1_000)
    /// The endpoint goes away: a server shuts down, or a client leaves the page.
    package static let goingAway = WebSocketCloseCode(rawValue: 1_001)
    /// The peer violated the protocol.
    package static let protocolError = WebSocketCloseCode(rawValue: 1_002)
    /// The peer sent a kind of data that is not accepted.
    package static let unsupportedData = WebSocketCloseCode(rawValue: 1_003)
    /// The Close had no code; never sent.
    package static let noStatusReceived = WebSocketCloseCode(rawValue: 1_005)
    /// The connection ended without a Close; never sent.
    package static let abnormalClosure = WebSocketCloseCode(rawValue: 1_006)
    /// The data does not match its kind: text that is not UTF-8.
    package static let invalidFramePayloadData = WebSocketCloseCode(rawValue: 1_007)
    /// The message violates the peer's policy.
    package static let policyViolation = WebSocketCloseCode(rawValue: 1_008)
    /// The message is too large.
    package static let messageTooBig = WebSocketCloseCode(rawValue: 1_009)
    /// The server did not agree to an extension that the client needs.
    package static let mandatoryExtension = WebSocketCloseCode(rawValue: 1_010)
    /// The server met an unexpected condition.
    package static let internalError = WebSocketCloseCode(rawValue: 1_011)

    /// Whether the code is allowed in a Close.
    ///
    /// Allowed are the codes defined for it (RFC 6455, 7.4.1, and IANA's registry up to 1014), those of libraries (3000
    /// to 3999), and private ones (4000 to 4999).
    package var isSendable: Bool {
        switch rawValue {
        case 1_000...1_003, 1_007...1_014, 3_000...4_999: true
        default: false
        }
    }

    /// Checks a Close before it is sent; `noStatusReceived` sends neither code nor reason.
    ///
    /// - Throws: `invalidCloseCode`, `controlPayloadTooLong`.
    func check(with reason: String) throws(WebSocketSendError) {
        guard isSendable || (self == .noStatusReceived && reason.isEmpty) else {
            throw .invalidCloseCode(rawValue)
        }
        let byteCount = 2 + reason.utf8.count
        guard byteCount <= WebSocketFrameHeader.maximumControlPayload else {
            throw .controlPayloadTooLong(byteCount)
        }
    }
}
