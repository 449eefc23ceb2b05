#if canImport(Network)
    import CoreFoundation
    import Darwin
    import Security

    extension TLSFault {
        /// Converts a TLS status: an alert of the peer, or a failed handshake.
        ///
        /// - Parameters:
        ///   - status: The status.
        ///   - showsIdentity: Whether this side sends a certificate if the peer requests one.
        init(alert status: OSStatus, showsIdentity: Bool) {
            switch status {
            case errSSLCertificateRequired: self = .certificateRequired
            // Servers before TLS 1.3 send this if the client has no certificate (RFC 5246, 7.4.6).
            case errSSLPeerBadCert where !showsIdentity: self = .certificateRequired
            case errSSLPeerBadCert: self = .certificateRefused("bad_certificate")
            case errSSLPeerUnsupportedCert: self = .certificateRefused("unsupported_certificate")
            case errSSLPeerCertRevoked: self = .certificateRefused("certificate_revoked")
            case errSSLPeerCertExpired: self = .certificateRefused("certificate_expired")
            case errSSLPeerCertUnknown: self = .certificateRefused("certificate_unknown")
            case errSSLPeerUnknownCA: self = .certificateRefused("unknown_ca")
            case errSSLPeerAccessDenied: self = .certificateRefused("access_denied")
            case errSSLPeerHandshakeFail: self = .noCommonProtocol("handshake_failure")
            case errSSLPeerProtocolVersion: self = .noCommonProtocol("protocol_version")
            case errSSLPeerInsufficientSecurity: self = .noCommonProtocol("insufficient_security")
            case errSSLNegotiation: self = .noCommonProtocol("OSStatus \(status)")
            case errSSLRecordOverflow, errSSLPeerUnexpectedMsg: self = .notTLS
            case errSSLClosedGraceful: self = .closed
            default: self = Self(certificate: status) ?? .handshakeFailed("OSStatus \(status)")
            }
        }

        /// Converts the system's error about the peer's chain.
        ///
        /// - Parameters:
        ///   - error: The error of `SecTrustEvaluateWithError`.
        ///   - host: The host that the certificate must name.
        ///   - isSelfSigned: Whether the peer's certificate names itself as its issuer.
        init(_ error: CFError?, host: String, isSelfSigned: Bool) {
            let code = error.map(CFErrorGetCode) ?? 0
            let words = error.flatMap { CFErrorCopyDescription($0) }.map(String.init(copying:))
            switch OSStatus(clamping: code) {
            case errSecHostNameMismatch, errSSLHostNameMismatch: self = .hostMismatch(host)
            case errSecNotTrusted, errSecCreateChainFailed, errSSLUnknownRootCert, errSSLNoRootCert:
                self = isSelfSigned ? .selfSigned : .unknownAuthority
            case let status:
                self = Self(certificate: status) ?? .invalidCertificate(words ?? "OSStatus \(code)")
            }
        }

        /// Converts a status that concerns a certificate by itself.
        private init?(certificate status: OSStatus) {
            switch status {
            case errSecCertificateExpired, errSSLCertExpired: self = .expired
            case errSecCertificateNotValidYet, errSSLCertNotYetValid: self = .notYetValid
            case errSecInvalidExtendedKeyUsage: self = .wrongPurpose
            case errSecUnsupportedKeySize, errSSLWeakPeerEphemeralDHKey: self = .weakCertificate
            case errSecCertificateRevoked: self = .invalidCertificate("it is revoked")
            case errSSLUnknownRootCert, errSSLNoRootCert: self = .unknownAuthority
            case errSSLXCertChainInvalid, errSSLBadCert:
                self = .invalidCertificate("OSStatus \(status)")
            default: return nil
            }
        }
    }
#endif
