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

    /// Whether it names itself as its signer.
    package var isSelfIssued: Bool { issuer == subject }

    /// Finds the fields.
    ///
    /// - Parameter certificate: DER.
    /// - Returns: Nil for what is not the DER of a certificate.
    package init?(_ certificate: [UInt8]) {
        var file = DERReader(certificate[...])
        guard let whole = file.next(.sequence), file.isAtEnd else { return nil }
        var signed = DERReader(whole.content)
        guard let body = signed.next(.sequence) else { return nil }
        var fields = DERReader(body.content)
        // The version is left out in version 1.
        _ = fields.next(.version)
        guard fields.next(.integer) != nil, fields.next(.sequence) != nil,
            let issuer = fields.next(.sequence), fields.next(.sequence) != nil,
            let subject = fields.next(.sequence), let key = fields.next(.sequence)
        else { return nil }
        self.issuer = issuer.whole
        self.subject = subject.whole
        subjectPublicKeyInfo = key.whole
    }
}

/// Walks over the elements of DER (X.690, 8.1 and 10.1).
private struct DERReader {
    /// The tags that a certificate's own fields have.
    enum Tag: UInt8 {
        case integer = 0x02
        case sequence = 0x30
        /// `[0]`, explicit.
        case version = 0xA0
    }

    /// One element.
    struct Element {
        /// With its tag and length.
        let whole: ArraySlice<UInt8>
        let content: ArraySlice<UInt8>
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// Takes the next element; nil, and nothing taken, if it is another or is cut short.
    mutating func next(_ tag: Tag) -> Element? {
        guard rest.first == tag.rawValue, let first = rest.dropFirst().first else { return nil }
        var content = rest.dropFirst(2)
        var length = Int(first)
        if first >= 0x80 {
            // 0x80 itself is the indefinite length, which DER has not; four bytes are 4 GiB.
            let count = length - 0x80
            guard (1...4).contains(count), content.count >= count else { return nil }
            length = content.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            content = content.dropFirst(count)
        }
        guard content.count >= length else { return nil }
        content = content.prefix(length)
        defer { rest = rest[content.endIndex...] }
        return Element(whole: rest[rest.startIndex..<content.endIndex], content: content)
    }
}
