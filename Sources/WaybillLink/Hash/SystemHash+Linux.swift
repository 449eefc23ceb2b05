#if os(Linux)
    import CWaybillTLS
    package import SCRAMWire

    extension SystemHash {
        static var isAvailable: Bool { waybill_tls_is_available() != 0 }

        package func hash(_ bytes: [UInt8]) throws(SCRAMFailure) -> [UInt8] {
            try Self.output { waybill_sha256(bytes, bytes.count, $0) }
        }

        package func authenticationCode(
            of bytes: [UInt8],
            key: [UInt8]
        ) throws(SCRAMFailure) -> [UInt8] {
            try Self.output { waybill_hmac_sha256(key, key.count, bytes, bytes.count, $0) }
        }

        package func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
            one.count == other.count && waybill_is_equal(one, other, one.count) != 0
        }

        /// PBKDF2 (RFC 8018, 5.2) with HMAC.
        ///
        /// - Throws: `hashFailed`.
        package func derivedKey(
            from password: [UInt8],
            _ derivation: SCRAMDerivation
        ) throws(SCRAMFailure) -> [UInt8] {
            guard let iterations = Int32(exactly: derivation.iterations) else { throw .hashFailed }
            let salt = derivation.salt
            return try Self.output { output in
                waybill_pbkdf2_sha256(
                    password,
                    password.count,
                    salt,
                    salt.count,
                    iterations,
                    output
                )
            }
        }

        private static func output(
            _ compute: (UnsafeMutablePointer<UInt8>) -> Int32
        ) throws(SCRAMFailure) -> [UInt8] {
            var isDone = false
            // The functions write as many bytes as the array has, and keep no pointer.
            let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
                buffer.initialize(repeating: 0)
                guard let start = buffer.baseAddress else { return }
                isDone = compute(start) == 1
                count = byteCount
            }
            guard isDone else { throw .hashFailed }
            return bytes
        }

        static func onThread(_ run: @escaping @Sendable () -> Void) -> Bool {
            (try? SystemThread.detach(run)) != nil
        }
    }
#endif
