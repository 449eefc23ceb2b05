/// The meaning of an `OSStatus` of Apple's Security.
///
/// The numbers are those of `SecureTransport.h` and `SecBase.h`.
extension TLSFault {
    /// Converts a TLS status: an alert of the peer, or a failed handshake.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - peer: The peer of the connection.
    init(status: Int32, of peer: NetworkPeer) {
        switch status {
        // errSSLCertificateRequired.
        case -9863: self = .certificateRequired
        // errSSLPeerBadCert. Servers before TLS 1.3 send this if the client has no certificate (RFC 5246, 7.4.6).
        case -9825 where !peer.showsIdentity: self = .certificateRequired
        case -9825: self = .certificateRefused("bad_certificate")
        // errSSLPeerUnsupportedCert, -CertRevoked, -CertExpired, -CertUnknown, -UnknownCA, -AccessDenied.
        case -9826: self = .certificateRefused("unsupported_certificate")
        case -9827: self = .certificateRefused("certificate_revoked")
        case -9828: self = .certificateRefused("certificate_expired")
        case -9829: self = .certificateRefused("certificate_unknown")
        case -9831: self = .certificateRefused("unknown_ca")
        case -9832: self = .certificateRefused("access_denied")
        // errSSLPeerHandshakeFail.
        case -9824: self = .noCommonProtocol("handshake_failure")
        // errSSLPeerProtocolVersion. An answer in plain text has it, too: the bytes in the place of the version.
        case -9836 where !peer.requiresTLS1_3: self = .notTLS
        case -9836: self = .noCommonProtocol("protocol_version")
        // errSSLPeerInsufficientSecurity.
        case -9837: self = .noCommonProtocol("insufficient_security")
        // errSSLNegotiation.
        case -9801: self = .noCommonProtocol("OSStatus \(status)")
        // errSSLRecordOverflow, errSSLPeerUnexpectedMsg.
        case -9847, -9819: self = .notTLS
        // errSSLClosedGraceful.
        case -9805: self = .closed
        // errSSLProtocol, errSSLInternal, errSSLPeerInternalError, errSSLNetworkTimeout, errSSLHandshakeFail: apps report
        // them at random, with servers that take the next attempt.
        case -9800, -9810, -9838, -9853, -9858: self = .interrupted("OSStatus \(status)")
        default: self = Self(certificate: status) ?? .handshakeFailed("OSStatus \(status)")
        }
    }

    /// Converts the system's error about the peer's chain.
    ///
    /// - Parameters:
    ///   - status: The code of the error of `SecTrustEvaluateWithError`.
    ///   - words: Its text.
    ///   - host: The host that the certificate must name.
    ///   - isSelfSigned: Whether the peer's certificate names itself as its issuer.
    init(trust status: Int32, words: String?, host: String, isSelfSigned: Bool) {
        switch status {
        // errSecHostNameMismatch, errSSLHostNameMismatch.
        case -67_602, -9843: self = .hostMismatch(host)
        // errSecNotTrusted, errSecCreateChainFailed, errSSLUnknownRootCert, errSSLNoRootCert.
        case -67_843, -25_318, -9812, -9813:
            self = isSelfSigned ? .selfSigned : .unknownAuthority()
        default:
            self = Self(certificate: status) ?? .invalidCertificate(words ?? "OSStatus \(status)")
        }
    }

    /// Converts a status that concerns a certificate by itself.
    private init?(certificate status: Int32) {
        switch status {
        // errSecCertificateExpired, errSSLCertExpired.
        case -67_818, -9814: self = .expired
        // errSecCertificateNotValidYet, errSSLCertNotYetValid.
        case -67_819, -9815: self = .notYetValid
        // errSecInvalidExtendedKeyUsage.
        case -67_609: self = .wrongPurpose
        // errSecUnsupportedKeySize, errSSLWeakPeerEphemeralDHKey.
        case -67_735, -9850: self = .weakCertificate
        // errSecCertificateRevoked.
        case -67_820: self = .invalidCertificate("it is revoked")
        // errSSLUnknownRootCert, errSSLNoRootCert.
        case -9812, -9813: self = .unknownAuthority()
        // errSSLXCertChainInvalid, errSSLBadCert.
        case -9807, -9808: self = .invalidCertificate("OSStatus \(status)")
        default: return nil
        }
    }
}
