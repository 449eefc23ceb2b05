import WireCore

/// The reason why a stream is not or no longer secure.
package enum TLSFault: Error, Hashable, Sendable {
    /// A certificate of the chain has expired.
    case expired
    /// A certificate of the chain is not valid yet.
    case notYetValid
    /// The certificate is for another host than the given one.
    case hostMismatch(String)
    /// The certificate has no subject alternative name; the common name does not count (RFC 9525, 2).
    case alternativeNameMissing(String)
    /// No trusted authority has signed the chain; the text is the name of the one that has, if it is known.
    case unknownAuthority(String? = nil)
    /// The peer's certificate is signed by itself.
    case selfSigned
    /// The certificate is not meant for this use.
    case wrongPurpose
    /// A key or signature of the chain is too weak.
    case weakCertificate
    /// Another fault of the chain, in the library's text.
    case invalidCertificate(String)
    /// No certificate of the chain has a pinned key.
    case pinMismatch
    /// The peer requires a certificate, and this side sent none.
    case certificateRequired
    /// The peer does not accept this side's certificate; the text is the name of its alert.
    case certificateRefused(String)
    /// No version, cipher or application protocol in common, in the library's text.
    case noCommonProtocol(String)
    /// The peer does not speak TLS.
    case notTLS
    /// The peer speaks TLS, and this side does not.
    case required
    /// The peer closed before the stream was secure.
    case closed
    /// The handshake broke off for a reason that a later attempt may not meet, in the library's text.
    case interrupted(String)
    /// Another alert or fault, in the library's text.
    case handshakeFailed(String)
    /// There is no TLS library; the text says what to install.
    case libraryMissing(String)
    /// This side's TLS settings cannot be used.
    case invalidSettings(String)
}

extension TLSFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .expired: "the server's certificate has expired"
        case .notYetValid: "the server's certificate is not valid yet"
        case .hostMismatch(let host): "the server's certificate is not for \(host)"
        case .alternativeNameMissing(let host):
            """
            the server's certificate is not for \(host): it has a common name only, which does not count, and no subject \
            alternative name
            """
        case .unknownAuthority(let issuer?):
            "the server's certificate is not signed by a trusted authority, but by \(issuer.escaped)"
        case .unknownAuthority: "the server's certificate is not signed by a trusted authority"
        case .selfSigned: "the server has signed its certificate itself"
        case .wrongPurpose: "the server's certificate is not one for servers"
        case .weakCertificate: "a key or signature in the server's certificates is too weak"
        case .invalidCertificate(let words): "the server's certificate is at fault: \(words)"
        case .pinMismatch: "no certificate of the server has a pinned public key"
        case .certificateRequired: "the server wants a certificate from the client"
        case .certificateRefused(let words): "the server refuses the client's certificate: \(words)"
        case .noCommonProtocol(let words): "no TLS in common with the server: \(words)"
        case .notTLS: "the server does not speak TLS"
        case .required: "the server wants TLS, which the URL's scheme does not ask for"
        case .closed: "the server closed the connection before it was secure"
        case .interrupted(let words): "the TLS handshake broke off: \(words)"
        case .handshakeFailed(let words): "no secure connection: \(words)"
        case .libraryMissing(let words): words
        case .invalidSettings(let words): words
        }
    }
}
