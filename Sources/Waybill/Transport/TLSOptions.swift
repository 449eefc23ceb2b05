/// How a transport secures its connections, if its URL asks for that (`mqtts`, `wss`, `stomps`, `https`).
///
/// By default the server's certificate must be trusted by the system, be valid today, and name the host of the URL. The
/// minimum version is TLS 1.2 (RFC 8996, RFC 9525).
public struct TLSOptions: Sendable {
    /// Certificates or a key, in PEM (RFC 7468) or DER format.
    public enum Material: Sendable {
        /// In a file, which is read again for each connection, so that it can be replaced.
        case file(String)
        /// In memory.
        case bytes([UInt8])
    }

    /// The client's certificate and key, for a server that asks for a certificate.
    public enum Identity: Sendable {
        /// The client's certificate, the certificates between it and an authority, and its private key.
        ///
        /// The password is that of an encrypted PEM key; it is never logged. Apple platforms do not accept Ed25519 keys
        /// or OpenSSL's old key encryption.
        case certificate(Material, key: Material, password: String? = nil)
        /// Certificate and key in one PKCS #12 file (RFC 7292).
        case pkcs12(Material, password: String)
        /// The identity with this label in the keychain of an Apple platform.
        ///
        /// Elsewhere, and without such an identity, a connection fails with ``TLSFailure/Reason/invalidOptions``. It is
        /// looked for before each connection. The certificates between it and an authority are not sent.
        case keychain(label: String)
    }

    /// A version of the protocol.
    public enum Version: Sendable {
        /// TLS 1.2 (RFC 5246).
        case v1_2
        /// TLS 1.3 (RFC 8446).
        case v1_3
    }

    /// The authorities that may sign the server's certificate; empty, the default, for those of the system.
    ///
    /// Given authorities replace those of the system.
    public var authorities: [Material]
    /// The client's certificate for a server that asks for one; nil, the default, for none.
    public var identity: Identity?
    /// SHA-256 hashes of public keys (RFC 7469, 2.4); empty, the default, for any key.
    ///
    /// One certificate of the verified chain must have one of them. Each hash is 32 bytes long.
    public var pinnedPublicKeys: [[UInt8]]
    /// The server name to request (RFC 6066, 3) and to find in the certificate; nil, the default, for the host of the
    /// URL.
    public var serverName: String?
    /// The application protocols to offer (ALPN, RFC 7301), the preferred one first; nil, the default, for the
    /// protocol's own.
    ///
    /// The default is `http/1.1` for `https` and `wss`, and none for the others.
    ///
    /// Each is 1 to 255 bytes long. The receipt of a `connect` names the one that the server chose.
    public var applicationProtocols: [String]?
    /// The oldest accepted version; TLS 1.2 by default.
    public var minimumVersion: Version
    /// Accepts any certificate of the server, which lets attackers read and change all data; false by default.
    ///
    /// For a laboratory, never for an app. ``pinnedPublicKeys`` still apply, to the server's own certificate.
    public var dangerouslyAcceptsAnyCertificate: Bool
    /// The app's own evaluation of a `SecTrust`; only Apple platforms have a public name for it.
    package var ownEvaluation: (@Sendable (_ trust: AnyObject, _ host: String) -> Bool)?

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(
        authorities: [Material] = [],
        identity: Identity? = nil,
        pinnedPublicKeys: [[UInt8]] = [],
        serverName: String? = nil,
        applicationProtocols: [String]? = nil,
        minimumVersion: Version = .v1_2,
        dangerouslyAcceptsAnyCertificate: Bool = false
    ) {
        self.authorities = authorities
        self.identity = identity
        self.pinnedPublicKeys = pinnedPublicKeys
        self.serverName = serverName
        self.applicationProtocols = applicationProtocols
        self.minimumVersion = minimumVersion
        self.dangerouslyAcceptsAnyCertificate = dangerouslyAcceptsAnyCertificate
    }
}

extension TLSOptions.Material: CustomStringConvertible {
    /// The path or the length, never the content.
    public var description: String {
        switch self {
        case .file(let path): path
        case .bytes(let bytes): "\(bytes.count) bytes"
        }
    }
}

extension TLSOptions.Identity: CustomStringConvertible {
    /// The files, never the password.
    public var description: String {
        switch self {
        case .certificate(let certificate, let key, _): "\(certificate) with the key \(key)"
        case .pkcs12(let file, _): "\(file)"
        case .keychain(let label): "\(label) in the keychain"
        }
    }
}
