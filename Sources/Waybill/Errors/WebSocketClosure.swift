import WireCore

/// The end of a WebSocket: the code and the reason of the peer's Close (RFC 6455, 7.1.5 and 7.1.6).
///
/// It is the `underlying` error of a ``WaybillError`` when the peer closed the WebSocket with another code than that of
/// a normal end. ``WaybillError/webSocketClosure`` finds it.
public struct WebSocketClosure: Error, Hashable, Sendable {
    /// The number that says why a WebSocket was closed (RFC 6455, 7.4).
    public struct Code: Hashable, Sendable, RawRepresentable {
        /// The number.
        public let rawValue: UInt16

        /// Any number; only 1000 to 1003, 1007 to 1014 and 3000 to 4999 can be sent.
        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// 1000: the purpose is fulfilled.
        public static let normalClosure = Code(rawValue: 1_000)
        /// 1001: a server goes down, or a client leaves the page.
        public static let goingAway = Code(rawValue: 1_001)
        /// 1002: the peer violated the protocol.
        public static let protocolError = Code(rawValue: 1_002)
        /// 1003: the peer sent a kind of data that is not accepted.
        public static let unsupportedData = Code(rawValue: 1_003)
        /// 1005: the Close had no code; never sent.
        public static let noStatusReceived = Code(rawValue: 1_005)
        /// 1006: the connection ended without a Close; never sent.
        public static let abnormalClosure = Code(rawValue: 1_006)
        /// 1007: text that is not UTF-8.
        public static let invalidFramePayloadData = Code(rawValue: 1_007)
        /// 1008: the message violates the peer's policy.
        public static let policyViolation = Code(rawValue: 1_008)
        /// 1009: the message is too large.
        public static let messageTooBig = Code(rawValue: 1_009)
        /// 1010: the server did not agree to an extension that the client needs.
        public static let mandatoryExtension = Code(rawValue: 1_010)
        /// 1011: the server met an unexpected condition.
        public static let internalError = Code(rawValue: 1_011)
        /// 1012: the server restarts (IANA's registry).
        public static let serviceRestart = Code(rawValue: 1_012)
        /// 1013: the server is overloaded; try again later (IANA's registry).
        public static let tryAgainLater = Code(rawValue: 1_013)
        /// 1014: a gateway received an invalid response from the server behind it (IANA's registry).
        public static let badGateway = Code(rawValue: 1_014)
    }

    /// The code of the peer's Close, or the code that describes the end.
    public var code: Code
    /// The reason text of the peer; empty if it sent none.
    public var reason: String

    /// Describes an end.
    public init(code: Code, reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Whether the end is normal: 1000, 1001, or no code (1005).
    public var isNormal: Bool {
        [.normalClosure, .goingAway, .noStatusReceived].contains(code)
    }
}

extension WebSocketClosure: CustomStringConvertible {
    /// The code and the peer's reason, escaped.
    public var description: String {
        reason.isEmpty ? "\(code.rawValue)" : "\(code.rawValue) \(reason.excerpt)"
    }
}

extension WebSocketClosure: ShownByDescription {}

extension WaybillError {
    /// The code and the reason with which the peer closed the WebSocket; nil for other kinds of failure.
    public var webSocketClosure: WebSocketClosure? { underlying as? WebSocketClosure }
}
