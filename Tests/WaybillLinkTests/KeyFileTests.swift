import Testing
import WaybillLink

@Suite("Files of certificates and keys") struct KeyFileTests {
    // MARK: PEM (RFC 7468)

    private func blocks(_ text: String) -> [PEMDocument.Block]? {
        PEMDocument(Array(text.utf8))?.blocks
    }

    @Test(
        "A block's base 64 is read, however its lines are cut and ended",
        arguments: [
            ("AAEC", [0, 1, 2]), ("AAE=", [0, 1]), ("AA==", [0]), ("", []),
            ("AAEC\n/+8=", [0, 1, 2, 255, 239]), ("AA\r\nEC", [0, 1, 2]), (" AA\tEC ", [0, 1, 2]),
        ] as [(String, [UInt8])]
    )
    func base64(text: String, bytes: [UInt8]) {
        let file = "before\n-----BEGIN A B-----\n\(text)\n-----END A B-----  \nbehind"
        #expect(blocks(file)?.map(\.label) == ["A B"])
        #expect(blocks(file)?.map(\.bytes) == [bytes])
    }

    @Test(
        "What is not PEM is refused",
        arguments: [
            "", "no block", "-----BEGIN A-----\nAAEC", "-----BEGIN A-----\nAAEC\n-----END B-----",
            "-----BEGIN A-----\n-----BEGIN A-----\n-----END A-----",
            "-----BEGIN A-----\nAAE\n-----END A-----", "-----BEGIN A-----\nA\n-----END A-----",
            "-----BEGIN A-----\nAA=A\n-----END A-----", "-----BEGIN A-----\nAB==\n-----END A-----",
            "-----BEGIN A-----\nAAE==\n-----END A-----", "-----BEGIN A-----\nA?EC\n-----END A-----",
            "-----BEGIN A-----\n====\n-----END A-----",
        ]
    )
    func refusedText(text: String) {
        #expect(blocks(text) == nil)
    }

    @Test("Certificates are found among other blocks, in order; DER is one by itself")
    func certificates() throws {
        let two = KeyFiles.key + [10] + KeyFiles.certificate + [10] + KeyFiles.certificate
        let found = try #require(PEMDocument.certificates(in: two))
        #expect(found.count == 2)
        #expect(PEMDocument.certificates(in: found[0]) == [found[0]])
        #expect(PEMDocument.certificates(in: KeyFiles.key) == nil)
        #expect(PEMDocument.certificates(in: []) == nil)
    }

    // MARK: Certificates (RFC 5280, 4.1)

    @Test("The public key of a certificate is found, as the pin is made of it")
    func publicKey() throws {
        let bytes = try #require(PEMDocument.certificates(in: KeyFiles.certificate)?.first)
        let fields = try #require(CertificateFields(bytes))
        let key = try #require(PEMDocument(KeyFiles.publicKey)?.blocks.first?.bytes)
        #expect(Array(fields.subjectPublicKeyInfo) == key)
        #expect(Array(fields.publicKey) == Array(key.suffix(65)))
        #expect(fields.isSelfIssued)
    }

