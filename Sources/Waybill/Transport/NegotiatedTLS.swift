/// The properties that client and server have negotiated for a TLS connection.
public struct NegotiatedTLS: Hashable, Sendable {
    /// The version's name: `TLSv1.2` or `TLSv1.3`.
    public var version: String
    /// The application protocol that the server chose (ALPN, RFC 7301); nil for none.
    public var applicationProtocol: String?
    /// Whether an earlier session was resumed (RFC 8446, 2.2), without sending certificates.
    public var isResumed: Bool

    /// Makes a value; used by transports and tests.
    public init(version: String, applicationProtocol: String? = nil, isResumed: Bool = false) {
        self.version = version
        self.applicationProtocol = applicationProtocol
        self.isResumed = isResumed
    }
}
