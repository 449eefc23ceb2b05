import WireCore

/// The reason why no secure connection could be made.
///
/// It is the `underlying` error of a ``WaybillError`` with the code `tls`.
public struct TLSFailure: Error, Hashable, Sendable {
    /// The kind of failure.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct Reason: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// Makes a custom reason, for a test or a custom transport.
        public init(name: String) {
            self.name = name
        }

        /// Whether a later attempt on the same server may succeed without a change.
        ///
        /// True where the handshake was cut off or broke off, and where the peer does not speak TLS. The latter may be the sign-in
        /// page of a network (a captive portal) that answers in place of the server. A portal that shows a certificate
        /// of its own cannot be told from a server with a wrong certificate.
        public var isRetryable: Bool {
            self == .closed || self == .interrupted || self == .notTLS
        }

        /// A certificate of the server has expired.
        public static let expired = Reason(name: "expired")
        /// A certificate of the server is not valid yet; or the clock of this machine is slow.
        public static let notYetValid = Reason(name: "notYetValid")
        /// The certificate is for another host.
        ///
        /// A certificate that names its host only in the common name does not count (RFC 9525, 2);
        /// ``TLSFailure/detail`` says so.
        public static let hostMismatch = Reason(name: "hostMismatch")
        /// No trusted authority has signed the certificate.
        public static let unknownAuthority = Reason(name: "unknownAuthority")
        /// The server's certificate is signed by itself, and is not among the authorities.
        public static let selfSigned = Reason(name: "selfSigned")
        /// The certificate is not meant for servers.
        public static let wrongPurpose = Reason(name: "wrongPurpose")
        /// A key or a signature in the chain is too weak, such as SHA-1.
        public static let weakCertificate = Reason(name: "weakCertificate")
        /// The chain is invalid in another way.
        public static let invalidCertificate = Reason(name: "invalidCertificate")
        /// No certificate of the chain has a pinned key.
        public static let pinMismatch = Reason(name: "pinMismatch")
        /// The server requires a client certificate, and the client sent none.
        public static let certificateRequired = Reason(name: "certificateRequired")
        /// The server does not accept the client's certificate.
        public static let certificateRefused = Reason(name: "certificateRefused")
        /// Both sides have no version, cipher or application protocol in common.
        public static let noCommonProtocol = Reason(name: "noCommonProtocol")
        /// The peer does not speak TLS.
        public static let notTLS = Reason(name: "notTLS")
        /// The peer requires TLS, and the URL's scheme does not ask for it.
        public static let required = Reason(name: "required")
        /// The peer closed the connection before it was secure.
        public static let closed = Reason(name: "closed")
        /// The handshake broke off within this system or the server, at random; the detail has the system's status.
        ///
        /// Only Apple platforms report it.
        public static let interrupted = Reason(name: "interrupted")
        /// Another alert of the peer, or another protocol error.
        public static let handshakeFailed = Reason(name: "handshakeFailed")
        /// The system's TLS library is missing; the detail says what to install.
        public static let libraryMissing = Reason(name: "libraryMissing")
        /// The app's authorities, identity or pins cannot be used.
        public static let invalidOptions = Reason(name: "invalidOptions")
    }

    /// The kind of failure.
    public var reason: Reason
    /// The text of the library or the peer; empty where the reason says everything.
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
