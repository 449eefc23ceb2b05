#if canImport(Network)
    import CoreFoundation
    import Darwin
    import Security

    extension TLSFault {
        /// What a status of TLS itself says: an alert of the peer, or a handshake that failed.
        ///
        /// - Parameters:
        ///   - status: The status.
        ///   - showsIdentity: Whether the peer was shown a certificate, if it asked for one.
        init(alert status: OSStatus, showsIdentity: Bool) {
            switch status {
            case errSSLCertificateRequired: self = .certificateRequired
            // What servers before TLS 1.3 say to none (RFC 5246, 7.4.6).
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

        /// What the system found at fault with the peer's chain.
        ///
        /// - Parameters:
        ///   - error: As `SecTrustEvaluateWithError` gives it.
        ///   - host: Whose certificate was asked for.
        ///   - isSelfSigned: Whether the peer's own certificate names itself as its signer.
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

        /// What a status says of a certificate by itself.
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
