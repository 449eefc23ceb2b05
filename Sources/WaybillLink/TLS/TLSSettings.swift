/// The TLS settings of a stream.
package struct TLSSettings: Hashable, Sendable {
    /// Certificates or a key, as PEM or DER.
    package enum Material: Hashable, Sendable {
        case file(String)
        case bytes([UInt8])
    }

    /// The certificate and key of this side.
    package enum Identity: Hashable, Sendable {
        case certificate(Material, key: Material, password: String?)
        case pkcs12(Material, password: String)
        case keychain(label: String)
    }

    /// The app's own evaluation of a trust; two are equal if they are the same.
    package final class Evaluation: Hashable, Sendable {
        package let accepts: @Sendable (_ trust: AnyObject, _ host: String) -> Bool

        package init(_ accepts: @escaping @Sendable (AnyObject, String) -> Bool) {
            self.accepts = accepts
        }

        package static func == (left: Evaluation, right: Evaluation) -> Bool { left === right }

        package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    package enum Version: Hashable, Sendable {
        case v1_2
        case v1_3
    }

    /// The authorities that may sign the peer's certificate; empty for those of the system.
    package var authorities: [Material] = []
    /// The certificate and key of this side; nil for none.
    package var identity: Identity?
    /// SHA-256 hashes of public keys, of which the chain must have one; empty for any key.
    package var pinnedPublicKeys: [[UInt8]] = []
    /// The name to request and to find in the certificate; nil for the host of the endpoint.
    package var serverName: String?
    /// The application protocols to offer, the preferred one first.
    package var applicationProtocols: [String] = []
    package var minimumVersion = Version.v1_2
    /// Whether any certificate is accepted; pins still apply.
    package var acceptsAnyCertificate = false
    /// Evaluates the peer's trust on Apple platforms; nil for the package's own rules.
    package var evaluation: Evaluation?

    package init() {}
}

/// The negotiated properties of a secure stream.
package struct TLSAgreement: Hashable, Sendable {
    /// The version's name, such as `TLSv1.3`.
    package var version: String
    /// The application protocol that the server chose; nil for none.
    package var applicationProtocol: String?
    /// Whether an earlier session was resumed.
    package var isResumed: Bool

    package init(version: String, applicationProtocol: String?, isResumed: Bool) {
        self.version = version
        self.applicationProtocol = applicationProtocol
        self.isResumed = isResumed
    }
}
