import WireCore

/// Why no secure connection could be made.
///
/// The `underlying` error of a ``WaybillError`` with the code `tls`.
public struct TLSFailure: Error, Hashable, Sendable {
    /// The kind of failure.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct Reason: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// A reason of one's own, as a test or a transport has.
        public init(name: String) {
            self.name = name
        }

        /// Whether the same server may be secured later without a change: the handshake was cut off, or what answered
        /// does not speak TLS, as the sign-in page of a network (a captive portal) that answers in place of the server.
        ///
        /// A portal that shows a certificate of its own cannot be told from a server that has a wrong one.
        public var isRetryable: Bool { self == .closed || self == .notTLS }

        /// A certificate of the server was valid until some day in the past.
        public static let expired = Reason(name: "expired")
        /// A certificate of the server is not valid yet; or this machine's clock is slow.
        public static let notYetValid = Reason(name: "notYetValid")
        /// The certificate is for another host, or it names its host in the common name only, which does not count
        /// (RFC 9525, 2): then ``TLSFailure/detail`` says so.
        public static let hostMismatch = Reason(name: "hostMismatch")
        /// Nobody who is trusted has signed the certificate.
        public static let unknownAuthority = Reason(name: "unknownAuthority")
        /// The server has signed its certificate itself, and it is not among the authorities.
        public static let selfSigned = Reason(name: "selfSigned")
        /// The certificate is not one for servers.
        public static let wrongPurpose = Reason(name: "wrongPurpose")
        /// A key or a signature in the chain is too weak, as SHA-1 is.
        public static let weakCertificate = Reason(name: "weakCertificate")
        /// The chain is at fault in another way.
        public static let invalidCertificate = Reason(name: "invalidCertificate")
        /// No certificate of the chain has a pinned key.
        public static let pinMismatch = Reason(name: "pinMismatch")
        /// The server wants a certificate from the client, which showed none.
        public static let certificateRequired = Reason(name: "certificateRequired")
        /// The server does not take the client's certificate.
        public static let certificateRefused = Reason(name: "certificateRefused")
        /// There is no version, cipher or application protocol that both sides speak.
        public static let noCommonProtocol = Reason(name: "noCommonProtocol")
        /// What answers does not speak TLS.
        public static let notTLS = Reason(name: "notTLS")
        /// What answers wants TLS, and the URL's scheme does not ask for it.
        public static let required = Reason(name: "required")
        /// The peer closed the connection before it was secure.
        public static let closed = Reason(name: "closed")
        /// Another alert of the peer, or another fault of the protocol.
        public static let handshakeFailed = Reason(name: "handshakeFailed")
        /// The system's TLS library is not there; the text says what to install.
        public static let libraryMissing = Reason(name: "libraryMissing")
        /// The authorities, the identity or the pins that the app has given cannot be used.
        public static let invalidOptions = Reason(name: "invalidOptions")
    }

    /// The kind of failure.
    public var reason: Reason
    /// What the library or the peer said of it; empty when the kind says all.
    public var detail: String

    /// Describes a failure.
    public init(_ reason: Reason, detail: String = "") {
        self.reason = reason
        self.detail = detail
    }
}

extension TLSFailure: CustomStringConvertible {
    /// The kind and the detail.
    public var description: String {
        detail.isEmpty ? reason.name : "\(reason.name): \(detail.escaped)"
    }
}
