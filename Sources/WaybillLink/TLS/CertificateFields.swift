/// The parts of a certificate (RFC 5280, 4.1) that pins and messages need, as they stand in its DER.
///
/// Nothing is verified here: the system has done that before anybody asks.
package struct CertificateFields: Equatable, Sendable {
    /// Who has signed it.
    package let issuer: ArraySlice<UInt8>
    /// Whose it is.
    package let subject: ArraySlice<UInt8>
    /// The public key with its algorithm, whose SHA-256 is the pin (RFC 7469, 2.4).
    package let subjectPublicKeyInfo: ArraySlice<UInt8>
    /// The public key alone.
    package let publicKey: ArraySlice<UInt8>

    /// Whether it names itself as its signer.
    package var isSelfIssued: Bool { issuer == subject }

    /// Finds the fields; nil for what is not the DER of a certificate.
    ///
    /// - Parameter certificate: DER.
    package init?(_ certificate: [UInt8]) {
        var file = DERReader(certificate[...])
        guard let whole = file.next(.sequence), file.isAtEnd else { return nil }
        var signed = DERReader(whole.content)
        guard let body = signed.next(.sequence) else { return nil }
        var fields = DERReader(body.content)
        // The version is left out in version 1.
        _ = fields.next(.context0)
        guard fields.next(.integer) != nil, fields.next(.sequence) != nil,
            let issuer = fields.next(.sequence), fields.next(.sequence) != nil,
            let subject = fields.next(.sequence), let key = fields.next(.sequence)
        else { return nil }
        var parts = DERReader(key.content)
        // The first byte of a string of bits counts those that do not matter, which a key has none of.
        guard parts.next(.sequence) != nil, let bits = parts.next(.bitString)?.content,
            bits.first == 0
        else { return nil }
        self.issuer = issuer.whole
        self.subject = subject.whole
        subjectPublicKeyInfo = key.whole
        publicKey = bits.dropFirst()
    }
}
