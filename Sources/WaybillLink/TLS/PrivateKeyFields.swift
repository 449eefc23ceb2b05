/// A private key in the form of its own specification, taken out of any container.
///
/// OpenSSL reads every such file by itself; Apple's Security needs the bare key.
package struct PrivateKeyFields: Equatable, Sendable {
    /// The reason why no key can be taken from a file.
    package enum Fault: Error, Equatable, Sendable {
        case encrypted
        /// The key is neither RSA nor of an elliptic curve.
        case unknownAlgorithm
        /// The file is no private key, or is damaged.
        case unreadable
    }

    /// A key by its algorithm.
    package enum Key: Equatable, Sendable {
        /// PKCS #1's `RSAPrivateKey` (RFC 8017, A.1.2).
        case rsa([UInt8])
        /// The private number, and the point of the public key if the file has it (RFC 5915, 3).
        case ellipticCurve(number: [UInt8], point: [UInt8]?)
    }

    package let key: Key

    /// Takes the key from a file.
    ///
    /// - Parameter file: The file as PEM or DER: PKCS #8 (RFC 5958), PKCS #1 or SEC 1.
    /// - Throws: The reason why there is no key.
    package init(file: [UInt8]) throws(Fault) {
        key = try Self.key(in: try Self.contents(of: file)[...])
    }

    /// The DER in a file.
    private static func contents(of file: [UInt8]) throws(Fault) -> [UInt8] {
        // DER begins with the tag of a sequence.
        if file.first == 0x30 { return file }
        let labels = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]
        guard let blocks = PEMDocument(file)?.blocks else {
            // OpenSSL's old encryption writes lines into the block that are not base 64 (RFC 1421, 4.6.1.1).
            throw file.contains(sequence: Array("Proc-Type: 4,ENCRYPTED".utf8))
                ? .encrypted : .unreadable
        }
        guard let block = blocks.first(where: { labels.contains($0.label) }) else {
            throw blocks.contains { $0.label == "ENCRYPTED PRIVATE KEY" } ? .encrypted : .unreadable
        }
        return block.bytes
    }

    /// The key in any form; inside PKCS #8 the key must not be in PKCS #8 again.
    private static func key(
        in bytes: ArraySlice<UInt8>,
        isInner: Bool = false
    ) throws(Fault) -> Key {
        var file = DERReader(bytes)
        guard let whole = file.next(.sequence), file.isAtEnd else { throw .unreadable }
        var fields = DERReader(whole.content)
        guard fields.next(.integer) != nil else {
            // An encrypted key begins with its algorithm (RFC 5958, 3).
            let isEncrypted = fields.next(.sequence) != nil && fields.next(.octetString) != nil
            throw isEncrypted ? .encrypted : .unreadable
        }
        if let algorithm = fields.next(.sequence) {
            guard !isInner, let inner = fields.next(.octetString) else { throw .unreadable }
            return try key(in: inner.content, algorithm: algorithm.content)
        }
        if let number = fields.next(.octetString) {
            return .ellipticCurve(number: Array(number.content), point: point(&fields))
        }
        guard fields.next(.integer) != nil else { throw .unreadable }
        return .rsa(Array(whole.whole))
    }

    /// The key inside PKCS #8, in one of the other forms.
    private static func key(
        in inner: ArraySlice<UInt8>,
        algorithm: ArraySlice<UInt8>
    ) throws(Fault) -> Key {
        var names = DERReader(algorithm)
        guard let name = names.next(.objectIdentifier).map({ Array($0.content) }) else {
            throw .unreadable
        }
        guard name == rsaEncryption || name == ellipticCurve else { throw .unknownAlgorithm }
        let found = try key(in: inner, isInner: true)
        switch found {
        case .rsa where name == rsaEncryption: return found
        case .ellipticCurve where name == ellipticCurve: return found
        default: throw .unreadable
        }
    }

    /// 1.2.840.113549.1.1.1 (RFC 8017, A.1).
    private static let rsaEncryption: [UInt8] = [
        0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01,
    ]
    /// 1.2.840.10045.2.1 (RFC 5480, 2.1.1).
    private static let ellipticCurve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]

    private static func point(_ fields: inout DERReader) -> [UInt8]? {
        _ = fields.next(.context0)
        guard let wrapped = fields.next(.context1) else { return nil }
        var inner = DERReader(wrapped.content)
        guard let bits = inner.next(.bitString)?.content, bits.first == 0 else { return nil }
        return Array(bits.dropFirst())
    }

    /// The key in the form of Apple's Security: PKCS #1, or X9.63's point followed by the number.
    ///
    /// - Parameter certified: The public key of the certificate, used if the file has none.
    /// - Returns: The bytes; nil if the point is missing or compressed (SEC 1, 2.3.3).
    package func bare(certified: ArraySlice<UInt8>) -> [UInt8]? {
        switch key {
        case .rsa(let bytes): return bytes
        case .ellipticCurve(let number, let point):
            let point = point ?? Array(certified)
            let size = (point.count - 1) / 2
            guard point.first == 4, point.count == 1 + 2 * size, number.count <= size else {
                return nil
            }
            return point + [UInt8](repeating: 0, count: size - number.count) + number
        }
    }
}

extension [UInt8] {
    /// Whether the bytes contain a sequence.
    fileprivate func contains(sequence part: [UInt8]) -> Bool {
        indices.contains { self[$0...].starts(with: part) }
    }
}
