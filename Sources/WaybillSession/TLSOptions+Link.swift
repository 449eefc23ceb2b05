package import Waybill
package import WaybillLink
import WireCore

extension TLSSettings {
    /// Converts the app's options into the link's settings.
    ///
    /// - Parameters:
    ///   - options: The app's options.
    ///   - protocols: The application protocols that are offered unless the options have some.
    /// - Throws: `invalidEntry` for a pin that is not a SHA-256 hash, and for an application protocol that is empty
    ///   or longer than 255 bytes.
    package init(_ options: TLSOptions, protocols: [String]) throws(WaybillError) {
        self.init()
        guard options.pinnedPublicKeys.allSatisfy({ $0.count == 32 }) else {
            throw WaybillError(.invalidEntry, "a pinned public key is not 32 bytes of SHA-256")
        }
        let protocols = options.applicationProtocols ?? protocols
        guard protocols.allSatisfy({ (1...255).contains($0.utf8.count) }) else {
            throw WaybillError(.invalidEntry, "an application protocol is not 1 to 255 bytes long")
        }
        authorities = options.authorities.map(Material.init)
        identity = options.identity.map(Identity.init)
        pinnedPublicKeys = options.pinnedPublicKeys
        serverName = options.serverName
        applicationProtocols = protocols
        minimumVersion =
            switch options.minimumVersion {
            case .v1_2: .v1_2
            case .v1_3: .v1_3
            }
        acceptsAnyCertificate = options.dangerouslyAcceptsAnyCertificate
        evaluation = options.ownEvaluation.map(Evaluation.init)
    }
}

extension TLSSettings.Material {
    fileprivate init(_ material: TLSOptions.Material) {
        switch material {
        case .file(let path): self = .file(path)
        case .bytes(let bytes): self = .bytes(bytes)
        }
    }
}

extension TLSSettings.Identity {
    fileprivate init(_ identity: TLSOptions.Identity) {
        switch identity {
        case .certificate(let certificate, let key, let password):
            self = .certificate(.init(certificate), key: .init(key), password: password)
        case .pkcs12(let file, let password): self = .pkcs12(.init(file), password: password)
        case .keychain(let label): self = .keychain(label: label)
        }
    }
}

extension TLSFailure {
    /// Converts the link's fault into the public error.
    init(_ fault: TLSFault) {
        let (reason, detail): (Reason, String) =
            switch fault {
            case .expired: (.expired, "")
            case .notYetValid: (.notYetValid, "")
            case .hostMismatch(let host): (.hostMismatch, host)
            case .alternativeNameMissing(let host):
                (
                    .hostMismatch,
                    "\(host). The certificate has a common name only, and no subject alternative name"
                )
            case .unknownAuthority(let issuer):
                (.unknownAuthority, issuer.map { "the issuer is \($0.escaped)" } ?? "")
            case .selfSigned: (.selfSigned, "")
            case .wrongPurpose: (.wrongPurpose, "")
            case .weakCertificate: (.weakCertificate, "")
            case .invalidCertificate(let text): (.invalidCertificate, text)
            case .pinMismatch: (.pinMismatch, "")
            case .certificateRequired: (.certificateRequired, "")
            case .certificateRefused(let text): (.certificateRefused, text)
            case .noCommonProtocol(let text): (.noCommonProtocol, text)
            case .notTLS: (.notTLS, "")
            case .required: (.required, "")
            case .closed: (.closed, "")
            case .interrupted(let text): (.interrupted, text)
            case .handshakeFailed(let text): (.handshakeFailed, text)
            case .libraryMissing(let text): (.libraryMissing, text)
            case .invalidSettings(let text): (.invalidOptions, text)
            }
        self.init(reason, detail: detail)
    }
}