    @Test(
        "A certificate that is cut short, has something behind it or is damaged is none, and no trap"
    )
    func damagedCertificate() throws {
        let bytes = try #require(PEMDocument.certificates(in: KeyFiles.certificate)?.first)
        for count in 0..<bytes.count { #expect(CertificateFields(Array(bytes[..<count])) == nil) }
        #expect(CertificateFields(bytes + [0]) == nil)
        for index in bytes.indices {
            for value: UInt8 in [0, 0x30, 0x7F, 0x80, 0x84, 0xFF] {
                var damaged = bytes
                damaged[index] = value
                guard let fields = CertificateFields(damaged) else { continue }
                #expect(fields.subjectPublicKeyInfo.count <= bytes.count)
            }
        }
        // Lengths of more than four bytes, and the indefinite length.
        #expect(CertificateFields([0x30, 0x85, 1, 0, 0, 0, 0, 0]) == nil)
        #expect(CertificateFields([0x30, 0x80, 0, 0]) == nil)
        #expect(CertificateFields([0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]) == nil)
    }

    // MARK: Keys

    private static let number = hex(
        "3ca9f4c5fd5bb1eef5cdf34539a466c861b6efb1a60822d5b11c55e3c87f75fb"
    )
    private static let point = hex(
        "04eb313840c715aa4bc191d649f6e7f3fbbee4cd8f615689f8df2a30ba2fe625ad"
            + "10f8ebc901cc47d6033c9e9672c873efeed3c59d2f84473abc62dd82a7f2beeb"
    )

    private static func hex(_ digits: String) -> [UInt8] {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0..<$0 + 2]), radix: 16)
        }
    }

    @Test(
        "A key of an elliptic curve becomes X9.63, from SEC 1 and from PKCS #8",
        arguments: [KeyFiles.key, KeyFiles.keyAsPKCS8, KeyFiles.keyWithoutPoint]
    )
    func ellipticCurve(file: [UInt8]) throws {
        let key = try PrivateKeyFields(file: file)
        #expect(key.bare(certified: Self.point[...]) == Self.point + Self.number)
        let der = try #require(PEMDocument(file)?.blocks.last?.bytes)
        #expect(try PrivateKeyFields(file: der) == key)
    }

    @Test("The file's own public key counts; without any, or a compressed one, there is no key")
    func point() throws {
        let own = try PrivateKeyFields(file: KeyFiles.key)
        #expect(own.bare(certified: [4, 1, 2]) == Self.point + Self.number)
        let without = try PrivateKeyFields(file: KeyFiles.keyWithoutPoint)
        #expect(without.key == .ellipticCurve(number: Self.number, point: nil))
        let points: [[UInt8]] = [
            [], [4], [4, 1, 2], [2] + Self.point.dropFirst(), Self.point.dropLast(),
        ]
        for point in points {
            #expect(without.bare(certified: point[...]) == nil)
        }
    }

    @Test("A number that was written short is filled up to the size of the curve")
    func shortNumber() throws {
        let key = try PrivateKeyFields(file: [0x30, 6, 2, 1, 1, 4, 1, 7])
        #expect(key.bare(certified: [4, 1, 2, 3, 4]) == [4, 1, 2, 3, 4, 0, 7])
    }

    @Test("A key of RSA becomes PKCS #1, from that and from PKCS #8")
    func rsa() throws {
        let bytes = try #require(PEMDocument(KeyFiles.rsaKey)?.blocks.first?.bytes)
        #expect(try PrivateKeyFields(file: KeyFiles.rsaKey).key == .rsa(bytes))
        #expect(try PrivateKeyFields(file: KeyFiles.rsaKeyAsPKCS8).key == .rsa(bytes))
        #expect(try PrivateKeyFields(file: KeyFiles.rsaKey).bare(certified: []) == bytes)
    }

    @Test(
        "What cannot be taken out says why",
        arguments: [
            (KeyFiles.keyEncrypted, .encrypted), (KeyFiles.keyEncryptedOldWay, .encrypted),
            (KeyFiles.edwardsKey, .unknownAlgorithm), (KeyFiles.certificate, .unreadable),
            ([], .unreadable), ([0x30, 0], .unreadable), ([0x30, 3, 2, 1, 0], .unreadable),
        ] as [([UInt8], PrivateKeyFields.Fault)]
    )
    func faults(file: [UInt8], fault: PrivateKeyFields.Fault) throws {
        #expect(throws: fault) { try PrivateKeyFields(file: file) }
        guard let der = PEMDocument(file)?.blocks.last?.bytes, fault != .unreadable else { return }
        #expect(throws: fault) { try PrivateKeyFields(file: der) }
    }

    @Test("A key within a key within a key is none, however deep")
    func nested() {
        let integer: [UInt8] = [2, 1, 0]
        let algorithm: [UInt8] = [
            0x30, 0x0D, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 5, 0,
        ]
        // Built backwards, from the innermost to the outermost, so that each layer only appends its own bytes.
        var reversed: [UInt8] = []
        func wrap(_ tag: UInt8, _ before: [UInt8]) {
            reversed += before.reversed()
            let length = UInt32(reversed.count)
            reversed += (0..<4).map { UInt8(length >> (8 * $0) & 0xFF) } + [0x84, tag]
        }
        for _ in 0..<30_000 {
            wrap(0x04, [])
            wrap(0x30, integer + algorithm)
        }
        let file = Array(reversed.reversed())
        #expect(throws: PrivateKeyFields.Fault.unreadable) { try PrivateKeyFields(file: file) }
    }

    @Test("An encrypted key says how it is encrypted (RFC 8018, A.4 and B.2.5)")
    func encrypted() throws {
        let fields = try #require(EncryptedKeyFields(file: KeyFiles.keyEncrypted))
        #expect(fields.salt == Self.hex("7156f31e126f4984"))
        #expect(fields.iterations == 2048)
        #expect(fields.hash == .sha256)
        #expect(fields.keyByteCount == 32)
        #expect(fields.initializationVector == Self.hex("697885be0078adf406c0b443c3ad08a3"))
        #expect(fields.ciphertext.count == 144)
        let der = try #require(PEMDocument(KeyFiles.keyEncrypted)?.blocks.first?.bytes)
        #expect(EncryptedKeyFields(file: der) == fields)
        for file in [KeyFiles.key, KeyFiles.keyAsPKCS8, KeyFiles.keyEncryptedOldWay, []] {
            #expect(EncryptedKeyFields(file: file) == nil)
        }
        for count in 0..<der.count {
            #expect(EncryptedKeyFields(file: Array(der[..<count])) == nil)
        }
        for index in der.indices {
            for value: UInt8 in [0, 0x30, 0x80, 0x84, 0xFF] {
                var damaged = der
                damaged[index] = value
                guard let other = EncryptedKeyFields(file: damaged) else { continue }
                #expect([16, 24, 32].contains(other.keyByteCount))
                #expect(other.initializationVector.count == 16)
            }
        }
    }

    @Test("A key that is cut short or damaged is none, and no trap")
    func damagedKey() throws {
        for file in [KeyFiles.keyAsPKCS8, KeyFiles.rsaKeyAsPKCS8, KeyFiles.key] {
            let bytes = try #require(PEMDocument(file)?.blocks.last?.bytes)
            for count in 0..<bytes.count {
                #expect(throws: PrivateKeyFields.Fault.self) {
                    try PrivateKeyFields(file: Array(bytes[..<count]))
                }
            }
            for index in bytes.indices {
                for value: UInt8 in [0, 0x30, 0x80, 0x84, 0xFF] {
                    var damaged = bytes
                    damaged[index] = value
                    _ = try? PrivateKeyFields(file: damaged).bare(certified: Self.point[...])
                }
            }
        }
    }
}
