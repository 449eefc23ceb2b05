/// The fields of a certificate (RFC 5280, 4.1) for pins and messages, as encoded in its DER.
///
/// Nothing is verified here; the system has done that before.
package struct CertificateFields: Equatable, Sendable {
    package let issuer: ArraySlice<UInt8>
    package let subject: ArraySlice<UInt8>
    /// The public key with its algorithm; its SHA-256 is the pin (RFC 7469, 2.4).
    package let subjectPublicKeyInfo: ArraySlice<UInt8>
    /// The public key without its algorithm.
    package let publicKey: ArraySlice<UInt8>

    /// Whether the certificate names itself as its issuer.
    package var isSelfIssued: Bool { issuer == subject }

    /// Finds the fields; nil if the bytes are not the DER of a certificate.
    ///
    /// - Parameter certificate: The DER.
    package init?(_ certificate: [UInt8]) {
        var file = DERReader(certificate[...])
        guard let whole = file.next(.sequence), file.isAtEnd else { return nil }
        var signed = DERReader(whole.content)
        guard let body = signed.next(.sequence) else { return nil }
        var fields = DERReader(body.content)
        // The version is omitted in version 1.
        _ = fields.next(.context0)
        guard fields.next(.integer) != nil, fields.next(.sequence) != nil,
            let issuer = fields.next(.sequence), fields.next(.sequence) != nil,
            let subject = fields.next(.sequence), let key = fields.next(.sequence)
        else { return nil }
        var parts = DERReader(key.content)
        // The first byte of a bit string is the number of unused bits, which is zero for a key.
        guard parts.next(.sequence) != nil, let bits = parts.next(.bitString)?.content,
            bits.first == 0
        else { return nil }
        self.issuer = issuer.whole
        self.subject = subject.whole
        subjectPublicKeyInfo = key.whole
        publicKey = bits.dropFirst()
    }
}
