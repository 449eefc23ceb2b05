/// The functions of SHA-256 that SCRAM needs; the system's library implements them.
package protocol SCRAMHash: Sendable {
    /// The hash of bytes.
    ///
    /// - Throws: `hashFailed`.
    func hash(_ bytes: [UInt8]) throws(SCRAMFailure) -> [UInt8]

    /// The HMAC of bytes (RFC 2104).
    ///
    /// - Throws: `hashFailed`.
    func authenticationCode(of bytes: [UInt8], key: [UInt8]) throws(SCRAMFailure) -> [UInt8]

    /// Whether two arrays of one length are equal; the time does not depend on their contents.
    func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool
}

/// The key derivation that the server demands: Hi of RFC 5802, 2.2, which is PBKDF2 with HMAC.
///
/// It takes up to a second, so the shell runs it on a thread of its own.
package struct SCRAMDerivation: Hashable, Sendable {
    package var salt: [UInt8]
    package var iterations: Int

    package init(salt: [UInt8], iterations: Int) {
        self.salt = salt
        self.iterations = iterations
    }
}

/// The keys of a password (RFC 5802, 3), of which a server stores the last two.
package struct SCRAMKeys: Sendable {
    let clientKey: [UInt8]
    let storedKey: [UInt8]
    let serverKey: [UInt8]

    /// Computes the keys.
    ///
    /// - Throws: `hashFailed`.
    package init(
        saltedPassword: [UInt8],
        by hash: any SCRAMHash
    ) throws(SCRAMFailure) {
        clientKey = try hash.authenticationCode(
            of: Array("Client Key".utf8),
            key: saltedPassword
        )
        storedKey = try hash.hash(clientKey)
        serverKey = try hash.authenticationCode(
            of: Array("Server Key".utf8),
            key: saltedPassword
        )
    }
}
