#if canImport(Network)
    import CommonCrypto

    extension EncryptedKeyFields {
        /// Decrypts the key.
        ///
        /// - Parameter password: The password in UTF-8, as OpenSSL encodes it.
        /// - Returns: The key as PKCS #8; nil if the password is wrong or the file is damaged.
        func decrypt(_ password: String) -> [UInt8]? {
            let characters = password.utf8.map { CChar(bitPattern: $0) }
            var key = [UInt8](repeating: 0, count: keyByteCount)
            let derived = CCKeyDerivationPBKDF(
                CCPBKDFAlgorithm(kCCPBKDF2),
                characters,
                characters.count,
                salt,
                salt.count,
                pseudoRandom,
                iterations,
                &key,
                keyByteCount
            )
            guard derived == Int32(kCCSuccess) else { return nil }
            var plain = [UInt8](repeating: 0, count: ciphertext.count)
            var count = 0
            let status = CCCrypt(
                CCOperation(kCCDecrypt),
                CCAlgorithm(kCCAlgorithmAES),
                CCOptions(kCCOptionPKCS7Padding),
                key,
                key.count,
                initializationVector,
                ciphertext,
                ciphertext.count,
                &plain,
                ciphertext.count,
                &count
            )
            guard status == Int32(kCCSuccess), count <= plain.count else { return nil }
            return Array(plain.prefix(count))
        }

        private var pseudoRandom: CCPseudoRandomAlgorithm {
            switch hash {
            case .sha1: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA1)
            case .sha256: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA256)
            case .sha384: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA384)
            case .sha512: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA512)
            }
        }
    }
#endif
