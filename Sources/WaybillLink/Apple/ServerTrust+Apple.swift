#if canImport(Network)
    import CoreFoundation
    import CryptoKit
    import Security
    import WireCore

    /// Decides whether the peer's chain is accepted, and stores the reason of a refusal.
    final class ServerTrust: Sendable {
        private let name: String
        /// The authorities, each as DER; empty for those of the system.
        private let authorities: [[UInt8]]
        private let pins: Set<[UInt8]>
        private let acceptsAnyCertificate: Bool
        private let evaluation: TLSSettings.Evaluation?
        private let found = Locked<TLSFault?>(nil)

        /// - Parameters:
        ///   - settings: The settings.
        ///   - authorities: The authorities of the settings, each as DER.
        ///   - name: The name or address that the certificate must have.
        init(_ settings: TLSSettings, authorities: [[UInt8]], name: String) {
            self.name = name
            self.authorities = authorities
            pins = Set(settings.pinnedPublicKeys)
            acceptsAnyCertificate = settings.acceptsAnyCertificate
            evaluation = settings.evaluation
        }

        /// The reason of a refusal; nil if there was none, or before the verification.
        var fault: TLSFault? { found.withLock { $0 } }

        /// Whether the chain is accepted.
        ///
        /// It blocks while the system fetches missing certificates, so it must not run on the queue of a connection.
        func accepts(_ trust: SecTrust) -> Bool {
            let fault = evaluate(trust)
            found.withLock { $0 = fault }
            return fault == nil
        }

        private func evaluate(_ trust: SecTrust) -> TLSFault? {
            guard !acceptsAnyCertificate || evaluation != nil else {
                // Without a verified chain only the peer's own key is proven.
                return isPinned(chain(of: trust).prefix(1)) ? nil : .pinMismatch
            }
            // An address is searched in the certificate's addresses (RFC 9525, 6.5).
            let host = CoreFoundationValues.string(name)
            // Without the policy, a certificate for any host would be accepted.
            let status = SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, host))
            guard status == errSecSuccess else {
                return .invalidSettings("SecTrustSetPolicies: OSStatus \(status)")
            }
            if !authorities.isEmpty {
                guard let anchors = anchors() else {
                    return .invalidSettings("an authority is not a certificate")
                }
                let status = SecTrustSetAnchorCertificates(trust, anchors)
                guard status == errSecSuccess else {
                    return .invalidSettings("SecTrustSetAnchorCertificates: OSStatus \(status)")
                }
                let alone = SecTrustSetAnchorCertificatesOnly(trust, true)
                guard alone == errSecSuccess else {
                    return .invalidSettings("SecTrustSetAnchorCertificatesOnly: OSStatus \(alone)")
                }
            }
            if let evaluation {
                guard evaluation.accepts(trust, name) else {
                    return .invalidCertificate("the app's own evaluation does not accept it")
                }
                return isPinned(chain(of: trust)[...]) ? nil : .pinMismatch
            }
            var error: CFError?
            guard SecTrustEvaluateWithError(trust, &error) else {
                let own = chain(of: trust).first.flatMap(CertificateFields.init)
                return TLSFault(
                    trust: Int32(clamping: error.map(CFErrorGetCode) ?? 0),
                    words: error.flatMap { CFErrorCopyDescription($0) }.map(String.init(copying:)),
                    host: name,
                    isSelfSigned: own?.isSelfIssued == true
                )
            }
            return isPinned(chain(of: trust)[...]) ? nil : .pinMismatch
        }

        private func anchors() -> CFArray? {
            let certificates = authorities.compactMap(CoreFoundationValues.certificate)
            guard certificates.count == authorities.count else { return nil }
            return CoreFoundationValues.array(certificates)
        }

        /// The certificates from the peer's own to the authority's, each as DER.
        private func chain(of trust: SecTrust) -> [[UInt8]] {
            guard let chain = SecTrustCopyCertificateChain(trust) else { return [] }
            return CoreFoundationValues.elements(of: chain, as: SecCertificate.self).map {
                CoreFoundationValues.bytes(SecCertificateCopyData($0))
            }
        }

        private func isPinned(_ chain: ArraySlice<[UInt8]>) -> Bool {
            pins.isEmpty
                || chain.contains { certificate in
                    CertificateFields(certificate).map { fields in
                        pins.contains(Self.sha256(fields.subjectPublicKeyInfo))
                    } == true
                }
        }

        private static func sha256(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var hash = SHA256()
            bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
            return Array(hash.finalize())
        }
    }
#endif
