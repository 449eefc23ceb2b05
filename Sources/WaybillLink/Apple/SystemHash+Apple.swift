#if canImport(Network)
    import CommonCrypto
    import Darwin
    import Dispatch
    package import SCRAMWire

    extension SystemHash {
        static var isAvailable: Bool { true }

        package func hash(_ bytes: [UInt8]) throws(SCRAMFailure) -> [UInt8] {
            var output = [UInt8](repeating: 0, count: Self.byteCount)
            guard let length = CC_LONG(exactly: bytes.count),
                CC_SHA256(bytes, length, &output) != nil
            else { throw .hashFailed }
            return output
        }

        package func authenticationCode(
            of bytes: [UInt8],
            key: [UInt8]
        ) throws(SCRAMFailure) -> [UInt8] {
            var output = [UInt8](repeating: 0, count: Self.byteCount)
            CCHmac(
                CCHmacAlgorithm(kCCHmacAlgSHA256),
                key,
                key.count,
                bytes,
                bytes.count,
                &output
            )
            return output
        }

        package func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
            one.count == other.count && timingsafe_bcmp(one, other, one.count) == 0
        }

        /// PBKDF2 (RFC 8018, 5.2) with HMAC.
        ///
        /// - Throws: `hashFailed`.
        package func derivedKey(
            from password: [UInt8],
            _ derivation: SCRAMDerivation
        ) throws(SCRAMFailure) -> [UInt8] {
            guard let iterations = UInt32(exactly: derivation.iterations) else { throw .hashFailed }
            let characters = password.map { CChar(bitPattern: $0) }
            var output = [UInt8](repeating: 0, count: Self.byteCount)
            let status = CCKeyDerivationPBKDF(
                CCPBKDFAlgorithm(kCCPBKDF2),
                characters,
                characters.count,
                derivation.salt,
                derivation.salt.count,
                CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA256),
                iterations,
                &output,
                output.count
            )
            guard status == Int32(kCCSuccess) else { throw .hashFailed }
            return output
        }

        static func onThread(_ run: @escaping @Sendable () -> Void) -> Bool {
            DispatchQueue.global(qos: .userInitiated).async(execute: run)
            return true
        }
    }
#endif
