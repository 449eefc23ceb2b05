/// How a stream is to be secured.
package struct TLSSettings: Hashable, Sendable {
    /// Certificates or a key, as PEM or DER.
    package enum Material: Hashable, Sendable {
        case file(String)
        case bytes([UInt8])
    }

    /// What this side shows of itself.
    package enum Identity: Hashable, Sendable {
        case certificate(Material, key: Material, password: String?)
        case pkcs12(Material, password: String)
    }

    /// A version of the protocol.
    package enum Version: Hashable, Sendable {
        case v1_2
        case v1_3
    }

    /// Who may sign the peer's certificate; empty for those that the system trusts.
    package var authorities: [Material] = []
    /// What this side shows; nil for nothing.
    package var identity: Identity?
    /// SHA-256 hashes of the public keys of which the chain must have one; empty for any.
    package var pinnedPublicKeys: [[UInt8]] = []
    /// The name to ask for and to find in the certificate; nil for the host of the endpoint.
    package var serverName: String?
    /// The application protocols to offer, the dearest first.
    package var applicationProtocols: [String] = []
    /// The oldest version to speak.
    package var minimumVersion = Version.v1_2
    /// Whether any certificate will do, but for the pins.
    package var acceptsAnyCertificate = false

    package init() {}
}

/// What two sides have agreed on to secure a stream.
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
