/// An encrypted private key in PKCS #8 (RFC 5958, 3) with the scheme in common use: PBES2 with PBKDF2 and AES-CBC.
///
/// OpenSSL writes this form for a key with a password. Nothing is decrypted here.
package struct EncryptedKeyFields: Equatable, Sendable {
    /// The hash of PBKDF2, used as HMAC (RFC 8018, B.1).
    package enum Hash: Equatable, Sendable {
        case sha1
        case sha256
        case sha384
        case sha512
    }

    package let salt: [UInt8]
    package let iterations: UInt32
    package let hash: Hash
    /// The length of the AES key in bytes: 16, 24 or 32.
    package let keyByteCount: Int
    /// The initialization vector; 16 bytes.
    package let initializationVector: [UInt8]
    package let ciphertext: [UInt8]

    /// Parses a file; nil if it is no such key, or has another scheme.
    ///
    /// - Parameter file: The file as PEM or DER.
    package init?(file: [UInt8]) {
        // DER begins with the tag of a sequence.
        let block = PEMDocument(file)?.blocks.first { $0.label == "ENCRYPTED PRIVATE KEY" }
        guard let bytes = file.first == 0x30 ? file : block?.bytes else { return nil }
        var reader = DERReader(bytes[...])
        guard let whole = reader.next(.sequence), reader.isAtEnd else { return nil }
        var outer = DERReader(whole.content)
        guard let scheme = outer.next(.sequence), let data = outer.next(.octetString),
            var parts = Self.parameters(of: scheme, named: Self.pbes2),
            let derivation = parts.next(.sequence), let cipher = parts.next(.sequence),
            var deriving = Self.parameters(of: derivation, named: Self.pbkdf2),
            let salt = deriving.next(.octetString), let rounds = deriving.next(.integer)
        else { return nil }
        let number = rounds.content.drop { $0 == 0 }
        guard !number.isEmpty, number.count <= 4 else { return nil }
        // The cipher determines the key length.
        _ = deriving.next(.integer)
        guard let hash = Self.hash(deriving.next(.sequence)),
            let (keyByteCount, vector) = Self.cipher(cipher.content)
        else { return nil }
        self.salt = Array(salt.content)
        iterations = number.reduce(0) { $0 << 8 | UInt32($1) }
        self.hash = hash
        self.keyByteCount = keyByteCount
        initializationVector = vector
        ciphertext = Array(data.content)
    }

    /// 1.2.840.113549.1.5.13 and 12 (RFC 8018, C).
    private static let pbes2: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D]
    private static let pbkdf2: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C]
    /// 1.2.840.113549.2, the prefix of the hashes (RFC 8018, B.1.1 and B.1.2).
    private static let digests: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02]
    /// 2.16.840.1.101.3.4.1, the prefix of AES (RFC 8018, B.2.5).
    private static let aes: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01]

    /// The parameters of an algorithm, if the element names that algorithm.
    private static func parameters(of element: DERReader.Element, named name: [UInt8]) -> DERReader?
    {
        var parts = DERReader(element.content)
        guard let found = parts.next(.objectIdentifier), found.content.elementsEqual(name),
            let parameters = parts.next(.sequence)
        else { return nil }
        return DERReader(parameters.content)
    }

    /// The hash; SHA-1 if none is named.
    private static func hash(_ element: DERReader.Element?) -> Hash? {
        guard let element else { return .sha1 }
        var parts = DERReader(element.content)
        guard let name = parts.next(.objectIdentifier)?.content, name.starts(with: digests),
            name.count == digests.count + 1
        else { return nil }
        return switch name.last {
        case 7: .sha1
        case 9: .sha256
        case 10: .sha384
        case 11: .sha512
        default: nil
        }
    }

    private static func cipher(_ content: ArraySlice<UInt8>) -> (keyByteCount: Int, [UInt8])? {
        var parts = DERReader(content)
        guard let name = parts.next(.objectIdentifier)?.content, name.starts(with: aes),
            name.count == aes.count + 1, let vector = parts.next(.octetString)?.content,
            vector.count == 16
        else { return nil }
        return switch name.last {
        case 2: (16, Array(vector))
        case 22: (24, Array(vector))
        case 42: (32, Array(vector))
        default: nil
        }
    }
}
