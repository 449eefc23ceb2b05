#if canImport(Network)
    import CoreFoundation
    import Darwin
    import Security

    /// The certificate and key of this side, from the files in the settings.
    enum NetworkIdentity {
        /// Reads an identity.
        ///
        /// - Throws: `LinkError.tls` with `invalidSettings`.
        static func make(_ identity: TLSSettings.Identity) throws(LinkError) -> sec_identity_t {
            switch identity {
            case .certificate(let certificate, let key, let password):
                try make(certificate, key: key, password: password)
            case .pkcs12(let file, let password):
                try make(pkcs12: file, password: password)
            case .keychain(let label): try make(label: label)
            }
        }

        // MARK: The keychain

        private static func make(label: String) throws(LinkError) -> sec_identity_t {
            guard let name = CoreFoundationValues.string(label), let yes = kCFBooleanTrue,
                let query = CoreFoundationValues.dictionary([
                    (kSecClass, kSecClassIdentity), (kSecAttrLabel, name),
                    (kSecMatchLimit, kSecMatchLimitAll), (kSecReturnRef, yes),
                ])
            else { throw invalid("\(label) is no label") }
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query, &found)
            guard status == errSecSuccess, let found,
                let own = CoreFoundationValues.elements(ofAny: found, as: SecIdentity.self).first,
                let identity = sec_identity_create(own)
            else { throw invalid("\(label) in the keychain cannot be used: OSStatus \(status)") }
            return identity
        }

        // MARK: A certificate and its key

        private static func make(
            _ certificate: TLSSettings.Material,
            key: TLSSettings.Material,
            password: String?
        ) throws(LinkError) -> sec_identity_t {
            guard let chain = PEMDocument.certificates(in: try certificate.bytes()),
                let first = chain.first, let fields = CertificateFields(first)
            else { throw invalid("\(certificate) is no certificate") }
            let certificates = chain.compactMap(CoreFoundationValues.certificate)
            guard certificates.count == chain.count, let own = certificates.first else {
                throw invalid("\(certificate) is no certificate")
            }
            let secret = try read(key, password: password, certified: fields.publicKey)
            // Security does not check that key and certificate belong together.
            guard isPair(secret, fields), let identity = SecIdentityCreate(nil, own, secret),
                let result = with(Array(certificates.dropFirst()), identity)
            else { throw invalid("\(key) is not the key of \(certificate)") }
            return result
        }

        /// Whether the key belongs to the certificate: both have the same public key in the same form.
        private static func isPair(_ key: SecKey, _ certificate: CertificateFields) -> Bool {
            guard let publicKey = SecKeyCopyPublicKey(key),
                let bytes = SecKeyCopyExternalRepresentation(publicKey, nil)
            else { return false }
            return CoreFoundationValues.bytes(bytes).elementsEqual(certificate.publicKey)
        }

        private static func read(
            _ material: TLSSettings.Material,
            password: String?,
            certified: ArraySlice<UInt8>
        ) throws(LinkError) -> SecKey {
            let fields = try fields(of: material, password: password)
            let type =
                switch fields.key {
                case .rsa: kSecAttrKeyTypeRSA
                case .ellipticCurve: kSecAttrKeyTypeECSECPrimeRandom
                }
            guard let bytes = fields.bare(certified: certified),
                let data = CoreFoundationValues.data(bytes),
                let attributes = CoreFoundationValues.dictionary([
                    (kSecAttrKeyType, type), (kSecAttrKeyClass, kSecAttrKeyClassPrivate),
                ])
            else { throw invalid("\(material) is no private key") }
            // Without the error parameter: its text is about the attributes, which are correct.
            guard let key = SecKeyCreateWithData(data, attributes, nil) else {
                throw invalid("\(material) is no private key")
            }
            return key
        }

        private static func fields(
            of material: TLSSettings.Material,
            password: String?
        ) throws(LinkError) -> PrivateKeyFields {
            let file = try material.bytes()
            do throws(PrivateKeyFields.Fault) {
                return try PrivateKeyFields(file: file)
            } catch {
                switch error {
                case .encrypted: break
                case .unknownAlgorithm: throw invalid("\(material) is no key of RSA or ECDSA")
                case .unreadable: throw invalid("\(material) is no private key")
                }
            }
            guard let password else {
                throw invalid("\(material) is encrypted, without a password")
            }
            guard let encrypted = EncryptedKeyFields(file: file) else {
                throw invalid("\(material) is encrypted in another way than PKCS #8 with AES")
            }
            // A wrong password is detected by the padding, or by the decrypted content.
            guard let plain = encrypted.decrypt(password),
                let fields = try? PrivateKeyFields(file: plain)
            else { throw invalid("\(material) cannot be used: its password is another") }
            return fields
        }

        // MARK: PKCS #12

        private static func make(
            pkcs12 material: TLSSettings.Material,
            password: String
        ) throws(LinkError) -> sec_identity_t {
            let bytes = try material.bytes()
            guard let file = CoreFoundationValues.data(bytes),
                let password = CoreFoundationValues.string(password)
            else { throw invalid("\(material) cannot be read") }
            var options: [(CFString, AnyObject)] = [(kSecImportExportPassphrase, password)]
            if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *),
                let yes = kCFBooleanTrue
            {
                // Before this version, a Mac stores imported items in the user's keychain.
                options.append((kSecImportToMemoryOnly, yes))
            }
            var items: CFArray?
            guard let options = CoreFoundationValues.dictionary(options) else {
                throw invalid("\(material) cannot be read")
            }
            let status = SecPKCS12Import(file, options, &items)
            guard status == errSecSuccess, let items else {
                let why = PKCS12Refusal.reason(status, of: bytes)
                throw invalid("\(material) as the identity cannot be used: \(why)")
            }
            guard
                let item = CoreFoundationValues.elements(of: items, as: CFDictionary.self).first,
                let own = CoreFoundationValues.value(
                    of: kSecImportItemIdentity,
                    in: item,
                    as: SecIdentity.self
                ), let identity = with(others(in: item), own)
            else { throw invalid("\(material) as the identity cannot be used: it has none") }
            return identity
        }

        /// The certificates between the identity's certificate and the authority's.
        private static func others(in item: CFDictionary) -> [SecCertificate] {
            let chain = CoreFoundationValues.value(
                of: kSecImportItemCertChain,
                in: item,
                as: CFArray.self
            )
            guard let chain else { return [] }
            // The first is the identity's own certificate, which is sent separately.
            let all = CoreFoundationValues.elements(of: chain, as: SecCertificate.self)
            return Array(all.dropFirst())
        }

        private static func with(
            _ others: [SecCertificate],
            _ own: SecIdentity
        ) -> sec_identity_t? {
            guard !others.isEmpty, let list = CoreFoundationValues.array(others) else {
                return sec_identity_create(own)
            }
            return sec_identity_create_with_certificates(own, list)
        }

        private static func invalid(_ words: String) -> LinkError {
            .tls(.invalidSettings(words))
        }
    }
#endif
