package import SCRAMWire

/// SHA-256 of the system's library: OpenSSL on Linux, CommonCrypto on Apple platforms.
package struct SystemHash: SCRAMHash {
    /// The length of a hash in bytes.
    static let byteCount = 32

    /// The error text without a library.
    package static let libraryMissing =
        "SCRAM needs OpenSSL 3 or 1.1.1, which this system has not: install libssl3 (Debian, Ubuntu), "
        + "openssl-libs (Fedora) or libssl3 (Alpine)"

    /// Finds the library; nil if the system has none.
    package init?() {
        guard Self.isAvailable else { return nil }
    }

    /// Derives a key from a password on a thread of its own, because up to a million iterations take up to a second.
    ///
    /// - Parameters:
    ///   - password: The password.
    ///   - derivation: The salt and the iterations.
    ///   - completion: Called once, on any thread.
    package func derive(
        from password: [UInt8],
        _ derivation: SCRAMDerivation,
        _ completion: @escaping @Sendable (Result<[UInt8], SCRAMFailure>) -> Void
    ) {
        let isStarted = Self.onThread {
            do throws(SCRAMFailure) {
                completion(.success(try derivedKey(from: password, derivation)))
            } catch {
                completion(.failure(error))
            }
        }
        if !isStarted { completion(.failure(.hashFailed)) }
    }
}
