/// How a transport secures its connections, where its URL says so (`mqtts`, `wss`, `stomps`, `https`).
///
/// Without a word from the app the server must show a certificate that the system trusts, that is valid today,
/// and that names the host of the URL; TLS 1.2 is the least (RFC 8996, RFC 9525).
public struct TLSOptions: Sendable {
    /// Certificates or a key, as PEM (RFC 7468) or DER.
    public enum Material: Sendable {
        /// In a file, which is read anew for each connection, so that it can be replaced.
        case file(String)
        /// In memory.
        case bytes([UInt8])
    }

    /// What the client shows to a server that asks for a certificate.
    public enum Identity: Sendable {
        /// The client's certificate, then those between it and an authority, and its private key.
        ///
        /// The password is that of an encrypted PEM key; it is never logged. On Apple platforms Ed25519 keys and
        /// OpenSSL's old encryption of keys are not taken.
        case certificate(Material, key: Material, password: String? = nil)
        /// Certificate and key in one (RFC 7292).
        case pkcs12(Material, password: String)
    }

    /// A version of the protocol.
    public enum Version: Sendable {
        /// TLS 1.2 (RFC 5246).
        case v1_2
        /// TLS 1.3 (RFC 8446).
        case v1_3
    }

    /// Who may sign the server's certificate, instead of those that the system trusts; empty, the default, for
    /// the system's.
    public var authorities: [Material] = []
    /// What the client shows when the server asks; nil, the default, for nothing.
    public var identity: Identity?
    /// SHA-256 hashes of public keys (RFC 7469, 2.4): one certificate of the verified chain must have one of
    /// them; empty, the default, for any key.
    ///
    /// Each is 32 bytes long.
    public var pinnedPublicKeys: [[UInt8]] = []
    /// The name that the certificate must have and that the server is asked for (RFC 6066, 3); nil, the default,
    /// for the host of the URL.
    public var serverName: String?
    /// The protocols offered within TLS (ALPN, RFC 7301), the dearest first; nil, the default, for what the
    /// transport's protocol says: `http/1.1` for `https` and `wss`, none for the others.
    ///
    /// Each is 1 to 255 bytes long. What the server chose is in the receipt of a `connect`.
    public var applicationProtocols: [String]?
    /// The oldest version that is spoken; TLS 1.2 by default.
    public var minimumVersion = Version.v1_2
    /// Takes whatever certificate a server shows, so that anybody on the way can read and change everything;
    /// false by default.
    ///
    /// For a laboratory, never for an app. ``pinnedPublicKeys`` still count, for the server's own certificate.
    public var dangerouslyAcceptsAnyCertificate = false

    /// The defaults.
    public init() {}
}

extension TLSOptions.Material: CustomStringConvertible {
    /// Where it is, never what.
    public var description: String {
        switch self {
        case .file(let path): path
        case .bytes(let bytes): "\(bytes.count) bytes"
        }
    }
}

extension TLSOptions.Identity: CustomStringConvertible {
    /// Where it comes from, never the password.
    public var description: String {
        switch self {
        case .certificate(let certificate, let key, _): "\(certificate) with the key \(key)"
        case .pkcs12(let file, _): "\(file)"
        }
    }
}
